"""Seeds as a file names them: how many, which, or from which to which; and files, which are the same for every seed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from joulie.lab.model.refusals import LabError
from joulie.lab.model.setup import TraceSetup
from joulie.lab.traces.reading import readable_format

Seeds = int | str | list[int]
MAX_SEEDS = 10_000
MAX_SEED = 2**31 - 1


def parse_seeds(written: Seeds) -> tuple[int, ...]:
    """`20` is 1 to 20, `"101-120, 7"` and `[1, 5]` name them; ValueError says what is wrong."""
    seeds = _listed(written)
    if not 1 <= len(seeds) <= MAX_SEEDS:
        raise ValueError(f"{len(seeds):,} seeds: at least 1 and at most {MAX_SEEDS:,}")
    if wrong := [seed for seed in seeds if not 0 <= seed <= MAX_SEED]:
        raise ValueError(f"{wrong[0]} is not a seed: allowed are 0 to {MAX_SEED}")
    if len(set(seeds)) < len(seeds):
        twice = next(seed for seed in seeds if seeds.count(seed) > 1)
        raise ValueError(f"{twice} appears twice, which would count one result as two")
    return tuple(seeds)


def _listed(written: Seeds) -> list[int]:
    if isinstance(written, int):
        return list(range(1, min(written, MAX_SEEDS + 1) + 1))
    if isinstance(written, list):
        return written
    seeds: list[int] = []
    for part in written.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.strip().isdecimal()):
            raise ValueError(f'{part.strip()!r} is neither a seed nor a range of seeds such as "101-120"')
        low = int(first)
        high = int(last) if dash else low
        if high < low:
            raise ValueError(f"{part.strip()!r}: the range goes backwards")
        seeds += range(low, min(high, low + MAX_SEEDS) + 1)
    return seeds


def shown_seeds(seeds: tuple[int, ...]) -> str:
    """`1–20, 31`."""
    runs = [[seed for _, seed in run] for _, run in groupby(enumerate(sorted(seeds)), lambda pair: pair[1] - pair[0])]
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def replayed(trace: TraceSetup) -> str:
    """The file that every seed comes from; empty where seeds have work of their own."""
    return Path(trace.file).name


def drawn(trace: TraceSetup) -> bool:
    """Whether each seed is a block bootstrap of its file; else they all replay it."""
    return bool(trace.file and trace.block_hours)


def refuse_same_jobs(traces: Iterable[TraceSetup], origin: str) -> None:
    """Other seeds are other jobs only where a seed decides how large they are."""
    for trace in traces:
        # Philly has run times as a distribution. Of a file that cannot be read, that is said when it is.
        if trace.file and readable_format(trace) not in ("philly", ""):
            raise LabError(
                f"{origin}: tune: every seed comes from {replayed(trace)}, so a setting would be reported on the very "
                "jobs that it was tuned on; tune on another file, in an experiment of its own"
            )

"""Seeds as a file names them: how many, which, or from which to which."""

from __future__ import annotations

from itertools import groupby

Seeds = int | str | list[int]
MOST_SEEDS = 10_000
LARGEST = 2**31 - 1


def parse_seeds(written: Seeds) -> tuple[int, ...]:
    """`20` is 1 to 20, `"101-120, 7"` and `[1, 5]` name them; ValueError says what is wrong."""
    seeds = _listed(written)
    if not 1 <= len(seeds) <= MOST_SEEDS:
        raise ValueError(f"{len(seeds):,} seeds: at least 1 and at most {MOST_SEEDS:,}")
    if wrong := [seed for seed in seeds if not 0 <= seed <= LARGEST]:
        raise ValueError(f"{wrong[0]} is no seed: from 0 to {LARGEST}")
    if len(set(seeds)) < len(seeds):
        twice = next(seed for seed in seeds if seeds.count(seed) > 1)
        raise ValueError(f"{twice} is there twice, which would count one result as two")
    return tuple(seeds)


def _listed(written: Seeds) -> list[int]:
    if isinstance(written, int):
        return list(range(1, min(written, MOST_SEEDS + 1) + 1))
    if isinstance(written, list):
        return written
    seeds: list[int] = []
    for part in written.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.strip().isdecimal()):
            raise ValueError(f'{part.strip()!r} is no seed and no range of seeds such as "101-120"')
        low = int(first)
        high = int(last) if dash else low
        if high < low:
            raise ValueError(f"{part.strip()!r}: the range goes backwards")
        seeds += range(low, min(high, low + MOST_SEEDS) + 1)
    return seeds


def shown_seeds(seeds: tuple[int, ...]) -> str:
    """`1–20, 31`."""
    runs = [[seed for _, seed in run] for _, run in groupby(enumerate(sorted(seeds)), lambda pair: pair[1] - pair[0])]
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)

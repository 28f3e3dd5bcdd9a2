"""Files are the same for every seed: what that means for tuning, and for what a comparison may say."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from joulie.errors import InputError
from joulie.lab.refusals import LabError
from joulie.lab.trace_reading import format_of
from joulie.lab.trace_setup import TraceSetup


def replayed(trace: TraceSetup) -> str:
    """The file whose arrivals every seed replays; empty where seeds have work of their own."""
    return Path(trace.file).name


def refuse_same_jobs(traces: Iterable[TraceSetup], origin: str) -> None:
    """Other seeds are other jobs only where a seed decides how large they are."""
    for trace in traces:
        if trace.file and not _sizes_are_drawn(trace):
            raise LabError(
                f"{origin}: tune: every seed replays {replayed(trace)}, so a setting would be reported on the very "
                "jobs that it was tuned on; tune on another file, in an experiment of its own"
            )


def _sizes_are_drawn(trace: TraceSetup) -> bool:
    try:
        return format_of(Path(trace.file), trace.format) == "philly"  # which has run times as a distribution
    except (OSError, EOFError, InputError):
        return True  # that it cannot be read is said with the reason when it is

"""Files are the same for every seed: what that means for tuning, and for what a comparison may say."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from joulie.lab.refusals import LabError
from joulie.lab.trace_reading import readable_format
from joulie.lab.trace_setup import TraceSetup


def replayed(trace: TraceSetup) -> str:
    """The file whose arrivals every seed replays; empty where seeds have work of their own."""
    return Path(trace.file).name


def refuse_same_jobs(traces: Iterable[TraceSetup], origin: str) -> None:
    """Other seeds are other jobs only where a seed decides how large they are."""
    for trace in traces:
        # Philly has run times as a distribution. Of a file that cannot be read, that is said when it is.
        if trace.file and readable_format(trace) not in ("philly", ""):
            raise LabError(
                f"{origin}: tune: every seed replays {replayed(trace)}, so a setting would be reported on the very "
                "jobs that it was tuned on; tune on another file, in an experiment of its own"
            )

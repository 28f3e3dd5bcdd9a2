"""Which work a run does: generated (SPEC 10), or read from a file."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from joulie.lab.setup import Share

Format = Literal["", "jsonl", "swf", "philly", "azure"]

DEFAULT_HOURS = 24.0
DEFAULT_LOAD = 0.6
DEFAULT_GPU_SHARE = 0.4
MOST_JOBS = 50_000_000


class TraceSetup(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything has a good default; `jobs` and `load` exclude each other.

    Of a file, `hours` and `jobs` take the beginning, `duration_scale` makes its jobs longer, `load` stretches or
    presses the times of arrival, and `performance_share` counts where the file's format knows no classes.
    """

    hours: Annotated[float, Meta(gt=0, le=24 * 366)] | None = None  # generated: 24; of a file: all
    jobs: Annotated[int, Meta(ge=1, le=MOST_JOBS)] | None = None
    load: Annotated[float, Meta(gt=0, le=100)] | None = None  # work over uncapped capacity, of the scarcer resource
    gpu_share: Share | None = None  # of workloads; 0.4 where there are GPUs
    duration_scale: Annotated[float, Meta(gt=0, le=10_000)] = 1.0  # all durations, their limits too
    burstiness: Annotated[float, Meta(ge=0, le=100)] = 1.0  # 0: the day curve alone
    start_hour: Annotated[float, Meta(ge=0, lt=24)] = 0.0  # time of day at which the trace begins
    performance_share: Share = 0.2
    deadlines: bool = False
    file: str = ""  # empty: generated
    format: Format = ""  # of the file; empty: by its name
    skip_bad: bool = False  # leave bad lines of the file out, and say how many

    @property
    def drawn_hours(self) -> float:
        """Over which arrivals are generated; 0 of a file."""
        return 0.0 if self.file else self.hours or DEFAULT_HOURS

    def __post_init__(self) -> None:
        if self.jobs is not None and self.load is not None:
            raise ValueError("jobs and load exclude each other: say how many jobs come, or how much work")
        if not self.file and (self.format or self.skip_bad):
            raise ValueError("format and skip_bad belong to a file, and there is none")
        if self.file and (self.gpu_share is not None or self.burstiness != 1 or self.start_hour or self.deadlines):
            raise ValueError(
                "gpu_share, burstiness, start_hour and deadlines belong to generated traces, not to a file"
            )

"""What a run is made of, as a configuration file says it; everything has a good default.

Field names are the keys of the file; the range of each number stands in `experiment.checks`. What the operator and
the extender would read from their environment stands under `settings` by its own name (`STATIC_HP_FRAC: 0.4`).
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from joulie.model.api.budget import PowerBudgetSpec

Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=1)]


class NodeGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """Nodes that are alike; models are the catalogue's."""

    count: Count
    cpu: str = "EPYC 9654"
    sockets: int = 2
    gpu: str = ""  # empty: none
    gpus: int = 0
    labels: dict[str, str] = field(default_factory=dict)  # besides those of rack and cooling zone


def _default_groups() -> list[NodeGroup]:
    return [
        NodeGroup(24),
        NodeGroup(8, gpu="H100 SXM", gpus=8),
        NodeGroup(8, gpu="L40S", gpus=4),
    ]


class ClusterSetup(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the nodes stand."""

    nodes: list[NodeGroup] = field(default_factory=_default_groups)
    nodes_per_rack: int = 16
    racks_per_zone: int = 8
    cpu_work_on_gpu_nodes: bool = False  # users keep it off by a taint


class WeatherSetup(Struct, frozen=True, forbid_unknown_fields=True):
    """Air outside: a mean, a swing over the day (warmest at 15 h), and noise that stays for hours."""

    mean_c: float = 14.0
    swing_c: float = 6.0  # from the mean to the warmest hour
    noise_c: float = 1.0
    start_hour: float = 0.0
    file: str = ""  # CSV with the columns time_s, outside_c instead


class PlantSetup(Struct, frozen=True, forbid_unknown_fields=True):
    """How the simulated hardware is stepped, and whether empty nodes are switched off."""

    step_s: float = 10.0
    cooling_spare: float = 1.1  # cooling is built for so much more than all nodes at their limits
    sleep: bool = False
    sleep_after_s: float = 300.0  # an empty node is switched off after this time
    sleep_w: float = 12.0
    wake_s: float = 180.0
    wake_energy_j: float = 30_000.0


class TelemetrySetup(Struct, frozen=True, forbid_unknown_fields=True):
    """What the operator is told about power: `measured` readings, or nothing (`static` estimates)."""

    source: Literal["measured", "static"] = "measured"
    lag_s: float = 0.0  # a reading is so old when it arrives
    noise_pct: float = 0.0  # standard deviation of a reading


class QueueSetup(Struct, frozen=True, forbid_unknown_fields=True):
    """First come first served; with backfill a later job may pass the first as long as it does not delay it."""

    backfill: bool = True
    depth: int = 100  # so many waiting jobs are looked at
    estimate_factor: float = 1.0  # users' estimates over uncapped durations


LAB_POLICIES = ("none", "uniform")


class PolicySetup(Struct, frozen=True, forbid_unknown_fields=True):
    """`none` caps nothing, `uniform` caps every node alike; all others are the operator's policies."""

    name: str = "none"
    cpu_cap_pct: float = 100.0  # of uniform alone
    gpu_cap_pct: float = 100.0


class SharingSetup(Struct, frozen=True, forbid_unknown_fields=True):
    """How a budget's watts are shared: `shared` as the operator does it, or what it is compared with."""

    rule: Literal["shared", "static", "reactive"] = "shared"
    interval_s: float = 5.0  # of shared and static


class RunSetup(Struct, frozen=True, forbid_unknown_fields=True):
    """One run but for its jobs and its seed."""

    cluster: ClusterSetup = field(default_factory=ClusterSetup)
    scheduler: str = "joulie"  # least, most, random, joulie, or `module:object` of one that ranks
    policy: PolicySetup = field(default_factory=PolicySetup)
    settings: dict[str, str | int | float | bool] = field(default_factory=dict)
    weather: WeatherSetup = field(default_factory=WeatherSetup)
    plant: PlantSetup = field(default_factory=PlantSetup)
    telemetry: TelemetrySetup = field(default_factory=TelemetrySetup)
    queue: QueueSetup = field(default_factory=QueueSetup)
    budgets: dict[str, PowerBudgetSpec] = field(default_factory=dict)  # by name, as a PowerBudget has it under spec
    sharing: SharingSetup = field(default_factory=SharingSetup)
    record_s: float = 60.0  # of the series that plots show
    longest_factor: float = 20.0  # a run that takes so many times the span of its arrivals is given up

    @property
    def environment(self) -> dict[str, str]:
        """`settings` as environment variables."""
        return {
            name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in self.settings.items()
        }


Format = Literal["", "jsonl", "parquet", "swf", "philly", "azure", "alibaba"]

DEFAULT_HOURS = 24.0
DEFAULT_LOAD = 0.6
DEFAULT_GPU_SHARE = 0.4
MAX_JOBS = 50_000_000


class TraceSetup(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything has a good default; `jobs` and `load` exclude each other.

    Of a file, `hours` and `jobs` take the beginning, `duration_scale` makes its jobs longer, `load` stretches or
    presses the times of arrival, and `performance_share` counts where the file's format knows no classes.
    """

    hours: Annotated[float, Meta(gt=0, le=24 * 366)] | None = None  # generated: 24; of a file: all
    jobs: Annotated[int, Meta(ge=1, le=MAX_JOBS)] | None = None
    load: Annotated[float, Meta(gt=0, le=100)] | None = None  # work over uncapped capacity, of the scarcer resource
    gpu_share: Share | None = None  # of workloads; 0.4 where there are GPUs
    duration_scale: Annotated[float, Meta(gt=0, le=10_000)] = 1.0  # all durations, their limits too
    burstiness: Annotated[float, Meta(ge=0, le=100)] = 1.0  # 0: the day curve alone
    start_hour: Annotated[float, Meta(ge=0, lt=24)] = 0.0  # time of day at which the trace begins
    work: Literal["mixed", "inference"] = "mixed"
    arrivals: Literal["day", "constant", "periodic"] = "day"
    period_hours: Annotated[float, Meta(gt=0, le=24 * 366)] | None = None  # of periodic arrivals; 24
    longest_hours: Annotated[float, Meta(gt=0, le=24 * 366)] | None = None  # of durations, not each family's own
    performance_share: Share = 0.2
    deadlines: bool = False
    file: str = ""  # empty: generated
    format: Format = ""  # of the file; empty: by its name
    block_hours: Annotated[float, Meta(ge=0, le=24 * 366)] | Literal["auto"] = 0  # drawn from the file; 0: replay it
    skip_bad: bool = False  # leave bad lines of the file out, and say how many

    @property
    def drawn_hours(self) -> float:
        """Over which arrivals are generated; 0 of a file."""
        return 0.0 if self.file else self.hours or DEFAULT_HOURS

    @property
    def wave_hours(self) -> float:
        """From one peak of periodic arrivals to the next."""
        return self.period_hours or DEFAULT_HOURS

    def __post_init__(self) -> None:
        if self.jobs is not None and self.load is not None:
            raise ValueError("jobs and load exclude each other: say how many jobs come, or how much work")
        if not self.file and (self.format or self.skip_bad or self.block_hours):
            raise ValueError("format, skip_bad and block_hours belong to a file, and there is none")
        if self.file and (self.gpu_share is not None or self.burstiness != 1 or self.start_hour or self.deadlines):
            raise ValueError(
                "gpu_share, burstiness, start_hour and deadlines belong to generated traces, not to a file"
            )
        made = (self.work, self.arrivals, self.period_hours, self.longest_hours)
        if self.file and made != ("mixed", "day", None, None):
            raise ValueError("work, arrivals, period_hours and longest_hours belong to generated traces, not to a file")
        if self.arrivals != "day" and (self.burstiness != 1 or self.start_hour):
            raise ValueError(f'burstiness and start_hour belong to arrivals = "day", and these are {self.arrivals}')
        if self.period_hours is not None and self.arrivals != "periodic":
            raise ValueError(f'period_hours belongs to arrivals = "periodic", and these are {self.arrivals}')
        sizes = self.jobs is not None or self.gpu_share is not None or self.longest_hours is not None
        if self.work == "inference" and (sizes or self.deadlines or self.duration_scale != 1):
            raise ValueError(
                "jobs, gpu_share, longest_hours, deadlines and duration_scale belong to mixed work: of inference the "
                "load decides how many replicas run how long"
            )

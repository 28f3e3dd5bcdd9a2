"""What a run is made of, as a configuration file says it; everything has a good default.

Field names are the keys of the file; the range of each number stands in `checking`. What the operator and the extender
would read from their environment stands under `settings` by its own name (`STATIC_HP_FRAC: 0.4`).
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=1)]


class NodeGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """Nodes that are alike; models are the catalogue's."""

    count: Count
    cpu: str = "EPYC 9654"
    sockets: int = 2
    gpu: str = ""  # empty: none
    gpus: int = 0


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
    record_s: float = 60.0  # of the series that plots show
    longest_factor: float = 20.0  # a run that takes so many times the span of its arrivals is given up

    @property
    def environment(self) -> dict[str, str]:
        """`settings` as environment variables."""
        return {
            name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in self.settings.items()
        }

"""What can be chosen of a live demo, what it looks like at one moment, and what it has measured."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from joulie.demo.day import Scene
from joulie.overview.nodes import NodeView
from joulie.overview.summary import ClusterView


class Options(Struct, frozen=True):
    """What a person may choose."""

    speed: float
    seed: int
    scene: Scene
    policy: str | None = None


class Look(Struct, frozen=True):
    """The demo at one moment, for a screen."""

    elapsed_s: float  # simulated
    part: str
    cluster: ClusterView
    nodes: Mapping[str, NodeView]
    running: int
    waiting: int
    done: int
    inlet_c: float
    outside_c: float
    pue: float | None


class Measured(Struct, frozen=True):
    """What the live run itself counted."""

    elapsed_s: float
    it_kwh: float
    facility_kwh: float
    done: int
    running: int
    waiting: int
    core_hours: float
    gpu_hours: float
    slowdown_p50: float
    slowdown_p99: float

"""The options of a live demo, its state at one moment, and what it has measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from joulie.demo.scenario.day import DemoScene
from joulie.demo.scenario.feed_meter import FeedCut
from joulie.overview.nodes import NodeOverview
from joulie.overview.summary import ClusterView


class DemoOptions(Struct, frozen=True):
    """What the user may choose."""

    speed: float
    seed: int
    scene: DemoScene
    policy: str | None = None


class DemoView(Struct, frozen=True):
    """The demo at one moment, for a screen."""

    elapsed_s: float  # simulated
    part: str
    cluster: ClusterView
    nodes: Mapping[str, NodeOverview]
    running: int
    waiting: int
    done: int
    inlet_c: float
    outside_c: float
    pue: float | None


class DemoMeasurements(Struct, frozen=True):
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
    cuts: Sequence[FeedCut] = ()

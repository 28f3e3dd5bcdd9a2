"""What a measured telemetry tier provides: a check of its settings, and a reader of node power."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import aiohttp

from joulie.model.snapshot import PowerReading
from joulie.settings import OperatorSettings
from joulie.sources.node_queries import NodeSource
from joulie.sources.prometheus import PrometheusClient
from joulie.sources.transport import RequestLimits


class ReaderContext(NamedTuple):
    """What a reader may use."""

    settings: OperatorSettings
    session: aiohttp.ClientSession
    wall_clock_s: Callable[[], float]
    limits: RequestLimits
    clients: Mapping[str, PrometheusClient]  # "nodes" is the one of OPERATOR_NODE_POWER_PROMETHEUS_ADDRESS, if set

    @property
    def max_age_s(self) -> float:
        return self.settings.decision.twin.power_max_age_s


class PowerReader(NamedTuple):
    """`model.tiers.TIERS` names one for each measured tier."""

    check: Callable[[OperatorSettings], None]  # SettingError at start for settings that cannot work
    open: Callable[[ReaderContext], NodeSource[PowerReading]]


def total_w(parts_w: Iterable[float]) -> float:
    """The sum; a negative part is returned as it is, so that other parts cannot hide it."""
    parts = list(parts_w)
    lowest = min(parts, default=math.nan)
    return lowest if lowest < 0 else math.fsum(parts) if all(map(math.isfinite, parts)) else math.nan

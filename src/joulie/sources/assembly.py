"""Opens the sources that the settings configure, and checks those settings at start."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import aiohttp
from msgspec import Struct

from joulie.errors import SettingError
from joulie.model.snapshot import PowerReading
from joulie.model.tiers import TIERS
from joulie.settings import OperatorSettings
from joulie.sources.facility import PLACE, FacilityPoller
from joulie.sources.node_queries import NodeSource
from joulie.sources.power.reader import PowerReader, ReaderContext
from joulie.sources.prometheus import PrometheusClient
from joulie.sources.transport import RequestLimits
from joulie.sources.utilisation import Load, PrometheusLoad

CPU_LOAD, GPU_LOAD = "cpu_utilisation", "gpu_utilisation"


class OpenSources(Struct, frozen=True):
    """The configured sources; None or empty for the others."""

    power: NodeSource[PowerReading] | None
    loads: dict[str, NodeSource[Load]]
    facility: FacilityPoller | None
    clients: dict[str, PrometheusClient]


def check_settings(settings: OperatorSettings) -> None:
    """SettingError at start for settings that contradict each other."""
    if reader := power_reader(settings):
        reader.check(settings)
    for variable, template in (
        ("FACILITY_ZONE_AMBIENT_METRIC_TEMPLATE", settings.facility_zone_ambient_template),
        ("FACILITY_RACK_POWER_METRIC_TEMPLATE", settings.facility_rack_power_template),
    ):
        if template and PLACE not in template:
            raise SettingError(variable, template, "a query with %s in it, or nothing")


def power_reader(settings: OperatorSettings) -> PowerReader | None:
    """The reader of the configured tier; None if power is not measured."""
    for tier in TIERS:
        if tier.setting and tier.setting == settings.power_source:
            module, _, name = tier.reader.partition(":")
            reader: PowerReader = getattr(import_module(module), name)
            return reader
    return None


def open_sources(
    settings: OperatorSettings, session: aiohttp.ClientSession, wall_clock_s: Callable[[], float], limits: RequestLimits
) -> OpenSources:
    """Readers on this session; sends no request."""
    max_age_s = settings.decision.twin.power_max_age_s
    power: NodeSource[PowerReading] | None = None
    loads: dict[str, NodeSource[Load]] = {}
    clients: dict[str, PrometheusClient] = {}
    if settings.power_prometheus_address:
        client = clients["nodes"] = PrometheusClient(session, settings.power_prometheus_address, limits.call_timeout_s)
        for kind, promql in ((CPU_LOAD, settings.utilization_cpu_query), (GPU_LOAD, settings.utilization_gpu_query)):
            if promql:
                loads[kind] = PrometheusLoad(client, promql, max_age_s, wall_clock_s, limits)
    if reader := power_reader(settings):
        power = reader.open(ReaderContext(settings, session, wall_clock_s, limits, clients))
    facility = None
    if settings.enable_facility_metrics and settings.facility_prometheus_address:
        client = PrometheusClient(session, settings.facility_prometheus_address, limits.call_timeout_s)
        clients["facility"] = client
        facility = FacilityPoller(client, settings, limits)
    return OpenSources(power, loads, facility, clients)

"""Which sources the settings ask for, and the check at start that they can be asked."""

from __future__ import annotations

from collections.abc import Callable

import aiohttp
from msgspec import Struct

from joulie.errors import SettingError
from joulie.model.snapshot import PowerReading
from joulie.settings import OperatorSettings
from joulie.sources.facility import PLACE, FacilityPoller
from joulie.sources.node_queries import NODE_PLACE, NodeSource
from joulie.sources.power import HttpPower, PrometheusPower
from joulie.sources.prometheus import PrometheusClient
from joulie.sources.transport import Limits
from joulie.sources.utilisation import Load, PrometheusLoad

CPU_LOAD, GPU_LOAD = "cpu_utilisation", "gpu_utilisation"


class Sources(Struct, frozen=True):
    """All that is to be asked; None and empty for what is not configured."""

    power: NodeSource[PowerReading] | None
    loads: dict[str, NodeSource[Load]]
    facility: FacilityPoller | None
    clients: dict[str, PrometheusClient]


def check_settings(settings: OperatorSettings) -> None:
    """SettingError for settings that contradict each other: at start, not at the first silent hour."""
    if settings.power_source == "http" and NODE_PLACE not in settings.power_http_endpoint:
        raise SettingError(
            "OPERATOR_NODE_POWER_HTTP_ENDPOINT",
            settings.power_http_endpoint,
            "with OPERATOR_NODE_POWER_SOURCE=http a URL with {node} in it",
        )
    if settings.power_source == "prometheus" and not settings.power_prometheus_address:
        raise SettingError(
            "OPERATOR_NODE_POWER_PROMETHEUS_ADDRESS", "", "with OPERATOR_NODE_POWER_SOURCE=prometheus its URL"
        )
    for variable, template in (
        ("FACILITY_ZONE_AMBIENT_METRIC_TEMPLATE", settings.facility_zone_ambient_template),
        ("FACILITY_RACK_POWER_METRIC_TEMPLATE", settings.facility_rack_power_template),
    ):
        if template and PLACE not in template:
            raise SettingError(variable, template, "a query with %s in it, or nothing")


def open_sources(
    settings: OperatorSettings, session: aiohttp.ClientSession, wall_clock_s: Callable[[], float], limits: Limits
) -> Sources:
    """Readers on this session; nothing is asked yet."""
    max_age_s = settings.decision.twin.power_max_age_s
    power: NodeSource[PowerReading] | None = None
    loads: dict[str, NodeSource[Load]] = {}
    clients: dict[str, PrometheusClient] = {}
    if settings.power_prometheus_address:
        client = clients["nodes"] = PrometheusClient(session, settings.power_prometheus_address, limits.call_timeout_s)
        if settings.power_source == "prometheus":
            power = PrometheusPower(client, settings.power_prometheus_query, max_age_s, wall_clock_s, limits)
        for kind, promql in ((CPU_LOAD, settings.utilization_cpu_query), (GPU_LOAD, settings.utilization_gpu_query)):
            if promql:
                loads[kind] = PrometheusLoad(client, promql, max_age_s, wall_clock_s, limits)
    if settings.power_source == "http":
        power = HttpPower(session, settings.power_http_endpoint, wall_clock_s, limits)
    facility = None
    if settings.enable_facility_metrics and settings.facility_prometheus_address:
        client = PrometheusClient(session, settings.facility_prometheus_address, limits.call_timeout_s)
        clients["facility"] = client
        facility = FacilityPoller(client, settings, limits)
    return Sources(power, loads, facility, clients)

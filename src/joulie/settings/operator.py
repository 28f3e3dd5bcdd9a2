"""Settings of the operator process."""

from __future__ import annotations

from dataclasses import dataclass

from joulie.model.tiers import TIERS
from joulie.settings.decision import DecisionSettings, enable_facility_metrics, max_connections
from joulie.settings.loading import group, setting
from joulie.settings.parsing import (
    ADDRESS,
    BOOLEAN,
    DURATION,
    DURATION_OR_ZERO,
    TEXT,
    TEXT_LIST,
    URL,
    Parser,
    integer,
    number,
    one_of,
)

_POWER_SOURCE = one_of("static", *sorted(tier.setting for tier in TIERS if tier.setting))


def _optional_rate(text: str) -> float | None:
    return None if text == "auto" else number(0, 1e6, above=True).parse(text)


_QPS = Parser(_optional_rate, "auto (50 + nodes/20) or a number above 0 up to 1e+06")


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """The decision settings, and where the operator's inputs and outputs are."""

    decision: DecisionSettings = group(DecisionSettings)
    metrics_addr: str = setting("METRICS_ADDR", ":8081", ADDRESS, "Where metrics and health are served.")
    max_connections: int = max_connections()
    power_source: str = setting(
        "OPERATOR_NODE_POWER_SOURCE", "static", _POWER_SOURCE, "Where measured node power comes from."
    )
    power_http_endpoint: str = setting(
        "OPERATOR_NODE_POWER_HTTP_ENDPOINT",
        "",
        URL,
        "Telemetry URL with source http; {node} becomes the node.",
    )
    power_prometheus_address: str = setting(
        "OPERATOR_NODE_POWER_PROMETHEUS_ADDRESS", "", URL, "Prometheus with source prometheus."
    )
    power_prometheus_query: str = setting(
        "OPERATOR_NODE_POWER_PROMETHEUS_QUERY",
        'sum by (node_name) (kepler_node_cpu_watts{zone="package"} or kepler_node_gpu_watts)',
        TEXT,
        "PromQL for node power: one query answered for each node, or one with {node} in it.",
    )
    power_poll_interval_s: float = setting(
        "POWER_POLL_INTERVAL",
        "15s",
        DURATION,
        "Time between two readings of power and utilisation; at most half of POWER_MAX_AGE.",
    )
    utilization_cpu_query: str = setting(
        "OPERATOR_UTILIZATION_CPU_QUERY",
        "max by (node_name) (kepler_node_cpu_usage_ratio)",
        TEXT,
        "PromQL for CPU utilisation, 0 to 1.",
    )
    utilization_gpu_query: str = setting(
        "OPERATOR_UTILIZATION_GPU_QUERY",
        "avg by (Hostname) (DCGM_FI_DEV_GPU_UTIL) / 100",
        TEXT,
        "PromQL for GPU utilisation, 0 to 1.",
    )
    enable_facility_metrics: bool = enable_facility_metrics()
    facility_prometheus_address: str = setting(
        "FACILITY_PROMETHEUS_ADDRESS",
        "http://prometheus-operated.monitoring:9090",
        URL,
        "Prometheus that knows the facility.",
    )
    facility_poll_interval_s: float = setting(
        "FACILITY_POLL_INTERVAL", "30s", DURATION, "Time between two readings of the facility."
    )
    facility_ambient_metric: str = setting(
        "FACILITY_AMBIENT_TEMP_METRIC",
        "datacenter_ambient_temperature_celsius",
        TEXT,
        "Ambient temperature, °C.",
    )
    facility_it_power_metric: str = setting(
        "FACILITY_IT_POWER_METRIC", "datacenter_total_it_power_watts", TEXT, "IT power, W."
    )
    facility_cooling_power_metric: str = setting(
        "FACILITY_COOLING_POWER_METRIC", "datacenter_cooling_power_watts", TEXT, "Cooling power, W."
    )
    facility_zone_ambient_template: str = setting(
        "FACILITY_ZONE_AMBIENT_METRIC_TEMPLATE", "", TEXT, "A zone's temperature; %s is the zone."
    )
    facility_rack_power_template: str = setting(
        "FACILITY_RACK_POWER_METRIC_TEMPLATE", "", TEXT, "A rack's power; %s is the rack."
    )
    kube_client_qps: float | None = setting(
        "KUBE_CLIENT_QPS", "auto", _QPS, "API writes a second; auto is 50 + nodes/20."
    )
    kube_client_burst: int = setting("KUBE_CLIENT_BURST", "100", integer(1, 10**6), "API writes at once.")
    status_deadband_pct: float = setting(
        "STATUS_DEADBAND_PCT",
        "2",
        number(0, 100),
        "A measured value is written when it moved by more than this.",
    )
    twin_refresh_interval_s: float = setting(
        "TWIN_REFRESH_INTERVAL", "2m", DURATION, "An unchanged twin is written again after this time."
    )
    empty_scope_grace_s: float = setting(
        "EMPTY_SCOPE_GRACE",
        "5m",
        DURATION_OR_ZERO,
        "How long twins are kept when no node is in scope any more: it may be a mistake in the selector.",
    )
    power_budget_w: float = setting(
        "POWER_BUDGET_WATTS",
        "0",
        number(0, 1e12),
        "Short form of a PowerBudget over all nodes in scope; 0 is none.",
    )
    power_budget_mode: str = setting(
        "POWER_BUDGET_MODE",
        "report",
        one_of("report", "enforce"),
        "Whether POWER_BUDGET_WATTS is enforced or only what the dashboard compares with.",
    )
    budget_interval_s: float = setting("BUDGET_INTERVAL", "5s", DURATION, "Time between two turns of the budget loop.")
    signal_prometheus_address: str = setting(
        "SIGNAL_PROMETHEUS_ADDRESS", "", URL, "Prometheus that answers the signals and meters of budgets."
    )
    watts_resource: bool = setting(
        "WATTS_RESOURCE",
        "false",
        BOOLEAN,
        "Advertise joulie.io/watts on nodes, so that kube-scheduler keeps to power budgets.",
    )
    dashboard: bool = setting("DASHBOARD", "true", BOOLEAN, "Serve the dashboard beside the metrics; it only reads.")
    dashboard_hosts: tuple[str, ...] = setting(
        "DASHBOARD_HOSTS",
        "",
        TEXT_LIST,
        "Public names the dashboard answers to besides addresses and names inside the cluster; * is any.",
    )
    cluster_name: str = setting("CLUSTER_NAME", "", TEXT, "What the dashboard calls this cluster.")

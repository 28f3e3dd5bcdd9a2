"""Tables of the documents that this software was made from, written anew: their readers find every name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.cli_runner import joulie

METRICS_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"

OPERATOR = {
    "RECONCILE_INTERVAL": "1m",
    "METRICS_ADDR": ":8081",
    "NODE_SELECTOR": "joulie.io/managed=true",
    "RESERVED_LABEL_KEY": "joulie.io/reserved",
    "POWER_PROFILE_LABEL": "joulie.io/power-profile",
    "POLICY_TYPE": "static_partition",
    "STATIC_HP_FRAC": "0.5",
    "QUEUE_HP_BASE_FRAC": "0.6",
    "QUEUE_HP_MIN": "1",
    "QUEUE_HP_MAX": "1000000",
    "QUEUE_PERF_PER_HP_NODE": "10",
    "PERFORMANCE_CAP_WATTS": "5000",
    "ECO_CAP_WATTS": "120",
    "CPU_PERFORMANCE_CAP_PCT_OF_MAX": "100",
    "CPU_ECO_CAP_PCT_OF_MAX": "60",
    "CPU_WRITE_ABSOLUTE_CAPS": "false",
    "GPU_PERFORMANCE_CAP_PCT_OF_MAX": "100",
    "GPU_ECO_CAP_PCT_OF_MAX": "60",
    "GPU_WRITE_ABSOLUTE_CAPS": "false",
    "GPU_MODEL_CAPS_JSON": "{}",
    "OPERATOR_NODE_POWER_SOURCE": "static",
    "OPERATOR_NODE_POWER_HTTP_ENDPOINT": "",
    "OPERATOR_NODE_POWER_PROMETHEUS_ADDRESS": "",
    "OPERATOR_NODE_POWER_PROMETHEUS_QUERY": (
        'sum by (node_name) (kepler_node_cpu_watts{zone="package"} or kepler_node_gpu_watts)'
    ),
    "POWER_POLL_INTERVAL": "15s",
    "ENABLE_FACILITY_METRICS": "false",
    "FACILITY_PROMETHEUS_ADDRESS": "http://prometheus-operated.monitoring:9090",
    "FACILITY_POLL_INTERVAL": "30s",
    "FACILITY_AMBIENT_TEMP_METRIC": "datacenter_ambient_temperature_celsius",
    "FACILITY_IT_POWER_METRIC": "datacenter_total_it_power_watts",
    "FACILITY_COOLING_POWER_METRIC": "datacenter_cooling_power_watts",
    "FACILITY_ZONE_AMBIENT_METRIC_TEMPLATE": "",
    "FACILITY_RACK_POWER_METRIC_TEMPLATE": "",
    "KUBE_CLIENT_BURST": "100",
    "STATUS_DEADBAND_PCT": "2",
    "TWIN_REFRESH_INTERVAL": "2m",
}
EXTENDER = {
    "EXTENDER_ADDR": ":9876",
    "METRICS_ADDR": ":9877",
    "CACHE_TTL": "30s",
    "TWIN_STALENESS_THRESHOLD": "5m",
    "MARGINAL_CPU_UTIL_COEFF": "0.7",
    "MARGINAL_GPU_UTIL_COEFF_STANDARD": "0.65",
    "MARGINAL_GPU_UTIL_COEFF_PERFORMANCE": "0.85",
    "ENABLE_FACILITY_METRICS": "false",
}
AGENT = {
    "AGENT_MODE": "daemonset",
    "NODE_NAME": "",
    "RECONCILE_INTERVAL": "20s",
    "METRICS_ADDR": ":8080",
    "SIMULATE_ONLY": "false",
    "HARDWARE_CATALOG_PATH": "",
    "POOL_NODE_SELECTOR": "joulie.io/managed=true",
    "POOL_SHARDS": "1",
    "DVFS_EMA_ALPHA": "0.3",
    "DVFS_HIGH_MARGIN_W": "10",
    "DVFS_LOW_MARGIN_W": "15",
    "DVFS_STEP_PCT": "10",
    "DVFS_COOLDOWN": "20s",
    "DVFS_TRIP_COUNT": "2",
    "DVFS_MIN_FREQ_KHZ": "1500000",
    "TELEMETRY_HTTP_TIMEOUT_SECONDS": "5",
}
# Values that the documents show, other than the defaults.
CHOSEN = {
    "operator": {
        "POLICY_TYPE": ("queue_aware_v1", "rule_swap_v1"),
        "OPERATOR_NODE_POWER_SOURCE": ("http", "prometheus"),
        "KUBE_CLIENT_QPS": ("50",),
        "RECONCILE_INTERVAL": ("90s", "1h30m"),
        "CPU_WRITE_ABSOLUTE_CAPS": ("true",),
        "GPU_MODEL_CAPS_JSON": ('{"NVIDIA-H100-NVL": {"minCapWatts": 200, "maxCapWatts": 400}}',),
        "FACILITY_RACK_POWER_METRIC_TEMPLATE": ('rack_power_watts{rack="%s"}',),
        "FACILITY_ZONE_AMBIENT_METRIC_TEMPLATE": ('zone_temperature_celsius{zone="%s"}',),
    },
    "agent": {
        "AGENT_MODE": ("pool",),
        "TELEMETRY_CPU_SOURCE": ("host", "http", "none", "prometheus"),
        "TELEMETRY_CPU_CONTROL": ("host", "http", "none"),
        "TELEMETRY_GPU_CONTROL": ("host", "http", "none"),
        "TELEMETRY_CPU_HTTP_ENDPOINT": ("http://simulator:18080/telemetry/{node}",),
        "TELEMETRY_CPU_CONTROL_HTTP_ENDPOINT": ("http://simulator:18080/control/{node}",),
        "TELEMETRY_GPU_CONTROL_HTTP_ENDPOINT": ("http://simulator:18080/control/{node}",),
        "TELEMETRY_CPU_CONTROL_MODE": ("auto", "rapl", "dvfs"),
    },
}
METRICS = {
    "joulie_operator_node_state": "node state",
    "joulie_operator_node_profile_label": "node profile",
    "joulie_operator_state_transitions_total": "node from_state to_state result",
    "joulie_operator_node_compute_density": "node component",
    "joulie_scheduler_filter_requests_total": "workload_class",
    "joulie_scheduler_prioritize_requests_total": "workload_class",
    "joulie_scheduler_filter_duration_seconds": "workload_class",
    "joulie_scheduler_prioritize_duration_seconds": "workload_class",
    "joulie_scheduler_final_node_score": "node workload_class",
    "joulie_scheduler_node_headroom_score": "node",
    "joulie_scheduler_stale_twin_data": "node",
    "joulie_backend_mode": "node mode",
    "joulie_policy_cap_watts": "node policy",
    "joulie_rapl_energy_uj": "node zone",
    "joulie_rapl_estimated_power_watts": "node zone",
    "joulie_rapl_package_total_power_watts": "node",
    "joulie_dvfs_observed_power_watts": "node",
    "joulie_dvfs_ema_power_watts": "node",
    "joulie_dvfs_throttle_pct": "node",
    "joulie_dvfs_above_trip_count": "node",
    "joulie_dvfs_below_trip_count": "node",
    "joulie_dvfs_actions_total": "node action",
    "joulie_dvfs_cpu_cur_freq_khz": "node cpu",
    "joulie_dvfs_cpu_max_freq_khz": "node cpu",
    "joulie_reconcile_errors_total": "node",
}


@pytest.mark.parametrize(("component", "table"), [("operator", OPERATOR), ("extender", EXTENDER), ("agent", AGENT)])
def test_every_variable_is_there_with_its_default_and_may_be_set_to_it(component: str, table: dict[str, str]) -> None:
    shown = {item["variable"]: item for item in joulie("config", component, "-o", "json").document}
    assert {variable: shown[variable]["default"] for variable in table} == table
    outcome = joulie("config", component, "-o", "json", env=table)
    assert outcome.err == ""
    shown = {item["variable"]: item for item in outcome.document}
    assert {variable: shown[variable]["value"] for variable in table} == table
    assert all(shown[variable]["set"] for variable, value in table.items() if value)


@pytest.mark.parametrize(
    ("component", "variable", "value"),
    [
        (component, variable, value)
        for component, choices in CHOSEN.items()
        for variable, values in choices.items()
        for value in values
    ],
)
def test_every_value_that_is_named_is_taken(component: str, variable: str, value: str) -> None:
    outcome = joulie("config", component, "-o", "json", env={variable: value})
    assert (outcome.code, outcome.err) == (0, "")
    assert {item["value"] for item in outcome.document if item["variable"] == variable} == {value}


def test_gpu_products_are_looked_for_under_the_labels_in_their_order() -> None:
    (shown,) = (
        item
        for item in joulie("config", "operator", "-o", "json").document
        if item["variable"] == "GPU_PRODUCT_LABEL_KEYS"
    )
    named = ["joulie.io/gpu.product", "nvidia.com/gpu.product", "amd.com/gpu.product", "amd.com/gpu.family"]
    assert [key for key in shown["default"].split(",") if key in named] == named


@pytest.mark.parametrize(("variable", "value"), [("POLICY_TYPE", "static-partition"), ("RECONCILE_INTERVAL", "60")])
def test_what_cannot_be_used_stops_with_a_line_that_names_the_variable(variable: str, value: str) -> None:
    outcome = joulie("config", "operator", env={variable: value})
    assert outcome.code == 2
    assert variable in outcome.complaint


def test_every_metric_is_there_with_its_labels() -> None:
    """The page is generated from the metrics themselves."""
    rows = re.findall(r"^\| `(joulie_\w+)` \| \w+ \| ([^|]*)\|", METRICS_PAGE.read_text(), re.MULTILINE)
    found = {name: set(re.findall(r"\w+", labels)) for name, labels in rows}
    assert {name: found.get(name) for name in METRICS} == {
        name: set(labels.split()) for name, labels in METRICS.items()
    }

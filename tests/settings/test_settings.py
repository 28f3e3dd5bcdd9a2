"""Every setting with its default, and what each parser takes and refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from joulie.errors import SettingError
from joulie.settings import (
    COMPONENTS,
    AgentSettings,
    DecisionSettings,
    DvfsSettings,
    ExtenderSettings,
    MarginalSettings,
    OperatorSettings,
    PlanSettings,
    ScoreSettings,
    TwinSettings,
    describe,
    load,
)
from joulie.settings.parsing import (
    ADDRESS,
    BOOLEAN,
    DURATION,
    DURATION_OR_ZERO,
    FRACTION,
    GPU_MODEL_CAPS,
    LABEL_KEY,
    OWN_LABEL_KEY,
    PCT_OF_MAX,
    SELECTOR,
    TEXT_LIST,
    URL,
    WATTS,
    GpuModelCaps,
    Parser,
    duration_s,
    integer,
    number,
    one_of,
)

OPERATOR = """
RECONCILE_INTERVAL=1m METRICS_ADDR=:8081 NODE_SELECTOR=joulie.io/managed=true RESERVED_LABEL_KEY=joulie.io/reserved
POWER_PROFILE_LABEL=joulie.io/power-profile POLICY_TYPE=static_partition STATIC_HP_FRAC=0.5 QUEUE_HP_BASE_FRAC=0.6
QUEUE_HP_MIN=1 QUEUE_HP_MAX=1000000 QUEUE_PERF_PER_HP_NODE=10 PERFORMANCE_CAP_WATTS=5000 ECO_CAP_WATTS=120
CPU_PERFORMANCE_CAP_PCT_OF_MAX=100 CPU_ECO_CAP_PCT_OF_MAX=60 CPU_WRITE_ABSOLUTE_CAPS=false
GPU_PERFORMANCE_CAP_PCT_OF_MAX=100 GPU_ECO_CAP_PCT_OF_MAX=60 GPU_WRITE_ABSOLUTE_CAPS=false GPU_MODEL_CAPS_JSON={}
GPU_PRODUCT_LABEL_KEYS=joulie.io/gpu.product,nvidia.com/gpu.product,amd.com/gpu.product,amd.com/gpu.product-name,amd.com/gpu.family
OPERATOR_NODE_POWER_SOURCE=static OPERATOR_NODE_POWER_HTTP_ENDPOINT= OPERATOR_NODE_POWER_PROMETHEUS_ADDRESS=
ENABLE_FACILITY_METRICS=false FACILITY_PROMETHEUS_ADDRESS=http://prometheus-operated.monitoring:9090
FACILITY_POLL_INTERVAL=30s FACILITY_AMBIENT_TEMP_METRIC=datacenter_ambient_temperature_celsius
FACILITY_IT_POWER_METRIC=datacenter_total_it_power_watts FACILITY_COOLING_POWER_METRIC=datacenter_cooling_power_watts
FACILITY_ZONE_AMBIENT_METRIC_TEMPLATE= FACILITY_RACK_POWER_METRIC_TEMPLATE= KUBE_CLIENT_QPS=auto KUBE_CLIENT_BURST=100
STATUS_DEADBAND_PCT=2 TWIN_REFRESH_INTERVAL=2m COOLING_MODEL=linear AMBIENT_TEMP_C=20 REFERENCE_NODE_POWER_WATTS=4000
RACK_CAPACITY_WATTS=50000 POWER_MAX_AGE=2m MARGINAL_CPU_UTIL_COEFF=0.7 MARGINAL_GPU_UTIL_COEFF_STANDARD=0.65
MARGINAL_GPU_UTIL_COEFF_PERFORMANCE=0.85 HARDWARE_CATALOG_PATH= POWER_BUDGET_WATTS=0
"""
QUERIES = {
    "OPERATOR_NODE_POWER_PROMETHEUS_QUERY": (
        'sum by (node_name) (kepler_node_cpu_watts{zone="package"} or kepler_node_gpu_watts)'
    ),
    "OPERATOR_UTILIZATION_CPU_QUERY": "max by (node_name) (kepler_node_cpu_usage_ratio)",
    "OPERATOR_UTILIZATION_GPU_QUERY": "avg by (Hostname) (DCGM_FI_DEV_GPU_UTIL) / 100",
}
EXTENDER = """
EXTENDER_ADDR=:9876 METRICS_ADDR=:9877 CACHE_TTL=30s TWIN_STALENESS_THRESHOLD=5m EXTENDER_SCORE_MAX=100
EXTENDER_REQUEST_TIMEOUT=4s ENABLE_FACILITY_METRICS=false
EXTENDER_COUNT_RECENT_PODS=true MARGINAL_CPU_UTIL_COEFF=0.7 MARGINAL_GPU_UTIL_COEFF_STANDARD=0.65
MARGINAL_GPU_UTIL_COEFF_PERFORMANCE=0.85 POWER_PROFILE_LABEL=joulie.io/power-profile GPU_MODEL_CAPS_JSON={}
"""
AGENT = """
AGENT_MODE=daemonset NODE_NAME= RECONCILE_INTERVAL=20s METRICS_ADDR=:8080 SIMULATE_ONLY=false HARDWARE_CATALOG_PATH=
POOL_NODE_SELECTOR=joulie.io/managed=true POOL_SHARDS=1 POOL_SHARD_ID=auto POD_NAME= DVFS_EMA_ALPHA=0.3
DVFS_HIGH_MARGIN_W=10 DVFS_LOW_MARGIN_W=15 DVFS_STEP_PCT=10 DVFS_COOLDOWN=20s DVFS_TRIP_COUNT=2
DVFS_MIN_FREQ_KHZ=1500000 TELEMETRY_CPU_SOURCE=host TELEMETRY_CPU_CONTROL=host TELEMETRY_GPU_CONTROL=host
TELEMETRY_CPU_HTTP_ENDPOINT= TELEMETRY_CPU_CONTROL_HTTP_ENDPOINT= TELEMETRY_GPU_CONTROL_HTTP_ENDPOINT=
TELEMETRY_CPU_CONTROL_MODE=auto TELEMETRY_HTTP_TIMEOUT_SECONDS=5 STATE_DIR=/var/lib/joulie CAP_LEASE=10m
CAP_LEASE_ACTION=restore
"""


def listed(text: str) -> dict[str, str]:
    return dict(item.split("=", 1) for item in text.split())


DEFAULTS = {"operator": {**listed(OPERATOR), **QUERIES}, "extender": listed(EXTENDER), "agent": listed(AGENT)}


def all_defaults() -> Iterator[Any]:
    for component, variables in DEFAULTS.items():
        for variable, default in variables.items():
            yield pytest.param(component, variable, default, id=f"{component}-{variable}")


@pytest.mark.parametrize(("component", "variable", "default"), list(all_defaults()))
def test_the_variable_exists_with_its_default(component: str, variable: str, default: str) -> None:
    [setting] = [each for each in describe(COMPONENTS[component], {}) if each.variable == variable]
    assert setting.default == default
    assert setting.value == default
    assert not setting.is_set
    assert setting.meaning.endswith(".")
    assert setting.allowed


@pytest.mark.parametrize("component", COMPONENTS)
def test_unset_settings_hold_what_their_defaults_say(component: str) -> None:
    settings_class = COMPONENTS[component]
    written_out = {each.variable: each.default for each in describe(settings_class, {}) if each.default}
    assert load(settings_class, written_out) == load(settings_class, {}) == settings_class()


def test_defaults_as_values() -> None:
    plan, twin, marginal = PlanSettings(), TwinSettings(), MarginalSettings()
    assert (plan.reconcile_interval_s, plan.static_hp_frac, plan.queue_hp_max) == (60, 0.5, 1_000_000)
    assert (plan.performance_cap_w, plan.eco_cap_w, plan.cpu_eco_cap_pct, plan.gpu_eco_cap_pct) == (5000, 120, 60, 60)
    assert plan.node_selector.matches({"joulie.io/managed": "true"})
    assert not plan.node_selector.matches({})
    assert (twin.ambient_c, twin.reference_node_power_w, twin.rack_capacity_w, twin.power_max_age_s) == (
        20, 4000, 50_000, 120,
    )  # fmt: skip
    assert (marginal.cpu_coeff, marginal.gpu_coeff_standard, marginal.gpu_coeff_performance) == (0.7, 0.65, 0.85)
    assert (ScoreSettings().twin_staleness_s, ScoreSettings().score_max) == (300, 100)
    assert (DvfsSettings().cooldown_s, AgentSettings().reconcile_interval_s) == (20, 20)
    assert OperatorSettings().kube_client_qps is None
    assert AgentSettings().pool_shard_id is None


def test_described_values_are_those_of_the_environment() -> None:
    [shown] = [each for each in describe(PlanSettings, {"ECO_CAP_WATTS": " 99 "}) if each.variable == "ECO_CAP_WATTS"]
    assert (shown.value, shown.default, shown.is_set) == ("99", "120", True)


class TestLoading:
    def test_the_first_wrong_value_stops_with_its_name_its_text_and_what_is_allowed(self) -> None:
        with pytest.raises(SettingError) as raised:
            load(OperatorSettings, {"RECONCILE_INTERVAL": "soon"})
        assert str(raised.value) == (
            "RECONCILE_INTERVAL='soon' cannot be used: "
            "allowed is a duration such as 90s, 5m or 1h30m, above 0 up to a year"
        )
        assert raised.value.variable == "RECONCILE_INTERVAL"
        assert raised.value.exit_code == 2

    @pytest.mark.parametrize(
        ("settings_class", "variable", "value", "allowed"),
        [
            (DecisionSettings, "STATIC_HP_FRAC", "1.01", "a number from 0 to 1"),
            (DecisionSettings, "STATIC_HP_FRAC", "-0.1", "a number from 0 to 1"),
            (DecisionSettings, "STATIC_HP_FRAC", "half", "a number from 0 to 1"),
            (DecisionSettings, "STATIC_HP_FRAC", "nan", "a number from 0 to 1"),
            (DecisionSettings, "QUEUE_HP_BASE_FRAC", "2", "a number from 0 to 1"),
            (DecisionSettings, "QUEUE_PERF_PER_HP_NODE", "0", "a whole number from 1 to 1000000000"),
            (DecisionSettings, "QUEUE_PERF_PER_HP_NODE", "-1", "a whole number from 1 to 1000000000"),
            (DecisionSettings, "QUEUE_HP_MIN", "1.5", "a whole number from -1000000000 to 1000000000"),
            (
                DecisionSettings,
                "NODE_SELECTOR",
                "a in b",
                "a label selector such as a=b,c in (d,e),!f; empty takes all",
            ),
            (DecisionSettings, "CPU_WRITE_ABSOLUTE_CAPS", "yes", "true or false"),
            (DecisionSettings, "ECO_CAP_WATTS", "0", "a number above 0 up to 1e+06"),
            (DecisionSettings, "ECO_CAP_WATTS", "-120", "a number above 0 up to 1e+06"),
            (DecisionSettings, "GPU_ECO_CAP_PCT_OF_MAX", "101", "a number above 0 up to 100"),
            (DecisionSettings, "GPU_MODEL_CAPS_JSON", "[]", 'JSON such as {"H100 SXM": {"minCapWatts": 200, '),
            (DecisionSettings, "RACK_CAPACITY_WATTS", "0", "a number above 0 up to 1e+09"),
            (OperatorSettings, "OPERATOR_NODE_POWER_SOURCE", "kepler", "one of static, "),
            (OperatorSettings, "KUBE_CLIENT_QPS", "0", "auto (50 + nodes/20) or a number above 0 up to 1e+06"),
            (OperatorSettings, "METRICS_ADDR", "8081", "an address such as :8081 or 127.0.0.1:8081"),
            (
                OperatorSettings,
                "FACILITY_PROMETHEUS_ADDRESS",
                "prometheus:9090",
                "a URL starting with http:// or https://",
            ),
            (ExtenderSettings, "EXTENDER_SCORE_MAX", "0", "a whole number from 1 to 100"),
            (ExtenderSettings, "EXTENDER_SCORE_MAX", "101", "a whole number from 1 to 100"),
            (AgentSettings, "AGENT_MODE", "swarm", "one of daemonset, pool"),
            (AgentSettings, "DVFS_EMA_ALPHA", "0", "a number above 0 up to 1"),
            (AgentSettings, "DVFS_TRIP_COUNT", "0", "a whole number from 1 to 1000"),
            (AgentSettings, "TELEMETRY_CPU_CONTROL", "prometheus", "one of host, http, none"),
            (AgentSettings, "TELEMETRY_CPU_CONTROL_MODE", "gpu", "one of auto, rapl, dvfs"),
            (
                AgentSettings,
                "POOL_SHARD_ID",
                "-1",
                "auto (the ordinal at the end of POD_NAME) or a whole number from 0",
            ),
            (AgentSettings, "CAP_LEASE_ACTION", "panic", "one of restore, hold"),
        ],
    )
    def test_each_wrong_value_is_named(self, settings_class: type, variable: str, value: str, allowed: str) -> None:
        with pytest.raises(SettingError) as raised:
            load(settings_class, {variable: value})
        assert str(raised.value).startswith(f"{variable}={value!r} cannot be used: allowed is {allowed}")
        assert "\n" not in str(raised.value)

    def test_an_empty_variable_counts_as_unset(self) -> None:
        assert load(PlanSettings, {"STATIC_HP_FRAC": "", "POLICY_TYPE": "  "}) == PlanSettings()

    def test_an_empty_selector_takes_all_nodes(self) -> None:
        assert load(PlanSettings, {"NODE_SELECTOR": ""}).node_selector.matches({})

    def test_spaces_around_a_value_do_not_matter(self) -> None:
        assert load(PlanSettings, {"ECO_CAP_WATTS": " 90 "}).eco_cap_w == 90

    def test_plan_and_score_read_the_same_profile_label(self) -> None:
        env = {"POWER_PROFILE_LABEL": "example.com/p"}
        assert load(PlanSettings, env).power_profile_label == load(ScoreSettings, env).power_profile_label
        assert load(PlanSettings, env).power_profile_label == "example.com/p"

    def test_settings_cannot_be_changed_afterwards(self) -> None:
        with pytest.raises(AttributeError):
            PlanSettings().static_hp_frac = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90), ("5m", 300), ("1h30m", 5400), ("1.5h", 5400), ("1h1m1s", 3661), ("300ms", 0.3), ("0", 0),
        ("0s", 0), ("2us", 2e-6), ("2µs", 2e-6), ("2μs", 2e-6), ("7ns", 7e-9), (".5s", 0.5), ("5.s", 5),
        ("1m1m", 120), ("30m1h", 5400), ("0.1s", 0.1), ("008s", 8),
    ],
)  # fmt: skip
def test_durations_that_go_takes(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "5", "s", ".s", "1d", "1 s", "1h 30m", "1h30", "1e3s", "5S", "1,5s", "٣s", "1h-5m", "soon", "00"]
)
def test_durations_that_go_refuses_too(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        duration_s(text)


@pytest.mark.parametrize("text", ["-5s", "+5s", "-0", "+0"])
def test_signed_durations_are_refused_though_go_takes_them(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        duration_s(text)


def refuses(parser: Parser[Any], text: str) -> bool:
    try:
        parser.parse(text)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize(
    ("parser", "taken", "refused"),
    [
        pytest.param(DURATION, ["1ns", "8784h"], ["0", "0s", "8785h"], id="DURATION"),
        pytest.param(DURATION_OR_ZERO, ["0", "0s", "20s"], ["8785h", "-1s"], id="DURATION_OR_ZERO"),
        pytest.param(BOOLEAN, ["true", "True", "1", "t", "FALSE", "0", "f"], ["yes", "on", "2", "tr ue"], id="BOOLEAN"),
        pytest.param(
            FRACTION, ["0", "1", ".5", "1e-3", "+0.2"], ["1.1", "-0.1", "inf", "1/2", "0x1", "1_0"], id="FRACTION"
        ),
        pytest.param(PCT_OF_MAX, ["0.1", "100"], ["0", "100.1", "60%"], id="PCT_OF_MAX"),
        pytest.param(WATTS, ["0.5", "1000000"], ["0", "1000001", "1e400", "120W"], id="WATTS"),
        pytest.param(integer(-1, 9), ["-1", "9", "+3", "007"], ["-2", "10", "1.0", "1e0", "", "9" * 40], id="integer"),
        pytest.param(number(0, 5, above=True), ["0.001", "5"], ["0", "5.1", "--1", "٣"], id="number"),
        pytest.param(one_of("a", "b"), ["a", "b"], ["A", "c", "a,b"], id="one_of"),
        pytest.param(
            ADDRESS, [":80", "0.0.0.0:1", "[::1]:8080", "host:65535"], ["80", ":65536", "a b:1", ":"], id="ADDRESS"
        ),
        pytest.param(
            URL, ["http://a", "https://a:1/b?c={node}", ""], ["a", "ftp://a", "http://", "http://a b"], id="URL"
        ),
        pytest.param(
            LABEL_KEY, ["a", "joulie.io/x", "A_b.c-d"], ["", "a/", "-a", "a b", "a/b/c", "x" * 64], id="LABEL_KEY"
        ),
        pytest.param(
            OWN_LABEL_KEY,
            ["a", "example.com/x", "joulie.io/power-profile", "notkubernetes.io/x"],
            [
                "",
                "joulie.io/managed",
                "joulie.io/draining",
                "kubernetes.io/hostname",
                "node.kubernetes.io/x",
                "k8s.io/x",
            ],
            id="OWN_LABEL_KEY",
        ),
        pytest.param(
            SELECTOR, ["", "a", "!a", "a=b", "a in (b,c)", "a>1"], ["a in", "=b", "a=b,", "a>x"], id="SELECTOR"
        ),
        pytest.param(
            GPU_MODEL_CAPS,
            [
                "{}",
                '{"a": {}}',
                '{"a": {"minCapWatts": 1}}',
                '{"a": {"maxCapWatts": -1.5}}',
                '{"a": {"minCapWatts": null}}',
            ],
            [
                "",
                "{",
                "[]",
                '{"a": 1}',
                '{"a": {"minWatts": 1}}',
                '{"a": {"minCapWatts": "1"}}',
                '{"a": {"maxCapWatts": 1e9}}',
                '{"a": {"maxCapWatts": NaN}}',
                '{"a": {"maxCapWatts": 1e999}}',
            ],
            id="GPU_MODEL_CAPS",
        ),
    ],
)
def test_what_a_parser_takes_and_refuses(parser: Parser[Any], taken: list[str], refused: list[str]) -> None:
    assert [text for text in taken if refuses(parser, text)] == []
    assert [text for text in refused if not refuses(parser, text)] == []


def test_what_is_parsed() -> None:
    assert TEXT_LIST.parse(" a, b ,,c ") == ("a", "b", "c")
    caps = GPU_MODEL_CAPS.parse('{"H100 SXM": {"minCapWatts": 200, "maxCapWatts": 700.0}}')
    assert caps == {"H100 SXM": GpuModelCaps(200, 700)}
    assert BOOLEAN.parse("T") is True
    assert BOOLEAN.parse("0") is False
    assert load(OperatorSettings, {"KUBE_CLIENT_QPS": "12.5"}).kube_client_qps == 12.5
    assert load(AgentSettings, {"POOL_SHARD_ID": "3"}).pool_shard_id == 3
    assert load(PlanSettings, {"QUEUE_HP_MAX": "-1"}).queue_hp_max == -1

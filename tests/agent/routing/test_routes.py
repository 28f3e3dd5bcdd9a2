"""Where power is read and where caps go, and who decides that; and which target is in force."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from joulie.agent.routing.routes import ControlRoute, Route, route_of
from joulie.agent.targets import target_of
from joulie.devices.http.client import sibling_url
from joulie.model.api import TelemetryProfile
from joulie.model.rfc3339 import parse_time_s
from joulie.model.snapshot import Pin
from joulie.settings import AgentSettings, load
from tests.agent.profiles import http_control, pin, profile, twin

NODE = "node-1"
LABELS = {"joulie.io/managed": "true", "pool": "sim"}
NOW_S = parse_time_s("2026-06-01T00:00:00Z")
SETTINGS = load(AgentSettings, {})
OF_NODE, OF_SELECTOR, OF_CLUSTER = (
    {"scope": "node", "nodeName": NODE},
    {"scope": "cluster", "nodeSelector": {"matchLabels": {"pool": "sim"}}},
    {"scope": "cluster"},
)


def _route(*profiles: TelemetryProfile, **env: str) -> Route:
    return route_of(NODE, LABELS, profiles, load(AgentSettings, env))


def test_without_a_profile_the_settings_hold() -> None:
    assert _route().cpu == ControlRoute("host")
    route = _route(
        TELEMETRY_CPU_CONTROL="http",
        TELEMETRY_CPU_CONTROL_HTTP_ENDPOINT="http://sim/control/{node}",
        TELEMETRY_CPU_CONTROL_MODE="dvfs",
        TELEMETRY_GPU_CONTROL="none",
        TELEMETRY_CPU_SOURCE="http",
        TELEMETRY_CPU_HTTP_ENDPOINT="http://sim/telemetry/{node}",
        TELEMETRY_HTTP_TIMEOUT_SECONDS="2",
    )
    assert route.cpu == ControlRoute("http", "http://sim/control/node-1", 2.0, "dvfs")
    assert route.gpu == ControlRoute("none")
    assert (route.cpu_power.type, route.cpu_power.endpoint) == ("http", "http://sim/telemetry/node-1")


def test_a_profile_for_the_node_beats_one_for_a_selector_which_beats_one_for_the_cluster() -> None:
    ranked = [
        profile("the-node", OF_NODE, controls={"cpu": http_control("http://node/control/{node}")}),
        profile("a-selector", OF_SELECTOR, controls={"cpu": http_control("http://selector/control/{node}")}),
        profile("all", OF_CLUSTER, "2020-01-01T00:00:00Z", controls={"cpu": http_control("http://all/control/{node}")}),
    ]
    for given in itertools.permutations(ranked):
        assert _route(*given).cpu.endpoint == "http://node/control/node-1"
    assert _route(*ranked[1:]).cpu.endpoint == "http://selector/control/node-1"
    assert _route(ranked[2]).cpu.profile == "all"


def test_what_a_profile_does_not_say_comes_from_the_next() -> None:
    route = _route(
        profile("one", OF_NODE, controls={"gpu": {"type": "none"}}),
        profile("two", OF_CLUSTER, controls={"cpu": http_control("http://all/c/{node}"), "gpu": {"type": "host"}}),
    )
    assert (route.gpu.type, route.cpu.type) == ("none", "http")


def test_profiles_that_speak_of_others_are_not_heard() -> None:
    others = (
        profile("other", {"scope": "node", "nodeName": "node-2"}, controls={"cpu": {"type": "none"}}),
        profile(
            "none",
            {"scope": "cluster", "nodeSelector": {"matchLabels": {"pool": "real"}}},
            controls={"cpu": {"type": "none"}},
        ),
    )
    assert _route(*others).cpu.type == "host"


def test_of_equal_profiles_the_oldest_speaks_then_the_first_by_name() -> None:
    young = profile("a", OF_CLUSTER, "2026-02-01T00:00:00Z", controls={"cpu": {"type": "none"}})
    old = profile("b", OF_CLUSTER, "2026-01-01T00:00:00Z", controls={"cpu": {"type": "host"}})
    same_age = profile("c", OF_CLUSTER, "2026-01-01T00:00:00Z", controls={"cpu": {"type": "none"}})
    for given in itertools.permutations((young, old, same_age)):
        assert _route(*given).cpu.profile == "b"


def test_only_profiles_of_one_node_that_route_control_are_told_of_results() -> None:
    route = _route(
        profile("node-control", OF_NODE, controls={"cpu": {"type": "host"}}),
        profile("node-source", OF_NODE, sources={"cpu": {"type": "none"}}),
        profile("cluster", OF_CLUSTER, controls={"cpu": {"type": "host"}}),
    )
    assert route.reports_to == ("node-control",)


def test_a_profile_completes_itself_from_the_settings_and_overrides_them() -> None:
    env = {"TELEMETRY_CPU_CONTROL_HTTP_ENDPOINT": "http://default/control/{node}", "TELEMETRY_CPU_CONTROL_MODE": "rapl"}
    assert _route(profile("p", OF_NODE, controls={"cpu": {"type": "http"}}), **env).cpu == ControlRoute(
        "http", "http://default/control/node-1", 5.0, "rapl", profile="p"
    )
    told = http_control("http://own/control/{node}", timeoutSeconds=9, mode="dvfs")
    assert _route(profile("p", OF_NODE, controls={"cpu": told}), **env).cpu == ControlRoute(
        "http", "http://own/control/node-1", 9.0, "dvfs", profile="p"
    )


@pytest.mark.parametrize(
    ("route", "fault"),
    [
        (_route(TELEMETRY_CPU_CONTROL="http").cpu, "TELEMETRY_CPU_CONTROL_HTTP_ENDPOINT: missing"),
        (_route(TELEMETRY_CPU_SOURCE="http").cpu_power, "TELEMETRY_CPU_HTTP_ENDPOINT: missing"),
        (
            _route(profile("p", OF_NODE, controls={"gpu": {"type": "http"}})).gpu,
            "spec.controls.gpu.http.endpoint: missing",
        ),
        (
            _route(profile("p", OF_NODE, sources={"cpu": {"type": "http"}})).cpu_power,
            "spec.sources.cpu.http.endpoint: missing",
        ),
        (
            _route(TELEMETRY_CPU_SOURCE="prometheus").cpu_power,
            "spec.sources.cpu.prometheus: missing in every TelemetryProfile of this node",
        ),
    ],
)
def test_a_route_that_leads_nowhere_names_what_is_missing(route: ControlRoute, fault: str) -> None:
    assert route.fault == fault


def test_the_node_is_named_in_endpoints_and_queries() -> None:
    asked = {"endpoint": "http://prom/{node}", "query": 'power{node="{node}"}'}
    told = profile("p", OF_NODE, sources={"cpu": {"type": "prometheus", "prometheus": asked}})
    route = _route(told).cpu_power
    assert (route.endpoint, route.query) == ("http://prom/node-1", 'power{node="node-1"}')
    strange = route_of("a/b c", {}, [], load(AgentSettings, {**_HTTP_EVERYWHERE}))
    assert strange.cpu.endpoint == "http://sim/control/a%2Fb%20c"


_HTTP_EVERYWHERE = {
    "TELEMETRY_CPU_CONTROL": "http",
    "TELEMETRY_CPU_CONTROL_HTTP_ENDPOINT": "http://sim/control/{node}",
}


def test_the_simulators_other_addresses_follow_from_that_of_control() -> None:
    assert sibling_url("http://sim:18080/control/node-1", "telemetry") == "http://sim:18080/telemetry/node-1"
    assert sibling_url("http://sim/control/control/x", "state") == "http://sim/control/state/x"
    assert sibling_url("http://bmc/cap?node=x", "state") == ""


# --- targets -------------------------------------------------------------------------------------------------------

ECO = {
    "profile": "eco",
    "cpu": {"packagePowerCapWatts": 300, "packagePowerCapPctOfMax": 60},
    "gpu": {"powerCap": {"scope": "perGpu", "capPctOfMax": 50}},
    "policy": {"name": "static_partition"},
}


def test_a_twins_spec_is_the_target() -> None:
    target = target_of(NODE, LABELS, twin(NODE, ECO, lastUpdated="2026-05-31T23:59:00Z"), (), SETTINGS, NOW_S)
    assert target is not None
    assert (target.cpu_w_each, target.cpu_pct, target.gpu_w_each, target.gpu_pct) == (300, 60, None, 50)
    assert (target.profile, target.chosen_by, target.origin, target.kept_by_pin) == (
        "eco",
        "static_partition",
        "twin",
        False,
    )


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        (pin("p", NODE, "eco"), True),
        (pin("p", NODE, "performance"), False),
        (pin("p", "node-2", "eco"), False),
        (pin("p", NODE, "eco", expiresAt="2026-05-31T23:59:59Z"), False),
        (pin("p", NODE, "eco", cpu={"packagePowerCapPctOfMax": 50}), True),  # raised to what the hardware can hold
        (pin("p", NODE, "eco", cpu={"packagePowerCapPctOfMax": 80}), False),
        (pin("p", NODE, "eco", gpu={"powerCap": {"capPctOfMax": 70}}), False),
    ],
)
def test_a_twin_beats_a_pin_and_a_live_pin_keeps_only_what_it_asks_for(wanted: Pin, kept: bool) -> None:
    target = target_of(NODE, LABELS, twin(NODE, ECO), [wanted], SETTINGS, NOW_S)
    assert target is not None
    assert (target.profile, target.kept_by_pin) == ("eco", kept)


@pytest.mark.parametrize(
    ("asked", "held"),
    [
        ({"packagePowerCapPctOfMax": 90}, {"packagePowerCapWatts": 100}),
        ({"packagePowerCapWatts": 300}, {"packagePowerCapPctOfMax": 40}),
    ],
)
def test_a_pin_keeps_a_cap_in_another_unit_only_where_the_operator_made_it_for_a_pin(
    asked: dict[str, Any], held: dict[str, Any]
) -> None:
    for chosen_by, kept in (("static_partition", False), ("pinned", True)):
        spec = {"profile": "eco", "cpu": held, "policy": {"name": chosen_by}}
        target = target_of(NODE, LABELS, twin(NODE, spec), [pin("p", NODE, "eco", cpu=asked)], SETTINGS, NOW_S)
        assert target is not None
        assert target.kept_by_pin is kept


def test_a_refresh_is_what_the_operator_writes_and_not_what_the_agent_does() -> None:
    def refresh(spec: dict[str, Any] = ECO, **status: Any) -> str:
        target = target_of(NODE, LABELS, twin(NODE, spec, **status), (), SETTINGS, NOW_S)
        assert target is not None
        return target.refresh

    first = refresh(lastUpdated="2026-05-31T23:59:00Z")
    assert refresh(lastUpdated="2026-05-31T23:59:00Z", controlStatus={"cpu": {"result": "applied"}}) == first
    assert refresh(lastUpdated="2026-05-31T23:58:00Z") != first
    assert refresh({**ECO, "profile": "performance"}, lastUpdated="2026-05-31T23:59:00Z") != first


def test_a_twin_without_a_profile_asks_for_nothing_and_no_pin_speaks_instead() -> None:
    assert target_of(NODE, LABELS, twin(NODE), [pin("p", NODE, "eco")], SETTINGS, NOW_S) is None


def test_without_a_twin_the_pin_is_the_target_with_caps_from_the_settings() -> None:
    target = target_of(NODE, LABELS, None, [pin("p", NODE, "eco")], SETTINGS, NOW_S)
    assert target is not None
    assert (target.cpu_w_each, target.cpu_pct, target.gpu_pct) == (None, 60, 60)
    assert (target.chosen_by, target.origin, target.refresh) == ("pinned", "pin", "")
    told = pin("p", NODE, "eco", cpu={"packagePowerCapWatts": 200}, gpu={"powerCap": {"capWattsPerGpu": 250}})
    target = target_of(NODE, LABELS, None, [told], SETTINGS, NOW_S)
    assert target is not None
    assert (target.cpu_w_each, target.cpu_pct, target.gpu_w_each, target.gpu_pct) == (200, None, 250, None)


def test_a_pin_that_has_ended_is_none() -> None:
    ended = pin("p", NODE, "eco", expiresAt="2026-05-31T23:59:59Z")
    assert target_of(NODE, LABELS, None, [ended], SETTINGS, NOW_S) is None
    to_come = pin("q", NODE, "performance", "2026-02-01T00:00:00Z", expiresAt="2026-06-01T00:00:01Z")
    target = target_of(NODE, LABELS, None, [ended, to_come], SETTINGS, NOW_S)
    assert target is not None
    assert target.profile == "performance"


def test_of_several_pins_the_oldest_holds_then_the_first_by_name() -> None:
    pins = [
        pin("c", NODE, "performance", "2026-02-01T00:00:00Z"),
        pin("b", NODE, "eco"),
        pin("a", NODE, "performance", "2026-01-02T00:00:00Z"),
    ]
    for given in itertools.permutations(pins):
        target = target_of(NODE, LABELS, None, given, SETTINGS, NOW_S)
        assert target is not None
        assert target.profile == "eco"


@pytest.mark.parametrize("labels", [{}, {**LABELS, "joulie.io/reserved": "true"}])
def test_a_pin_alone_does_not_bring_a_node_into_scope(labels: dict[str, str]) -> None:
    assert target_of(NODE, labels, None, [pin("p", NODE, "eco")], SETTINGS, NOW_S) is None

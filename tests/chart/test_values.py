"""Wrong values are refused before anything reaches a cluster, in words that say what to do."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest
import yaml
from jsonschema import Draft7Validator

from joulie import __version__
from joulie.settings import COMPONENTS, describe, load
from joulie.settings.parsing import Parser
from tests.chart.charts import CHART, SIMULATED, Helm, Refused, container, environment, find
from tools.generate.chart_settings import OWNED, chart_settings, check_of

pytestmark = pytest.mark.slow

DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
SAMPLES = (
    *(
        "",
        "0",
        "1",
        "-1",
        "0.5",
        "1.5",
        "100",
        "101",
        "1000000",
        "1e3",
        "1e99",
        "nan",
        "5x",
        "x",
        "TRUE",
        "false",
        "yes",
    ),
    *("90s", "1h30m", "1d", "0s", ".5m", "auto", ":8081", "8081", "localhost:80", "http://a/{node}", "ftp://a", "a=b"),
    *("joulie.io/x", "-x", "X/y", "128Mi", "1.5Gi", "12Q", "static", "prometheus", "host", "none", "restore", "hold"),
)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"operater": {}}, "additional properties 'operater' not allowed"),
        ({"operator": {"replicas": 0}}, r"at '/operator/replicas': minimum: got 0, want 1"),
        ({"operator": {"replicas": "two"}}, r"at '/operator/replicas': got string, want integer"),
        ({"dryRun": "yes"}, r"at '/dryRun': got string, want boolean"),
        ({"agent": {"mode": "deamonset"}}, r"at '/agent/mode': value must be one of 'daemonset', 'pool'"),
        ({"image": {"pullPolicy": "Sometimes"}}, r"value must be one of 'Always', 'IfNotPresent', 'Never'"),
        ({"logLevel": "loud"}, r"at '/logLevel': value must be one of 'debug', 'info', 'warning', 'error'"),
        (
            {"operator": {"settings": {"RECONCILE_INTERVALL": "1m"}}},
            r"at '/operator/settings': additional properties 'RECONCILE_INTERVALL' not allowed",
        ),
        ({"operator": {"settings": {"POLICY_TYPE": ["a"]}}}, r"got array, want boolean or number or string"),
        (
            {"operator": {"settings": {"RECONCILE_INTERVAL": "1 minute"}}},
            r'operator.settings.RECONCILE_INTERVAL="1 minute" cannot be used: allowed is a duration such as 90s',
        ),
        (
            {"operator": {"settings": {"STATIC_HP_FRAC": 1.5}}},
            r'STATIC_HP_FRAC="1.5" cannot be used: allowed is a number from 0 to 1. static_partition: share',
        ),
        (
            {"agent": {"settings": {"CAP_LEASE_ACTION": "forget"}}},
            r'agent.settings.CAP_LEASE_ACTION="forget" cannot be used: allowed is one of restore, hold',
        ),
        (
            {"settings": {"POWER_PROFILE_LABEL": "no spaces please"}},
            r"settings.POWER_PROFILE_LABEL=\"no spaces please\" cannot be used: allowed is a label key such as",
        ),
        (
            {"agent": {"settings": {"SIMULATE_ONLY": True}}},
            "agent.settings.SIMULATE_ONLY cannot be set here: set dryRun",
        ),
        (
            {"operator": {"settings": {"NODE_SELECTOR": "a=b"}}},
            "operator.settings.NODE_SELECTOR cannot be set here: set managedNodes",
        ),
        (
            {"managedNodes": "rack in ((r1)"},
            r'managedNodes="rack in \(\(r1\)" cannot be used: it is a label selector such as joulie.io/managed=true',
        ),
        (
            {"extender": {"settings": {"POWER_PROFILE_LABEL": "a.b/c"}}},
            "cannot be set here: set settings.POWER_PROFILE_LABEL, for all components",
        ),
        (
            {"scheduler": {"enabled": True}},
            "scheduler.image is empty: set it to the image of your cluster's own kube-sch",
        ),
        (
            {"scheduler": {"enabled": True, "image": "x"}, "extender": {"enabled": False}},
            "scheduler.enabled needs extender.enabled",
        ),
        ({**SIMULATED, "agent": {"mode": "pool", "hsmp": {"enabled": True}}}, "go with agent.mode: daemonset"),
        (
            {"agent": {"affinity": {"nodeAffinity": {}}}},
            "agent.affinity is gone: set agent.pool.affinity, with agent.mode",
        ),
        (
            {"agent": {"nodeSelector": {"a": "b"}}},
            "agent.nodeSelector is gone: set agent.daemonset.nodeSelector, or with",
        ),
        (
            {"agent": {"tolerations": []}},
            "agent.tolerations is gone: set agent.daemonset.tolerations, or with agent.mode",
        ),
        (
            {**SIMULATED, "agent": {"mode": "pool", "nodeSelector": {}}},
            "or with agent.mode: pool agent.pool.nodeSelector",
        ),
        ({"agent": {"daemonset": {"maxUnavailable": 0}}}, "at '/agent/daemonset/maxUnavailable'"),
        (
            {"operator": {"settings": {"ENABLE_FACILITY_METRICS": True}}},
            "cannot be set here: set settings.ENABLE_FACILITY_METRICS, for all components",
        ),
        (
            {"operator": {"settings": {"FACILITY_PROMETHEUS_ADDRESS": "http://me:secret@prometheus"}}},
            "put the URL into a Secret and name that in settingsFromSecrets.FACILITY_PROMETHEUS_ADDRESS",
        ),
        (
            {"operator": {"settingsFromSecrets": {"NO_SUCH": {"name": "a", "key": "b"}}}},
            "operator.settingsFromSecrets.NO_SUCH cannot be set here: there is no such setting",
        ),
        (
            {"agent": {"settingsFromSecrets": {"NODE_NAME": {"name": "a", "key": "b"}}}},
            "agent.settingsFromSecrets.NODE_NAME cannot be set here: it is set to the pod's node",
        ),
        (
            {"operator": {"settingsFromSecrets": {"FACILITY_PROMETHEUS_ADDRESS": {"name": "a"}}}},
            "missing property 'key'",
        ),
        *(
            ({"settings": {"POWER_PROFILE_LABEL": label}}, "the operator overwrites this label, and it means something")
            for label in ("joulie.io/managed", "kubernetes.io/hostname", "node.k8s.io/x")
        ),
        ({"agent": {"nvidia": {"nodeLabel": "gpu"}}}, r"at '/agent/nvidia/nodeLabel': 'gpu' does not match pattern"),
        ({"agent": {"mode": "pool"}}, "a pool agent reaches its nodes over HTTP: set simulator.enabled, or"),
        ({"simulator": {"enabled": True}}, "simulator.enabled goes with agent.mode: pool"),
    ],
    ids=lambda part: json.dumps(part)[:60] if isinstance(part, dict) else "",
)
def test_a_wrong_value_is_refused_with_the_reason(helm: Helm, values: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused) as refusal:
        helm.template(values)
    assert re.search(said, str(refusal.value)), str(refusal.value)


@pytest.mark.parametrize(
    "scope",
    [
        *("", " ", "a", "!a", "a=b", "a==b, c!=d", "a=", "x.io/a in (b, c),d notin (e)", "a>1,b<2"),
        *("a b", "a=b,", ",", "a=b,,c", "a in b", "a in ((b)", "=b", "a=b=c", "-a", "x/y/z=1", "a=b c"),
    ],
)
def test_the_chart_takes_the_selectors_that_the_components_take(helm: Helm, scope: str) -> None:
    from joulie.model.selector import parse_selector

    try:
        parse_selector(scope)
    except ValueError:
        with pytest.raises(Refused, match="cannot be used: it is a label selector"):
            helm.template({"managedNodes": scope})
    else:
        manifests = helm.render({"managedNodes": scope})
        assert environment(find(manifests, "Deployment", "joulie-operator"))["NODE_SELECTOR"] == scope


def test_settings_reach_the_component_as_they_were_written(helm: Helm) -> None:
    own = {
        "QUEUE_HP_MAX": 1000000,
        "STATIC_HP_FRAC": 0.25,
        "CPU_WRITE_ABSOLUTE_CAPS": True,
        "RECONCILE_INTERVAL": "30s",
    }
    manifests = helm.render({"operator": {"settings": own}, "settings": {"CPU_ECO_CAP_PCT_OF_MAX": 55}})
    operator = environment(find(manifests, "Deployment", "joulie-operator"))
    assert (
        operator
        | {
            "QUEUE_HP_MAX": "1000000",
            "STATIC_HP_FRAC": "0.25",
            "CPU_WRITE_ABSOLUTE_CAPS": "true",
            "RECONCILE_INTERVAL": "30s",
            "CPU_ECO_CAP_PCT_OF_MAX": "55",
        }
        == operator
    )
    agent = environment(find(manifests, "DaemonSet", "joulie-agent"))
    assert agent["CPU_ECO_CAP_PCT_OF_MAX"] == "55"
    assert "QUEUE_HP_MAX" not in agent


def test_operator_and_extender_agree_on_facility_metrics(helm: Helm) -> None:
    for values, said in (
        ({}, None),
        ({"settings": {"ENABLE_FACILITY_METRICS": True}}, "true"),
        (SIMULATED, "true"),
        ({**SIMULATED, "settings": {"ENABLE_FACILITY_METRICS": False}}, "false"),
    ):
        manifests = helm.render(values)
        for name in ("joulie-operator", "joulie-extender"):
            assert environment(find(manifests, "Deployment", name)).get("ENABLE_FACILITY_METRICS") == said, values


def test_a_setting_with_a_password_comes_from_a_secret(helm: Helm) -> None:
    secret = {"name": "prometheus", "key": "url"}
    variable = "FACILITY_PROMETHEUS_ADDRESS"
    operator = {"settings": {variable: "http://a"}, "settingsFromSecrets": {variable: secret}}
    deployment = find(helm.render({"operator": operator}), "Deployment", "joulie-operator")
    (taken,) = (one for one in container(deployment)["env"] if one["name"] == variable)
    assert taken["valueFrom"] == {"secretKeyRef": secret}


def test_the_environment_of_every_component_is_taken_by_its_settings(helm: Helm) -> None:
    manifests = helm.render({**SIMULATED, "dryRun": True, "extender": {"tls": {"secretName": "x"}}})
    manifests.append(find(helm.render({"hardwareCatalogue": "x"}), "DaemonSet", "joulie-agent"))
    workloads = [one for one in manifests if one["kind"] in ("Deployment", "DaemonSet", "StatefulSet")]
    assert len(workloads) == 5
    for workload in workloads:
        component = workload["metadata"]["labels"]["app.kubernetes.io/component"]
        load(COMPONENTS[component], environment(workload))
        assert container(workload)["args"][0] == component


@pytest.mark.parametrize("component", COMPONENTS)
def test_what_the_chart_refuses_the_process_refuses_too_and_nothing_good_is_refused(component: str) -> None:
    """The chart's check is derived; here it is compared with the parser itself, value by value."""
    stricter = []
    for variable, default, parser in _parsers(COMPONENTS[component]):
        check = check_of(parser.allowed)
        for text in (*SAMPLES, default):
            taken = not text or _taken(parser, text)
            if taken and not _passes(check, text):
                stricter.append((variable, text))
            if "choices" in check or "low" in check:
                assert _passes(check, text) == taken, (variable, text)
    assert stricter == []


def test_every_setting_can_be_set_or_says_where_else() -> None:
    known = chart_settings()
    for component, settings in COMPONENTS.items():
        assert set(known[component]) == {one.variable for one in describe(settings, {})}
    everything = {name for settings in known.values() for name in settings}
    assert set(OWNED) <= everything


def test_the_defaults_are_described_value_by_value() -> None:
    assert list(Draft7Validator(SCHEMA).iter_errors(DEFAULTS)) == []
    described = set(_described(SCHEMA))
    written = set(_written(DEFAULTS))
    assert written <= described
    gone = {f"agent.{name}" for name in ("nodeSelector", "tolerations", "affinity")}
    assert {path for path in described - written if "settings." not in path} == {"global", *gone}


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_lint_finds_nothing(helm: Helm) -> None:
    assert "1 chart(s) linted, 0 chart(s) failed" in helm.run("lint", "--strict", str(CHART))


def _parsers(settings: type) -> Iterator[tuple[str, str, Parser[Any]]]:
    hints = get_type_hints(settings)
    for field in dataclasses.fields(settings):
        if "variable" in field.metadata:
            yield field.metadata["variable"], field.metadata["default"], field.metadata["parser"]
        else:
            yield from _parsers(hints[field.name])


def _taken(parser: Parser[Any], text: str) -> bool:
    try:
        parser.parse(text)
    except ValueError:
        return False
    return True


def _passes(check: dict[str, Any], text: str) -> bool:
    """As templates/_settings.tpl does it: empty counts as not set."""
    if not text:
        return True
    if "choices" in check and text not in check["choices"]:
        return False
    if "pattern" in check and not re.search(check["pattern"], text):
        return False
    if "low" in check:
        low: float = check["low"]
        value = float(text)
        return (low < value if check["above"] else low <= value) and value <= float(check["high"])
    return True


def _described(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    if "properties" not in schema:
        yield path
    for name, part in schema.get("properties", {}).items():
        yield from _described(part, f"{path}.{name}".lstrip("."))


def _written(values: Any, path: str = "") -> Iterator[str]:
    """Leaves, where a map of free keys (labels, resources) is one."""
    free = re.search(r"(^|\.)(resources|labels|dashboardLabels|nodeSelector|settings|table)$", path)
    if not isinstance(values, dict) or not values or free:
        if not path.endswith("settings"):
            yield path
        return
    for name, value in values.items():
        yield from _written(value, f"{path}.{name}".lstrip("."))

"""The worked examples of the seeds, and a few rules by hand, against the oracle itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle.random_cases.clusters import random_case
from tests.oracle.rules.plan import plan
from tests.oracle.rules.pods import demand_of, is_performance_only
from tests.oracle.rules.score import score
from tests.oracle.rules.selector import matches
from tests.oracle.rules.twin import twin
from tests.oracle.rules.values import format_time, parse_duration, parse_quantity, parse_time

NOW = 1793534400.0
MANAGED = {"joulie.io/managed": "true"}
PROFILE_KEY = "joulie.io/power-profile"


def node(name: str, cpu: str = "192", labels: dict[str, str] | None = None, **capacity: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**MANAGED, **(labels or {})}},
        "spec": {},
        "status": {"capacity": {"cpu": cpu, **capacity}},
    }


def fresh_twin(name: str, status: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodeTwin",
        "metadata": {"name": name},
        "spec": {"nodeName": name, "profile": "performance"},
        "status": {"lastUpdated": format_time(NOW), **status},
    }


def pod(cpu: str | None = None, **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}], **spec},
    }


def reference_hardware(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodeHardware",
        "metadata": {"name": name},
        "status": {
            "cpu": {
                "model": "EPYC 9654",
                "sockets": 2,
                "totalCores": 192,
                "capRange": {"maxWattsPerSocket": 400.0},
            },
            "gpu": {"present": True, "model": "H100 NVL", "count": 4, "capRangePerGpu": {"maxWatts": 400}},
        },
    }


def test_cooling_stress_of_an_eco_reference_node_at_25_degrees_is_31_3() -> None:
    [result] = twin([node("a"), reference_hardware("a")], {"STATIC_HP_FRAC": "0"}, NOW, ambient=25.0)
    status = result["status"]
    assert status["powerMeasurement"]["nodeCappedPowerW"] == pytest.approx(1440)
    assert status["predictedCoolingStressScore"] == pytest.approx(31.3)
    assert status["predictedPowerHeadroomScore"] == pytest.approx(0.6 * (1 - 0.313) * 100)
    assert status["powerMeasurement"]["measuredNodePowerW"] == pytest.approx(128 + 0.2 * 1600)


def test_psu_stress_of_30_kw_in_a_50_kw_rack_is_60() -> None:
    # 8 idle nodes draw 20 % of 350 W + 10 x 1840 W each, which is 3750 W.
    hardware = [
        {
            "kind": "NodeHardware",
            "metadata": {"name": f"n{i}"},
            "status": {
                "cpu": {"sockets": 1, "capRange": {"maxWattsPerSocket": 350}},
                "gpu": {"count": 10, "capRangePerGpu": {"maxWatts": 1840}},
            },
        }
        for i in range(8)
    ]
    nodes = [node(f"n{i}", cpu="10", labels={"joulie.io/rack": "r"}) for i in range(8)]
    results = twin(nodes + hardware, {}, NOW)
    drawn = sum(r["status"]["powerMeasurement"]["measuredNodePowerW"] for r in results)
    assert drawn == pytest.approx(8 * 3750) == 30000
    assert [r["status"]["predictedPsuStressScore"] for r in results] == pytest.approx([60] * 8)


def test_score_of_the_seeds_half_full_node_is_41_2() -> None:
    status = {
        "predictedCoolingStressScore": 20,
        "powerMeasurement": {"measuredNodePowerW": 300, "nodeCappedPowerW": 600},
    }
    # 50 W of 350 W (100 cores x 3.5 W) at coefficient 0.7
    objects = [node("a", cpu="100"), fresh_twin("a", status)]
    [result] = score(objects, {}, NOW, pod(str(50 / 350 / 0.7 * 100)))["nodes"]
    assert result["breakdown"]["podMarginalW"] == pytest.approx(50)
    assert result["score"] == pytest.approx(41.2, abs=0.05)


def test_score_of_the_seeds_ideal_eco_node_is_95() -> None:
    status = {
        "schedulableClass": "eco",
        "predictedCoolingStressScore": 0,
        "powerMeasurement": {"measuredNodePowerW": 0, "nodeCappedPowerW": 600, "powerTrendWPerMin": 0},
    }
    [result] = score([node("a"), fresh_twin("a", status)], {}, NOW, pod())["nodes"]
    assert result["score"] == pytest.approx(95)


def test_each_family_keeps_a_performance_node_and_a_performance_pod_defers_eco() -> None:
    names = ("EPYC-9965", "EPYC-9965", "EPYC-9965", "Foo-1")
    nodes = [
        node(f"n{i}", labels={"joulie.io/hw.cpu-model": m, "joulie.io/hw.cpu-sockets": "1"})
        for i, m in enumerate(names)
    ]
    holder = pod("1", nodeName="n2", nodeSelector={PROFILE_KEY: "performance"})
    result = plan([*nodes, holder], {}, NOW)
    states = {n["node"]: n["state"] for n in result["nodes"]}
    assert states == {"n0": "performance", "n3": "performance", "n1": "eco", "n2": "draining"}
    assert {n["node"]: n["cpu"]["capPct"] for n in result["nodes"]} == {
        "n0": 100,
        "n3": 100,
        "n1": 60,
        "n2": 100,
    }
    pods = {"performanceOnly": 1, "ecoOnly": 0, "general": 0}
    assert result["summary"] == {"eligible": 4, "performance": 2, "eco": 1, "draining": 1, "pods": pods}


def test_watts_of_a_pin_are_clamped_and_percentages_raised_to_the_minimum() -> None:
    gpu_node = node(
        "a",
        labels={
            "joulie.io/hw.gpu-model": "NVIDIA-H100-80GB-HBM3",
            "joulie.io/hw.cpu-model": "EPYC-9654",
            "joulie.io/hw.cpu-sockets": "2",
        },
        **{"nvidia.com/gpu": "8"},
    )
    pin = {
        "kind": "NodePowerProfile",
        "metadata": {"name": "x", "creationTimestamp": "2026-10-01T00:00:00Z"},
        "spec": {
            "nodeName": "a",
            "profile": "eco",
            "cpu": {"packagePowerCapWatts": 9000},
            "gpu": {"powerCap": {"capPctOfMax": 10}},
        },
    }
    [result] = plan([gpu_node, pin], {}, NOW)["nodes"]
    assert result["family"] == "H100 SXM"
    assert result["cpu"] == {"capPct": None, "capWatts": 800, "capWattsPerPackage": 400}
    assert result["gpu"] == {"capPct": pytest.approx(100 * 200 / 700), "capWattsPerGpu": None}


def affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": term} for term in terms]
            }
        }
    }


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([[{"key": PROFILE_KEY, "operator": "NotIn", "values": ["eco"]}]], True),
        (
            [
                [{"key": PROFILE_KEY, "operator": "In", "values": ["performance"]}],
                [{"key": "zone", "operator": "Exists"}],
            ],
            False,
        ),
        (
            [
                [
                    {"key": PROFILE_KEY, "operator": "Exists"},
                    {"key": PROFILE_KEY, "operator": "NotIn", "values": ["eco"]},
                ]
            ],
            True,
        ),
        ([[{"key": PROFILE_KEY, "operator": "DoesNotExist"}]], True),
        (
            [
                [{"key": PROFILE_KEY, "operator": "NotIn", "values": ["eco"]}],
                [{"key": "joulie.io/draining", "operator": "In", "values": ["true"]}],
            ],
            True,
        ),
        ([[{"key": PROFILE_KEY, "operator": "In", "values": ["eco", "performance"]}]], False),
    ],
)
def test_performance_only_needs_every_term_to_exclude_eco(terms: list[list[dict[str, Any]]], expected: bool) -> None:
    assert is_performance_only(pod(affinity=affinity(*terms)), PROFILE_KEY) is expected


def test_demand_counts_sidecars_beside_containers_and_before_init_containers() -> None:
    def box(cpu: str, **more: str) -> dict[str, Any]:
        return {"name": "x", "image": "i", "resources": {"limits": {"cpu": cpu}}, **more}

    inits = [box("500m", restartPolicy="Always"), box("4"), box("1", restartPolicy="Always")]
    asked = pod("2", initContainers=inits, overhead={"cpu": "250m"})
    assert demand_of(asked).cores == pytest.approx(4.5 + 0.25)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("100m", 0.1),
        ("1.5", 1.5),
        ("2Gi", 2**31),
        ("1e3", 1000),
        ("1E", 1e18),
        (".5k", 500),
        (3, 3),
        ("2E-3", 0.002),
    ],
)
def test_quantities(written: Any, value: float) -> None:
    assert parse_quantity(written) == pytest.approx(value)


def test_times_durations_and_selectors() -> None:
    assert parse_duration("1h30m") == 5400
    assert parse_time("2026-11-01T13:00:00+01:00") == parse_time("2026-11-01T12:00:00Z")
    assert parse_time("soon") is None
    assert matches("a in (b, c),!d,e notin (f),g!=h", {"a": "c"})
    assert not matches("a>5", {"a": "5"})
    assert matches("a>4", {"a": "5"})
    assert matches("", {})


@pytest.mark.parametrize("seed", range(300))
def test_random_cases_hold_the_basic_promises(seed: int) -> None:
    case = random_case(seed)
    assert case == random_case(seed)
    decided = plan(case.objects, case.env, case.now, case.policy, case.selector)
    assert sum(decided["summary"][s] for s in ("performance", "eco", "draining")) == decided["summary"]["eligible"]
    for entry in twin(case.objects, case.env, case.now, case.ambient, case.policy, case.selector):
        power = entry["status"]["powerMeasurement"]
        assert 0 <= power["measuredNodePowerW"] <= power["nodeCappedPowerW"] <= power["nodeTdpW"] * (1 + 1e-12)
    assert all(0 <= n["score"] <= 100 for n in score(case.objects, case.env, case.now, case.pod)["nodes"])

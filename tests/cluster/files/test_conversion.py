"""From objects as the API server writes them to the model."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from joulie.cluster.decoding.conversion import to_node, to_pin, to_pod
from joulie.model.api import NodePowerProfile
from joulie.model.kubernetes import NodeObject, PodObject
from joulie.model.selector import Requirement
from joulie.model.snapshot import Node, Pin, Pod

NOON = "2026-11-01T12:00:00Z"
NOON_S = datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()


def a_node(metadata: dict[str, Any] | None = None, **more: Any) -> Node:
    return to_node(msgspec.convert({"metadata": {"name": "n", **(metadata or {})}, **more}, NodeObject))


def a_pod(metadata: dict[str, Any] | None = None, **more: Any) -> Pod:
    return to_pod(msgspec.convert({"metadata": {"name": "p", **(metadata or {})}, **more}, PodObject))


def a_pin(metadata: dict[str, Any] | None = None, **spec: Any) -> Pin:
    spec = {"nodeName": "n", "profile": "eco", **spec}
    return to_pin(msgspec.convert({"metadata": {"name": "x", **(metadata or {})}, "spec": spec}, NodePowerProfile))


def affine(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": required}}


def expressions(*keys: str) -> list[dict[str, Any]]:
    return [{"key": key, "operator": "In", "values": ["x"]} for key in keys]


def test_a_node_that_states_nothing_has_nothing() -> None:
    assert a_node() == Node("n", {})
    assert a_node(spec=None, status=None) == a_node(spec={}, status={}) == Node("n", {})


def test_a_node_is_read_in_full() -> None:
    node = a_node(
        {"labels": {"zone": "a"}},
        spec={"unschedulable": True},
        status={"capacity": {"cpu": "96", "nvidia.com/gpu": "8", "amd.com/gpu": 2, "memory": "?"}},
    )
    assert node == Node("n", {"zone": "a"}, True, 96.0, 8.0, 2.0)
    assert node.capacity_gpus == 10


def test_what_capacity_does_not_name_is_taken_from_allocatable() -> None:
    status = {"capacity": {"cpu": "96"}, "allocatable": {"cpu": "90", "nvidia.com/gpu": "8"}}
    node = a_node(status=status)
    assert (node.capacity_cores, node.capacity_nvidia_gpus) == (96, 8)
    assert a_node(status={"allocatable": {"cpu": "95500m"}}).capacity_cores == 95.5
    assert a_node(status={"capacity": {"cpu": "0"}, "allocatable": {"cpu": "9"}}).capacity_cores == 0


def test_a_pod_that_states_nothing_is_pending_and_asks_for_nothing() -> None:
    assert a_pod() == a_pod(spec=None) == a_pod(spec={}, status={}) == Pod("default", "p", "", "standard")


def test_a_pod_is_read_in_full() -> None:
    pod = a_pod(
        {"namespace": "team", "annotations": {"joulie.io/workload-class": "performance"}, "deletionTimestamp": NOON},
        spec={
            "nodeName": "n",
            "containers": [{"resources": {"requests": {"cpu": "2", "nvidia.com/gpu": 1}}}],
            "nodeSelector": {"zone": "a"},
            **affine({"matchExpressions": expressions("zone")}),
        },
        status={
            "phase": "Running",
            "conditions": [{"type": "Ready"}, {"type": "PodScheduled", "status": "True", "lastTransitionTime": NOON}],
        },
    )
    terms = ((Requirement("zone", "In", ("x",)),),)
    assert pod == Pod("team", "p", "n", "performance", 2, 1, False, True, NOON_S, {"zone": "a"}, terms)


@pytest.mark.parametrize("written", ["standard", "Performance", "performance ", "", "eco"])
def test_any_class_but_performance_is_standard(written: str) -> None:
    assert a_pod({"annotations": {"joulie.io/workload-class": written}}).workload_class == "standard"


@pytest.mark.parametrize(
    ("phase", "finished"),
    [("Succeeded", True), ("Failed", True), ("Running", False), ("Pending", False), ("Unknown", False), (None, False)],
)
def test_a_pod_is_finished_when_it_succeeded_or_failed(phase: str | None, finished: bool) -> None:
    assert a_pod(status={"phase": phase}).finished is finished


@pytest.mark.parametrize(
    "condition",
    [
        {"type": "PodScheduled", "status": "False", "lastTransitionTime": NOON},
        {"type": "PodScheduled", "status": "True"},
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "yesterday"},
        {"type": "Ready", "status": "True", "lastTransitionTime": NOON},
    ],
)
def test_without_a_readable_time_of_scheduling_there_is_none(condition: dict[str, str]) -> None:
    assert a_pod(status={"conditions": [condition]}).scheduled_at_s is None


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {}},
        {"nodeSelector": None, "affinity": {}},
        {"affinity": {"nodeAffinity": {}}},
        {"affinity": {"podAntiAffinity": {"whatever": 1}}},
        affine({"matchFields": expressions("metadata.name")}),
        affine({"matchFields": expressions("metadata.name")}, {"matchExpressions": expressions("zone")}),
    ],
)
def test_most_pods_carry_no_wishes_about_nodes(spec: dict[str, Any]) -> None:
    pod = a_pod(spec=spec)
    assert pod.node_selector is None
    assert pod.required_terms is None


def test_terms_keep_their_requirements_and_empty_terms_are_met_by_no_node() -> None:
    spec = affine({}, {"matchExpressions": expressions("a", "b"), "matchFields": expressions("metadata.name")})
    a, b = (Requirement(key, "In", ("x",)) for key in "ab")
    assert a_pod(spec=spec).required_terms == ((a, b),)
    assert a_pod(spec=affine({})).required_terms == ()
    assert a_pod(spec=affine()).required_terms == ()


def test_a_pin_is_read_in_full() -> None:
    pin = a_pin(
        {"creationTimestamp": NOON},
        profile="performance",
        cpu={"packagePowerCapWatts": 300, "packagePowerCapPctOfMax": 60},
        gpu={"powerCap": {"scope": "perGpu", "capWattsPerGpu": 250.5, "capPctOfMax": 70}},
        expiresAt="2026-11-01T12:00:01Z",
    )
    assert pin == Pin("x", "n", "performance", 300, 60, 250.5, 70, NOON_S, NOON_S + 1)
    assert a_pin() == Pin("x", "n", "eco")
    assert a_pin(cpu={}, gpu={}) == a_pin(gpu={"powerCap": {}}) == Pin("x", "n", "eco")


def test_a_pin_whose_times_cannot_be_read_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^spec\.expiresAt: 'soon' is not"):
        a_pin(expiresAt="soon")
    with pytest.raises(ValueError, match=r"^metadata\.creationTimestamp: '' is not"):
        a_pin({"creationTimestamp": ""})


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("", "missing"), ("n" * 254, "longer than 253"), ("a/b", "not a name"), ("a b", "not a name"), ("\x1b", "not a")],
)
def test_names_that_kubernetes_would_not_take_are_refused(name: str, complaint: str) -> None:
    for read in (a_node, a_pod, a_pin):
        with pytest.raises(ValueError, match=rf"^metadata\.name: .*{complaint}"):
            read({"name": name})
    assert a_node({"name": "n" * 253}).name == "n" * 253


def test_faults_name_their_field() -> None:
    with pytest.raises(ValueError, match=r"^status\.capacity\.cpu: '-1' is negative"):
        a_node(status={"capacity": {"cpu": "-1"}})
    with pytest.raises(ValueError, match=r"^status\.allocatable\.amd\.com/gpu: 'x' is not a quantity"):
        a_node(status={"allocatable": {"amd.com/gpu": "x"}})
    with pytest.raises(ValueError, match=r"^metadata\.namespace: 'a b' is not a name"):
        a_pod({"namespace": "a b"})
    with pytest.raises(ValueError, match=r"nodeSelectorTerms\[0\]\.matchExpressions\[0\]\.operator: 'Like' is none"):
        a_pod(spec=affine({"matchExpressions": [{"key": "a", "operator": "Like"}]}))

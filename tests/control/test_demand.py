"""What a pod asks for: the rule with its edges."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.control.demand import PodDemand, demand
from joulie.model.kubernetes import PodSpec
from joulie.model.quantity import parse_quantity


def asking(cpu: object = None, *, always: bool = False, **more: object) -> dict[str, object]:
    """A container with a CPU request; `always` makes an init container a sidecar."""
    resources = {"requests": {"cpu": cpu}} if cpu is not None else {}
    return {"resources": resources, **({"restartPolicy": "Always"} if always else {}), **more}


def limited(requests: Mapping[str, object] | None, limits: Mapping[str, object] | None) -> dict[str, object]:
    return {"resources": {"requests": requests, "limits": limits}}


def demand_of(**spec: object) -> PodDemand:
    return demand(msgspec.convert(spec, PodSpec))


@pytest.mark.parametrize(
    ("containers", "cores"),
    [
        ([], 0),
        (None, 0),
        ([asking()], 0),
        ([{}], 0),
        ([{"resources": None}], 0),
        ([asking("250m")], 0.25),
        ([asking("250m"), asking(2)], 2.25),
        ([asking("0.1"), asking("0.2"), asking("0.3")], 0.6),
    ],
)
def test_containers_run_side_by_side_and_add_up(containers: object, cores: float) -> None:
    assert demand_of(containers=containers) == (cores, 0)


def test_the_order_of_containers_makes_no_difference() -> None:
    asked = ["100m", "200m", "300m", "1e-3"]
    results = {
        demand_of(containers=[asking(cpu) for cpu in order]).cpu_cores for order in itertools.permutations(asked)
    }
    assert results == {0.601}


@pytest.mark.parametrize(
    ("requests", "limits", "expected"),
    [
        ({"cpu": "1"}, {"cpu": "4"}, (1, 0)),
        (None, {"cpu": "4"}, (4, 0)),
        ({}, {"cpu": "4"}, (4, 0)),
        ({"cpu": "0"}, {"cpu": "4"}, (0, 0)),
        ({"memory": "1Gi"}, {"cpu": "4", "nvidia.com/gpu": "2"}, (4, 2)),
        ({"cpu": "1"}, {"nvidia.com/gpu": "2"}, (1, 2)),
        ({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "2"}, (0, 1)),
    ],
)
@pytest.mark.parametrize("beside", [[], [{}]], ids=["alone", "beside another container"])
def test_requests_come_first_then_limits_for_each_resource(
    requests: dict[str, object] | None,
    limits: dict[str, object] | None,
    expected: tuple[float, float],
    beside: list[dict[str, object]],
) -> None:
    assert demand_of(containers=[limited(requests, limits), *beside]) == expected


@pytest.mark.parametrize("split", [False, True])
def test_gpus_of_both_vendors_add_up(split: bool) -> None:
    nvidia, amd = {"nvidia.com/gpu": "2"}, {"amd.com/gpu": 1}
    both = [limited(nvidia, None), limited(amd, None)] if split else [limited({**nvidia, **amd}, None)]
    assert demand_of(containers=both) == (0, 3)


@pytest.mark.parametrize(
    ("init", "cores"),
    [
        ([asking("500m")], 1),  # smaller than what runs later
        ([asking("3")], 3),  # larger
        ([asking("3"), asking("2")], 3),  # one after the other, not together
        ([asking("2", always=True)], 3),  # a sidecar keeps running
        ([asking("2", always=True), asking("4")], 6),  # and runs already while the next one starts
        ([asking("4"), asking("2", always=True)], 4),  # but not yet while one before it does
        ([asking("1", always=True), asking("1", always=True), asking("1.5")], 3.5),
        ([asking("3", restartPolicy="OnFailure")], 3),
        ([asking("3"), {}], 3),
        ([asking(always=True), asking("3")], 3),
    ],
)
def test_starting_may_take_more_than_running(init: object, cores: float) -> None:
    assert demand_of(containers=[asking("1")], initContainers=init).cpu_cores == cores


def test_each_resource_has_its_own_most_demanding_moment() -> None:
    init = [limited({"cpu": "8"}, None), limited({"nvidia.com/gpu": "4"}, None)]
    assert demand_of(containers=[limited({"cpu": "2", "amd.com/gpu": "1"}, None)], initContainers=init) == (8, 5)


def test_a_restart_policy_of_an_ordinary_container_changes_nothing() -> None:
    assert demand_of(containers=[asking("1", always=True)], initContainers=[asking("1.5")]).cpu_cores == 1.5


def test_overhead_comes_on_top_of_running_and_starting() -> None:
    overhead = {"cpu": "250m", "memory": "1Gi"}
    assert demand_of(containers=[asking("1")], overhead=overhead).cpu_cores == 1.25
    assert demand_of(containers=[asking("1")], initContainers=[asking("3")], overhead=overhead).cpu_cores == 3.25


@pytest.mark.parametrize(
    ("whole", "expected"),
    [
        ({"requests": {"cpu": "5"}}, (5, 1)),
        ({"requests": {"cpu": "500m"}}, (0.5, 1)),
        ({"limits": {"cpu": "5"}}, (5, 1)),
        ({"requests": {"cpu": "5"}, "limits": {"cpu": "9"}}, (5, 1)),
        ({"requests": {"memory": "1Gi"}}, (2, 1)),
        ({"requests": {"nvidia.com/gpu": "4"}}, (2, 4)),
        ({}, (2, 1)),
    ],
)
def test_what_the_pod_states_as_a_whole_wins_for_that_resource(whole: object, expected: tuple[float, float]) -> None:
    container = limited({"cpu": "1", "nvidia.com/gpu": "1"}, None)
    assert demand_of(containers=[container], initContainers=[asking("2")], resources=whole) == expected


def test_overhead_comes_on_top_of_what_the_pod_states_as_a_whole() -> None:
    assert demand_of(resources={"requests": {"cpu": "5"}}, overhead={"cpu": "1"}).cpu_cores == 6


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"containers": [asking("x")]}, "spec.containers[0].resources.requests.cpu"),
        ({"containers": [{}, asking("x")]}, "spec.containers[1].resources.requests.cpu"),
        (
            {"containers": [limited(None, {"nvidia.com/gpu": "-1"})]},
            "spec.containers[0].resources.limits.nvidia.com/gpu",
        ),
        ({"initContainers": [asking("1"), asking("x")]}, "spec.initContainers[1].resources.requests.cpu"),
        ({"overhead": {"cpu": "x"}}, "spec.overhead.cpu"),
        ({"resources": {"limits": {"cpu": "x"}}}, "spec.resources.limits.cpu"),
    ],
)
def test_a_quantity_that_cannot_be_read_is_named_by_its_path(spec: dict[str, object], path: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(path)}: '"):
        demand_of(**spec)


_QUANTITIES = st.sampled_from([None, "0", "100m", "250m", "1", "2.5", 3])
_CONTAINERS = st.lists(_QUANTITIES.map(asking), max_size=4)
_INIT_CONTAINERS = st.lists(st.builds(lambda cpu, always: asking(cpu, always=always), _QUANTITIES, st.booleans()))


@given(_CONTAINERS, _INIT_CONTAINERS, st.sampled_from([None, {"cpu": "50m"}]))
def test_the_demand_is_the_highest_point_of_the_pods_life(
    containers: list[dict[str, object]], init: list[dict[str, object]], overhead: dict[str, str] | None
) -> None:
    """Plays the start step by step, the way a kubelet does it."""

    def cores(container: dict[str, object]) -> float:
        resources = container["resources"]
        assert isinstance(resources, dict)
        return parse_quantity(resources.get("requests", {}).get("cpu", 0))

    running = highest = 0.0
    for starter in init:
        highest = max(highest, running + cores(starter))
        running += cores(starter) if "restartPolicy" in starter else 0.0
    highest = max(highest, running + sum(map(cores, containers))) + (0.05 if overhead else 0.0)
    found = demand_of(containers=containers, initContainers=init, overhead=overhead)
    assert found.cpu_cores == pytest.approx(highest, abs=1e-9)

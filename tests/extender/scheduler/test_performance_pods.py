"""Performance pods keep off eco nodes in the corners too: few nodes sampled, no node left, no extender, preemption."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.extender.scheduler.admission import policy_installed
from tests.extender.scheduler.processes import RunningExtender, wait_until
from tests.extender.scheduler.scheduling import (
    PATIENT,
    PODS,
    Body,
    create,
    events_of,
    node,
    placed,
    pod,
    shipped,
    twin,
    wait_placed,
)

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane
    from testbed.scheduler import Scheduler

URGENT = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000}


def attempts(scheduler: Scheduler, result: str) -> int:
    """How often the scheduler tried to place a pod, with this result."""
    counted = re.findall(
        rf'^scheduler_schedule_attempts_total{{[^}}]*result="{result}"[^}}]*}} (\S+)', scheduler.metrics(), re.MULTILINE
    )
    return int(sum(map(float, counted)))


def test_one_node_in_twenty_is_found_at_once(fresh_cluster: ControlPlane, tmp_path: Path) -> None:
    """1,000 nodes, a sample of a tenth as shipped, and the performance nodes came first: most samples miss them all.

    kube-scheduler takes nodes in the order in which it met them. Without the policy most of these pods fail repeatedly.
    """
    names = [f"node-{number:04}" for number in range(1000)]
    pods = [f"p-{number}" for number in range(200)]
    with (
        policy_installed(fresh_cluster),
        RunningExtender(fresh_cluster, tmp_path) as extender,
        fresh_cluster.scheduler(shipped(url=extender.url)) as scheduler,
    ):
        create(fresh_cluster, [node(name, "performance") for name in names[:50]])
        create(fresh_cluster, [node(name, "eco") for name in names[50:]])
        create(fresh_cluster, [pod("last", nodeSelector={"kubernetes.io/hostname": names[-1]})])
        wait_placed(fresh_cluster, ["last"])  # it knows them all
        before = attempts(scheduler, "unschedulable")
        create(fresh_cluster, [pod(name, performance=True) for name in pods])
        where = wait_placed(fresh_cluster, pods)
        assert attempts(scheduler, "unschedulable") == before
        assert attempts(scheduler, "scheduled") == len(pods) + 1
        assert attempts(scheduler, "error") == 0
    assert set(where.values()) <= set(names[:50])


@pytest.mark.parametrize("policy", [False, True], ids=["extender alone", "with the admission policy"])
def test_a_pod_that_fits_nowhere_is_told_why(fresh_cluster: ControlPlane, tmp_path: Path, policy: bool) -> None:
    states = ["eco", "eco", "draining"]
    names = [f"node-{number}" for number in range(3)]
    parts = [part for name, state in zip(names, states, strict=True) for part in (node(name, state), twin(name, state))]
    create(fresh_cluster, [*parts, node("full", "performance", cpu="1"), twin("full", "performance")])
    with (
        policy_installed(fresh_cluster) if policy else nullcontext(),
        RunningExtender(fresh_cluster, tmp_path) as extender,
        fresh_cluster.scheduler(shipped(url=extender.url, **PATIENT)),
    ):
        create(fresh_cluster, [pod("waits", performance=True, cpu="2")])
        wait_until(lambda: bool(events_of(fresh_cluster, "waits")), 30, "the pod has an event")
        told = events_of(fresh_cluster, "waits")[0]
        assert placed(fresh_cluster) == {}
        # It goes as soon as a node is there for it.
        create(fresh_cluster, [node("new", "performance"), twin("new", "performance")])
        assert wait_placed(fresh_cluster, ["waits"]) == {"waits": "new"}
    assert told.startswith("FailedScheduling: 0/4 nodes are available: ")
    assert "1 Insufficient cpu" in told
    if policy:
        assert "2 node(s) didn't match Pod's node affinity/selector" in told
    else:
        assert "2 node is eco, and the pod's class is performance" in told
    assert "1 node is draining, and the pod's class is performance" in told  # in either case by the extender


def test_a_draining_node_matches_the_affinity_and_is_refused_by_the_extender_alone(
    fresh_cluster: ControlPlane, tmp_path: Path
) -> None:
    """kubelet checks affinity again when it restarts, by the rules that kube-scheduler goes by here."""
    states = {"eco": "eco", "leaving": "draining"}
    create(fresh_cluster, [part for name, state in states.items() for part in (node(name, state), twin(name, state))])
    with policy_installed(fresh_cluster), RunningExtender(fresh_cluster, tmp_path) as extender:
        with fresh_cluster.scheduler(shipped(url=extender.url, **PATIENT)):
            create(fresh_cluster, [pod("train", performance=True)])
            wait_until(lambda: bool(events_of(fresh_cluster, "train")), 60, "the pod was refused")
            assert placed(fresh_cluster) == {}
        with fresh_cluster.scheduler(shipped()):
            assert wait_placed(fresh_cluster, ["train"]) == {"train": "leaving"}


def test_without_the_extender_none_lands_on_an_eco_node_and_the_others_keep_being_placed(
    fresh_cluster: ControlPlane, tmp_path: Path
) -> None:
    states = {f"node-{number:02}": ("performance", "eco", "draining")[number % 3] for number in range(30)}
    create(fresh_cluster, [made for name, state in states.items() for made in (node(name, state), twin(name, state))])
    pods = [pod(f"{kind}-{number}", performance=kind == "p") for number in range(300) for kind in "ps"]
    names = [one["metadata"]["name"] for one in pods]
    with (
        policy_installed(fresh_cluster),
        RunningExtender(fresh_cluster, tmp_path) as extender,
        fresh_cluster.scheduler(shipped(url=extender.url)),
    ):
        create(fresh_cluster, pods[:200])
        extender.kill()
        create(fresh_cluster, pods[200:])
        where = wait_placed(fresh_cluster, names)
    assert "eco" not in {states[where[name]] for name in names if name.startswith("p-")}
    assert {states[where[name]] for name in names if name.startswith("s-")} == {"performance", "eco", "draining"}


@pytest.mark.parametrize(
    ("changes", "evicted_from"),
    [({}, "room-by-eviction"), ({"preemptVerb": ""}, "eco")],
    ids=["shipped", "without preemptVerb, to show that it matters"],
)
def test_a_performance_pod_of_high_priority_evicts_no_pod_from_an_eco_node(
    fresh_cluster: ControlPlane, tmp_path: Path, changes: dict[str, Any], evicted_from: str
) -> None:
    """Fewest victims win, and the eco node would need one: kube-scheduler's own choice is the eco node."""
    states = {"eco": "eco", "room-by-eviction": "performance", "kept": "performance"}
    create(fresh_cluster, [part for name, state in states.items() for part in (node(name, state), twin(name, state))])
    fresh_cluster.apply([URGENT])
    residents: list[Body] = [pod("on-eco", cpu="190", nodeName="eco")]
    residents += [pod(f"evictable-{number}", cpu="95", nodeName="room-by-eviction") for number in range(2)]
    residents += [pod("urgent", cpu="190", nodeName="kept", priorityClassName="urgent")]
    for one in residents:
        one["spec"]["terminationGracePeriodSeconds"] = 0
    create(fresh_cluster, residents)
    with (
        RunningExtender(fresh_cluster, tmp_path) as extender,
        fresh_cluster.scheduler(shipped(url=extender.url, **PATIENT | changes)),
    ):
        create(fresh_cluster, [pod("wants-room", performance=True, cpu="180", priorityClassName="urgent")])
        wait_until(lambda: len(remaining(fresh_cluster)) < len(residents), 60, "a pod was evicted")
        if evicted_from != "eco":
            assert wait_placed(fresh_cluster, ["wants-room"]) == {"wants-room": evicted_from}
        left = remaining(fresh_cluster)
    assert {"on-eco"} <= left if evicted_from != "eco" else "on-eco" not in left
    assert "urgent" in left


def remaining(plane: ControlPlane) -> set[str]:
    """The residents that are still there."""
    return {item["metadata"]["name"] for item in plane.api.get(PODS)["items"]} - {"wants-room"}

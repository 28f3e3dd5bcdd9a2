"""kube-scheduler keeps to the watts that nodes advertise, without any extender. Nothing is faked but the nodes."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from joulie.cluster.api.cluster import KubernetesCluster
from joulie.cluster.api.credentials import find_credentials
from joulie.cluster.decoding.decoders import decode_node
from joulie.control.budget.counting import Order
from joulie.control.budget.envelopes import Pair
from joulie.control.budget.members import BudgetInput
from joulie.model.snapshot import Pod, Snapshot
from joulie.operator.apply import Applier
from joulie.operator.rate_limit import TokenBucket
from joulie.operator.watts import watts_jobs
from joulie.settings import DecisionSettings, load
from tests.extender.scheduler.scheduling import create, node, shipped
from tests.extender.watts.policies import (
    OPTED_IN,
    WATTS,
    Body,
    container,
    pod,
    policies_installed,
    wait_until,
)
from tests.support.small_clusters import NOW, plan

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

PODS = f"/api/v1/namespaces/{OPTED_IN}/pods"
SCHEDULER = "joulie-watts"


@pytest.fixture
def plane(fresh_cluster: ControlPlane) -> Iterator[ControlPlane]:
    with policies_installed(fresh_cluster):
        yield fresh_cluster


def advertise(plane: ControlPlane, node_w: int, *names: str) -> None:
    status = {side: {WATTS: str(node_w)} for side in ("capacity", "allocatable")}
    for name in names:
        plane.api.patch(f"/api/v1/nodes/{name}/status", {"status": status})


def work(name: str, cpu: str = "10") -> Body:
    """A pod of 100 W."""
    return pod(container(cpu), name=name, schedulerName=SCHEDULER)


def bound(plane: ControlPlane) -> dict[str, str]:
    items = plane.api.get(PODS)["items"] or []
    return {one["metadata"]["name"]: one["spec"]["nodeName"] for one in items if "nodeName" in one["spec"]}


def complaint(plane: ControlPlane, name: str) -> str:
    """Why kube-scheduler says that the pod waits."""
    conditions = plane.api.get(f"{PODS}/{name}")["status"].get("conditions") or []
    return " ".join(one.get("message", "") for one in conditions if one["type"] == "PodScheduled")


def test_pods_wait_while_a_rack_is_full_and_start_when_watts_return(plane: ControlPlane) -> None:
    create(plane, [node("a"), node("b")])
    advertise(plane, 250, "a", "b")
    with plane.scheduler(shipped("spread-by-watts.yaml")):
        for number in range(5):
            plane.api.post(PODS, work(f"p{number}"))
        wait_until(lambda: len(bound(plane)) == 4, "four pods are bound")
        (left,) = {f"p{number}" for number in range(5)} - bound(plane).keys()
        wait_until(lambda: f"2 Insufficient {WATTS}" in complaint(plane, left), "the fifth waits, and says for what")
        assert Counter(bound(plane).values()) == {"a": 2, "b": 2}
        advertise(plane, 310, "b")
        wait_until(lambda: bound(plane).get(left) == "b", "the fifth is bound when watts return")


def test_a_namespace_keeps_to_its_quota_of_watts(plane: ControlPlane) -> None:
    from testbed.api import ApiError

    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "watts"}}
    hard = {f"requests.{WATTS}": "250"}
    plane.api.post(f"/api/v1/namespaces/{OPTED_IN}/resourcequotas", {**quota, "spec": {"hard": hard}})
    path = f"/api/v1/namespaces/{OPTED_IN}/resourcequotas/watts"
    try:
        plane.api.patch(f"{path}/status", {"status": {"hard": hard, "used": {f"requests.{WATTS}": "0"}}})

        def refused() -> bool:
            """The quota's own watch needs a moment; each pod that came in before is taken away again."""
            made: list[str] = []
            try:
                for number in range(3):
                    plane.api.post(PODS, work(f"q{number}"))
                    made.append(f"q{number}")
            except ApiError as error:
                return "exceeded quota" in str(error) and len(made) == 2
            finally:
                for name in made:
                    plane.api.delete(f"{PODS}/{name}?gracePeriodSeconds=0")
                plane.api.patch(f"{path}/status", {"status": {"used": {f"requests.{WATTS}": "0"}}})
            return False

        wait_until(refused, "the third pod of 100 W is refused by a quota of 250 W")
    finally:
        plane.api.delete(path)


@pytest.mark.parametrize(("profile", "nodes"), [("spread-by-watts.yaml", 3), ("pack-by-watts.yaml", 1)])
def test_the_shipped_profiles_spread_and_pack_by_watts(plane: ControlPlane, profile: str, nodes: int) -> None:
    create(plane, [node(name) for name in "abc"])
    advertise(plane, 1000, "a", "b", "c")
    with plane.scheduler(shipped(profile)):
        for number in range(6):
            plane.api.post(PODS, work(f"p{number}"))
            wait_until(lambda: len(bound(plane)) == number + 1, "the pod is bound")  # noqa: B023 - asked at once
    assert len(set(bound(plane).values())) == nodes


class Known:
    """Takes answers to writes; the test looks at the server itself."""

    def written(self, *_: object) -> None: ...

    def gone(self, *_: object) -> None: ...


def operate(plane: ControlPlane, order: Order | None, *, enabled: bool, pods: tuple[Pod, ...] = ()) -> int:
    """One turn of what the operator does with watts; how many nodes it wrote to."""
    items = plane.api.get("/api/v1/nodes")["items"]
    nodes = [decode_node(json.dumps(item).encode()) for item in items]
    seen = Snapshot({each.name: each for each in nodes}, pods)
    given = BudgetInput(seen, plan(seen), load(DecisionSettings, {}), NOW)
    jobs = watts_jobs(given, {"a": order} if order else {}, enabled=enabled)

    async def run() -> int:
        credentials = find_credentials({}, kubeconfig=str(plane.kubeconfig), context="", home=plane.kubeconfig.parent)
        cluster = KubernetesCluster(credentials, field_manager="joulie-operator")
        try:
            outcome = await Applier(cluster, TokenBucket(1000, 1000, time.monotonic), lambda: 60.0, Known()).run(jobs)
            assert not outcome.failed
            return len(outcome.done)
        finally:
            await cluster.close()

    return asyncio.run(run())


def advertised(plane: ControlPlane, name: str) -> tuple[str | None, str | None]:
    status = plane.api.get(f"/api/v1/nodes/{name}")["status"]
    return status["capacity"].get(WATTS), status["allocatable"].get(WATTS)


def test_the_operator_advertises_what_budgets_give_and_takes_it_back_when_switched_off(plane: ControlPlane) -> None:
    """A package of at most 400 W, and 15 % of that for the rest."""
    create(plane, [node("a"), node("b")])
    assert operate(plane, None, enabled=True) == 2
    assert advertised(plane, "a") == advertised(plane, "b") == ("460", "460")
    assert operate(plane, None, enabled=True) == 0
    order = Order("u", 1, Pair(200.0), Pair(400.0))
    assert operate(plane, order, enabled=True) == 1
    assert advertised(plane, "a") == ("260", "260")
    holds = Pod(OPTED_IN, "p", "a", "standard", 10.0, watts=700.0)
    assert operate(plane, order, enabled=True, pods=(holds,)) == 1
    assert advertised(plane, "a") == ("700", "700")
    assert operate(plane, None, enabled=False) == 2
    assert advertised(plane, "a") == advertised(plane, "b") == (None, None)
    assert plane.api.get("/api/v1/nodes/a")["status"]["capacity"]["cpu"] == "192"

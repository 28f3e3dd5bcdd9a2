"""Watts as a resource and a real kubelet: what it does with pods that hold watts when it restarts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from testbed.node.node import Node
from tests.chart.kubelet import until
from tests.node.pods import PODS, Manifest, clear, is_ready, phase, pod, running

WATTS = "joulie.io/watts"
REFUSED = f"OutOf{WATTS}"


@pytest.fixture(autouse=True)
def nothing_left(node: Node) -> Iterator[None]:
    yield
    clear(node)
    advertise(node, None)


def advertise(node: Node, watts: int | None) -> None:
    """As the operator does: capacity and allocatable together."""
    quantity = None if watts is None else str(watts)
    status = {side: {WATTS: quantity} for side in ("capacity", "allocatable")}
    node.api.patch(f"/api/v1/nodes/{node.name}/status", {"status": status})


def advertised(node: Node) -> tuple[str | None, str | None]:
    status = node.api.get(f"/api/v1/nodes/{node.name}")["status"]
    return status["capacity"].get(WATTS), status["allocatable"].get(WATTS)


def holding(name: str, watts: int, **spec: Any) -> Manifest:
    asked = {WATTS: str(watts)}
    container = {"resources": {"requests": asked, "limits": asked}}
    return pod(name, restartPolicy="Always", container=container, **spec)


def container_of(node: Node, name: str) -> str:
    """Which container runs, and since when."""
    (status,) = node.api.get(f"{PODS}/{name}")["status"]["containerStatuses"]
    return f"{status['containerID']} {status['state']['running']['startedAt']}"


def restart(node: Node, witness: str) -> None:
    node.kill_component("kubelet")
    node.start_component("kubelet")
    running(node, pod(witness))  # kubelet is back


def test_pods_that_hold_watts_outlive_a_restart_of_kubelet(node: Node) -> None:
    advertise(node, 800)
    running(node, holding("steady", 600))
    before = container_of(node, "steady")
    restart(node, "after")
    assert advertised(node) == ("800", "800")
    assert container_of(node, "steady") == before


def test_a_node_that_offers_exactly_what_its_pods_hold_ends_none_of_them(node: Node) -> None:
    """What the operator does when a budget falls below what pods hold."""
    advertise(node, 800)
    running(node, holding("steady", 600))
    before = container_of(node, "steady")
    advertise(node, 600)
    restart(node, "after")
    assert container_of(node, "steady") == before
    node.api.apply([holding("more", 10, nodeName=node.name)])
    until(lambda: phase(node, "more") == "Failed", "kubelet refuses a pod beyond that")
    assert node.api.get(f"{PODS}/more")["status"]["reason"] == REFUSED


def test_below_what_pods_hold_kubelet_ends_them_when_it_restarts_which_is_why_we_never_go_there(node: Node) -> None:
    advertise(node, 800)
    running(node, holding("steady", 600))
    before = container_of(node, "steady")
    advertise(node, 500)
    running(node, pod("meanwhile"))
    assert container_of(node, "steady") == before  # as long as kubelet runs, nothing happens
    restart(node, "after")
    until(lambda: phase(node, "steady") == "Failed", "kubelet has ended the pod")
    assert node.api.get(f"{PODS}/steady")["status"]["reason"] == REFUSED


def test_a_node_that_registers_anew_has_lost_its_watts_and_no_pod(node: Node) -> None:
    advertise(node, 800)
    running(node, holding("steady", 600))
    before = container_of(node, "steady")
    node.kill_component("kubelet")
    node.api.delete(f"/api/v1/nodes/{node.name}")
    node.start_component("kubelet")
    until(lambda: any(is_ready(one) for one in node.api.get("/api/v1/nodes")["items"]), "the node is back")
    running(node, pod("after"))
    assert advertised(node) == (None, None)
    assert container_of(node, "steady") == before
    advertise(node, 800)  # the operator's next turn
    restart(node, "later")
    assert container_of(node, "steady") == before


def test_pods_outlive_that_the_resource_is_taken_off_the_node(node: Node) -> None:
    advertise(node, 800)
    running(node, holding("steady", 600))
    before = container_of(node, "steady")
    advertise(node, None)
    restart(node, "after")
    assert container_of(node, "steady") == before

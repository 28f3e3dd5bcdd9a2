"""Joulie as people run it: the chart with the real image on a real node, from install to uninstall."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from joulie.agent.budget.sessions import FILE_NAME as SESSION_FILE
from joulie.agent.restore.cap_lease import REFRESHES_FILE
from joulie.cluster.crds.definitions import crds
from testbed.node.node import Node
from tests.chart.kubelet import until
from tests.chart.leftovers import belongings, joulie_labels
from tests.node import pods
from tests.node.release import AGENTS_LEVEL, ECO_W, FOUND_W, SWIFT, Release, node_labels

SETTINGS = {"operator": {"settings": {**SWIFT, "STATIC_HP_FRAC": 1}}, "agent": {"settings": SWIFT}}


@pytest.fixture(scope="module")
def installed(node: Node, release: Release) -> Iterator[Release]:
    """With the chart's defaults, on a node in scope that stays at full power unless it is pinned."""
    node_labels(node, **{"joulie.io/managed": "true"})
    try:
        release.install(SETTINGS, AGENTS_LEVEL)
        yield release
    finally:
        release.remove()
        node_labels(node, **{"joulie.io/managed": None})


@pytest.fixture
def pinned(installed: Release) -> Iterator[Release]:
    """The node is pinned to eco, and capped."""
    installed.joulie("pin", installed.node.name, "eco")
    until(lambda: installed.caps_w() == [ECO_W] * 2, "both packages are capped")
    yield installed
    installed.joulie("unpin", installed.node.name)
    until(lambda: installed.caps_w() == [FOUND_W] * 2, "the caps are as they were found")


def test_an_install_brings_every_component_and_no_fault_is_found(installed: Release) -> None:
    assert installed.components() == {"agent", "extender", "operator"}
    restarts = [one["status"]["containerStatuses"][0]["restartCount"] for one in installed.pods()]
    assert restarts == [0] * len(restarts)
    until(lambda: installed.results() == {installed.node.name: "applied"}, "the agent reports")


def test_caps_follow_a_pin_and_its_end(pinned: Release) -> None:
    until(lambda: pinned.results() == {pinned.node.name: "applied"}, "the agent says so")


def test_an_agent_that_is_deleted_puts_back_and_its_successor_caps_again(pinned: Release) -> None:
    before = pinned.agent()["metadata"]
    pinned.node.api.delete(f"/api/v1/namespaces/{before['namespace']}/pods/{before['name']}")
    until(lambda: pinned.caps_w() == [FOUND_W] * 2, "the agent has put back what it found")
    until(lambda: pinned.caps_w() == [ECO_W] * 2, "the next one has capped the node")
    until(lambda: len(pinned.pods("agent")) == 1, "the deleted pod is gone")
    assert pinned.agent()["metadata"]["uid"] != before["uid"]


def test_an_agent_that_is_killed_leaves_the_cap_and_takes_it_up_again(pinned: Release) -> None:
    status = pinned.agent()["status"]["containerStatuses"][0]
    pinned.node.kill_container(status["containerID"])

    def is_back() -> bool:
        assert pinned.caps_w() == [ECO_W] * 2
        now = pinned.agent()["status"]["containerStatuses"][0]
        return bool(now["restartCount"] > status["restartCount"] and now["ready"])

    until(is_back, "the agent runs again")  # what it found is still known: the pin's end restores it


def test_performance_pods_on_a_draining_node_outlive_a_restart_of_kubelet(installed: Release) -> None:
    node = installed.node
    performance = {"joulie.io/workload-class": "performance"}
    before = pods.running(node, pods.pod("train", annotations=performance, restartPolicy="Always"))
    assert before["spec"]["affinity"], "the admission policy did not act"
    installed.joulie("pin", node.name, "eco")
    try:
        labels = f"/api/v1/nodes/{node.name}"
        until(lambda: node.api.get(labels)["metadata"]["labels"].get("joulie.io/draining") == "true", "the node drains")
        assert installed.caps_w() == [FOUND_W] * 2
        node.restart_kubelet()
        pods.running(node, pods.pod("standard"))  # kubelet is back, and has looked at its pods

        def is_untouched() -> bool:
            now = node.api.get(f"{pods.PODS}/train")["status"]
            return bool((now["phase"], now["containerStatuses"]) == ("Running", before["status"]["containerStatuses"]))

        until(is_untouched, "the same containers run and are ready")  # a restarted kubelet probes them again first
        until(installed.is_ready, "so are those of Joulie")
    finally:
        pods.clear(node)
        installed.joulie("unpin", node.name)


def test_an_uninstall_puts_back_and_leaves_nothing(pinned: Release) -> None:
    pinned.uninstall()
    assert pinned.caps_w() == [FOUND_W] * 2
    assert belongings(pinned.node) == {
        *(f"customresourcedefinitions/{one['metadata']['name']}" for one in crds()),
        f"nodepowerprofiles/{pinned.node.name}",
    }
    assert joulie_labels(pinned.node) == set()
    left = pinned.node.run("find", "/var/lib/joulie", "-type", "f", "-printf", "%f\\n").output.split()
    assert set(left) <= {REFRESHES_FILE, SESSION_FILE}, "a journal would say that something is still capped"

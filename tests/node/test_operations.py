"""What happens to nodes and pods in everyday operation: drained and cordoned, and an operator that fails over."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.api import ApiError
from testbed.node.node import Node
from tests.chart.charts import NAMESPACE
from tests.chart.kubelet import until
from tests.node import pods
from tests.node.release import AGENTS_LEVEL, ECO_W, FOUND_W, SWIFT, Release, node_labels

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/joulie-operator"
VALUES = {
    "operator": {"replicas": 2, "settings": {**SWIFT, "STATIC_HP_FRAC": 1}},
    "agent": {"settings": SWIFT},
    "extender": {"replicas": 2},
}


@pytest.fixture(scope="module")
def installed(node: Node, release: Release) -> Iterator[Release]:
    node_labels(node, **{"joulie.io/managed": "true"})
    release.install(VALUES, AGENTS_LEVEL)
    yield release
    release.remove()
    node_labels(node, **{"joulie.io/managed": None})


def leader(release: Release) -> str:
    """The name of the pod that holds the lease."""
    holder: str = release.node.api.get(LEASE)["spec"].get("holderIdentity") or ""
    return holder.split("_", maxsplit=1)[0]


def test_the_other_operator_takes_over_from_one_that_is_killed(installed: Release) -> None:
    until(lambda: leader(installed), "an operator leads")
    first = leader(installed)
    (killed,) = (one for one in installed.pods("operator") if one["metadata"]["name"] == first)
    node = installed.node
    node.api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{first}?gracePeriodSeconds=0")
    assert killed["metadata"]["name"] == first
    until(lambda: leader(installed) not in ("", first), "another one leads")
    installed.joulie("pin", node.name, "eco")
    until(lambda: installed.caps_w() == [ECO_W] * 2, "it decides, and the agent follows")
    installed.joulie("unpin", node.name)
    until(lambda: installed.caps_w() == [FOUND_W] * 2, "again")
    until(installed.is_ready, "the pod that was killed has a successor")


def test_a_node_that_is_cordoned_and_drained_keeps_its_agent_and_its_cap(installed: Release, kubectl: Path) -> None:
    node = installed.node
    pods.running(node, pods.pod("work", restartPolicy="Always"))
    installed.joulie("pin", node.name, "eco")
    until(lambda: installed.caps_w() == [ECO_W] * 2, "the node is capped")
    agent = installed.agent()["metadata"]["uid"]
    drain = ["drain", node.name, "--ignore-daemonsets", "--force", "--delete-emptydir-data", "--timeout=20s"]
    try:
        done = _kubectl(kubectl, node, *drain)
        # One node: what a PodDisruptionBudget keeps cannot go anywhere else, and stays.
        assert "Cannot evict pod as it would violate the pod's disruption budget" in done.stderr
        until(lambda: pods.phase(node, "work") == "gone", "work has left")
        ready = [one for one in installed.pods("extender") if pods.is_ready(one)]
        assert ready, "an extender answers all the time"
        assert installed.agent()["metadata"]["uid"] == agent
        assert installed.caps_w() == [ECO_W] * 2  # a cordoned node is left as it is
    finally:
        assert _kubectl(kubectl, node, "uncordon", node.name).returncode == 0
        _unpin(installed)
        pods.clear(node)
    until(lambda: installed.caps_w() == [FOUND_W] * 2, "it is decided about again")
    until(installed.is_ready, "what was evicted is back")


def _unpin(installed: Release) -> None:
    try:
        installed.node.api.delete(f"/apis/joulie.io/v1alpha1/nodepowerprofiles/{installed.node.name}")
    except ApiError as error:
        if error.status != 404:
            raise


def _kubectl(kubectl: Path, node: Node, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(kubectl), f"--kubeconfig={node.kubeconfig}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)

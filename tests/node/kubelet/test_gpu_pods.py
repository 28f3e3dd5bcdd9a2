"""The agent's pod knows from the real kubelet which pod holds which GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from testbed.node.node import Node
from tests.chart.kubelet import until
from tests.node import pods
from tests.node.kubelet.gpu_plugin import RESOURCE
from tests.node.release import AGENTS_LEVEL, SWIFT, Release, node_labels
from tools.release.image import ROOT

BOARDS = ("GPU-0001", "GPU-0002")
VALUES = {"agent": {"settings": SWIFT, "podResources": {"enabled": True}}, "extender": {"enabled": False}}


@pytest.fixture
def with_boards(node: Node, release: Release) -> Iterator[Release]:
    plug_in = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "tests.node.kubelet.gpu_plugin"]
    node.start_program("gpu-plugin", *plug_in, *BOARDS)
    path = f"/api/v1/nodes/{node.name}"
    until(lambda: node.api.get(path)["status"]["allocatable"].get(RESOURCE) == "2", "kubelet knows the boards")
    node_labels(node, **{"joulie.io/managed": "true"})
    release.install(VALUES, AGENTS_LEVEL)
    yield release
    pods.clear(node)
    release.remove()
    node_labels(node, **{"joulie.io/managed": None})
    node.stop_component("gpu-plugin")


def holders(release: Release) -> dict[str, str]:
    """Board → pod, by the agent's metrics."""
    agent = release.agent()["metadata"]
    path = f"/api/v1/namespaces/{agent['namespace']}/pods/{agent['name']}:8080/proxy/metrics"
    lines = release.node.api.raw("GET", path).decode().splitlines()
    found = (line for line in lines if line.startswith("joulie_agent_gpu_pod_info{"))
    labels = [
        dict(part.split("=", 1) for part in line[line.index("{") + 1 : line.index("}")].split(",")) for line in found
    ]
    return {one["device"].strip('"'): one["pod"].strip('"') for one in labels}


def test_boards_are_told_with_the_pods_that_hold_them_also_after_a_restart_of_kubelet(with_boards: Release) -> None:
    node = with_boards.node
    assert holders(with_boards) == {}
    one = {"resources": {"limits": {RESOURCE: "1"}}}
    for name in ("train", "infer"):
        pods.running(node, pods.pod(name, container=one, restartPolicy="Always"))
    until(lambda: sorted(holders(with_boards).values()) == ["infer", "train"], "both boards have their pods")
    assert set(holders(with_boards)) == set(BOARDS)
    node.api.delete(f"{pods.PODS}/infer")
    until(lambda: list(holders(with_boards).values()) == ["train"], "the board of the pod that ended is free")
    before = holders(with_boards)
    node.restart_kubelet()  # which makes its socket anew
    pods.running(node, pods.pod("after"))
    until(lambda: holders(with_boards) == before, "kubelet is asked at its new socket")

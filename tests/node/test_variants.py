"""Other ways to install the chart on the real node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.node.node import Node
from tests.chart.kubelet import until
from tests.chart.leftovers import belongings
from tests.node.release import AGENTS_LEVEL, FOUND_W, OTHERS_LEVEL, SWIFT, Release, node_labels

FAKE_NODES = 200
FAKE = "/api/v1/nodes?labelSelector=type=kwok"
NVIDIA, AMD = "nvidia.com/gpu.present", "feature.node.kubernetes.io/cpu-model.vendor_id"
EVERY_NODE_IS_ECO = {"settings": {**SWIFT, "STATIC_HP_FRAC": 0}}


@pytest.fixture
def empty(release: Release) -> Iterator[Release]:
    yield release
    release.remove()
    node_labels(release.node, **{"joulie.io/managed": None, NVIDIA: None, AMD: None})


def test_a_dry_run_decides_and_writes_to_no_device(empty: Release) -> None:
    node_labels(empty.node, **{"joulie.io/managed": "true"})
    settings = {"operator": EVERY_NODE_IS_ECO, "agent": {"settings": SWIFT}}
    assert "DRY RUN" in empty.install({"dryRun": True, **settings}, AGENTS_LEVEL)
    until(lambda: empty.results() == {empty.node.name: "blocked"}, "the agent says that it only pretends")
    assert empty.twins()[empty.node.name]["spec"]["profile"] == "eco"
    assert empty.caps_w() == [FOUND_W] * 2


def test_agents_for_gpus_and_for_hsmp_run_where_labels_say_so(empty: Release) -> None:
    node_labels(empty.node, **{"joulie.io/managed": "true", NVIDIA: "true", AMD: "AMD"})
    agent = {"nvidia": {"enabled": True, "runtimeClassName": ""}, "hsmp": {"enabled": True}}
    off = {"enabled": False}
    empty.install({"agent": agent, "operator": off, "extender": off}, AGENTS_LEVEL)
    assert empty.agent()["metadata"]["labels"]["joulie.io/agent"] == "nvidia-hsmp"


def test_a_pool_of_agents_caps_simulated_hardware_of_fake_nodes(node: Node, empty: Release) -> None:
    node.add_fake_nodes(FAKE_NODES)
    try:
        agent = {"mode": "pool", "settings": SWIFT}
        values = {"operator": EVERY_NODE_IS_ECO, "agent": agent, "simulator": {"enabled": True}}
        empty.install(values, OTHERS_LEVEL)
        assert empty.components() == {"agent", "extender", "operator", "simulator"}
        names = {one["metadata"]["name"] for one in node.api.get(FAKE)["items"]}
        assert len(names) == FAKE_NODES
        until(lambda: empty.results() == dict.fromkeys(names, "applied"), "every fake node is capped")
        empty.uninstall()
        assert empty.twins() == {}
        assert {one.split("/")[0] for one in belongings(node)} == {"customresourcedefinitions"}  # nor a claim
    finally:
        node.api.delete(FAKE)

"""The pages about installing, followed word by word on a real node: whatever they start runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from joulie import __version__
from testbed.build import binary
from testbed.node.images import BUSYBOX, write_program_image
from testbed.node.kwok import ANNOTATION
from testbed.node.node import Node
from tests.chart.charts import NAMESPACE, SCHEDULER_IMAGE
from tests.chart.kubelet import until
from tests.chart.leftovers import belongings, forget
from tests.docs_pages.blocks import ROOT, Block, Command, blocks
from tests.docs_pages.conftest import TRAINING
from tests.docs_pages.reader import Reader
from tests.node import pods
from tests.node.release import AGENTS_LEVEL, FOUND_W, READY_S, Release, node_labels
from tests.support.control_plane import available

# What even a reader with a node does not do, and why.
NOT_RUN = {
    r"docker ": "tests/image builds the Dockerfile with buildah",
    r"export ": "the reader has both",
    r"helm .*monitoring\.enabled=true": "needs the Prometheus operator's kinds",
}
NAMES = {"node-1 node-2 node-3": "node-1", "joulie cleanup --crds": "joulie cleanup --crds --yes"}
LABELS = {"joulie.io/managed": None, "joulie.io/rack": None, "joulie.io/reserved": None}


def runs(_block: Block, command: Command) -> bool:
    return not any(re.match(start, command.text) for start in NOT_RUN)


@pytest.fixture(scope="module")
def tools(pytestconfig: pytest.Config, node_parts: object) -> dict[str, Path]:
    found = available(pytestconfig, ["kubectl", "kube-scheduler", "helm"])
    return {**found, "kwok": binary("kwok")}


@pytest.fixture(scope="module")
def images(node: Node, release: Release, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Under the names that the pages have for them."""
    file = tmp_path_factory.mktemp("images") / "kube-scheduler.tar"
    node.import_image(write_program_image(binary("kube-scheduler"), f"docker.io/library/{SCHEDULER_IMAGE}", file))
    ours = [f"registry.example.com/joulie:{__version__}", f"docker.io/library/joulie:{__version__}"]
    for source, names in (("localhost/joulie:test", ours), (BUSYBOX, ["docker.io/library/busybox:1"])):
        for name in names:
            done = node.run("ctr", "--namespace=k8s.io", "images", "tag", "--force", source, name)
            assert done.code == 0, done.errors


@pytest.fixture
def reader(images: None, release: Release, tools: dict[str, Path], tmp_path: Path) -> Iterator[Reader]:
    node = release.node
    node_labels(node, **{"joulie.io/rack": "r1"})
    folder = tmp_path / "reader"
    folder.mkdir()
    with Reader(folder, tools, node.kubeconfig, runs=runs, also_stands_for=NAMES) as reading:
        yield reading
        node.api.delete(f"{pods.PODS}?gracePeriodSeconds=0")
        pods.clear(node)  # while KWOK can still play its part
    node.api.delete("/api/v1/nodes?labelSelector=type=kwok")
    forget(node)  # what the page has applied by hand
    release.remove()
    node_labels(node, **LABELS)
    for kind in ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"):
        node.api.delete(f"/apis/admissionregistration.k8s.io/v1/{kind}")


def read(reader: Reader, page: str) -> None:
    found = blocks(ROOT / f"docs/how-to/{page}.md")
    reader.save(found)
    for block in found:
        reader.read(block)


def test_install_from_a_dry_run_to_an_uninstall(reader: Reader, release: Release) -> None:
    read(reader, "install")
    assert release.caps_w() == [FOUND_W] * 2
    until(lambda: pods.look(release.node, f"/api/v1/namespaces/{NAMESPACE}") is None, "the namespace is gone")
    assert {one for one in belongings(release.node) if "clusterrolebindings" not in one} == set()


def test_production_from_a_look_to_the_ways_to_stop(reader: Reader, release: Release) -> None:
    read(reader, "production")
    assert release.caps_w() == [FOUND_W] * 2
    until(lambda: not release.pods(), "all pods are gone")


def test_kwok_by_hand_and_with_the_chart(reader: Reader, release: Release) -> None:
    read(reader, "kwok")
    until(release.is_ready, "every pod of the chart is Ready", READY_S)
    assert release.components() == {"agent", "extender", "operator", "simulator"}


def test_scheduler_with_a_second_one_that_places_a_pod(reader: Reader, release: Release) -> None:
    node = release.node
    release.make_namespace(AGENTS_LEVEL)
    team = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
    node.api.apply([team, {**TRAINING, "spec": {**TRAINING["spec"], "schedulerName": "none"}}])
    read(reader, "scheduler")
    until(lambda: pods.phase(node, "train") == "Running", "what the page's scheduler placed runs")
    assert ANNOTATION not in node.api.get(f"/api/v1/nodes/{node.name}")["metadata"].get("annotations", {})
    node.api.delete("/api/v1/namespaces/team-a/pods/train-0")

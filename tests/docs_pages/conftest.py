"""The clusters that readers of the documents have: one without Joulie, and one where it runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from joulie.demo import example_yaml
from tests.support.control_plane import available

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

Manifest = dict[str, Any]
NAMESPACED = (
    "deployments,statefulsets,daemonsets,jobs,configmaps,services,poddisruptionbudgets,networkpolicies,serviceaccounts"
)
# What the commands of a page may leave in the shared control plane.
LEFT_BEHIND = (
    "helm uninstall joulie --namespace joulie-system --no-hooks --ignore-not-found",
    f"kubectl delete --namespace joulie-system --all --ignore-not-found {NAMESPACED}",
    "kubectl delete --ignore-not-found mutatingadmissionpolicies joulie-performance-affinity",
    "kubectl delete --ignore-not-found mutatingadmissionpolicybindings joulie-performance-affinity",
)
OWN_NODES = ("node-1", "node-2", "node-3")
TRAINING: Manifest = {  # waits for a scheduler
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "train-0",
        "namespace": "team-a",
        "annotations": {"joulie.io/workload-class": "performance"},
    },
    "spec": {"containers": [{"name": "train", "image": "busybox", "resources": {"requests": {"cpu": "8"}}}]},
}


@pytest.fixture(scope="session")
def tools(pytestconfig: pytest.Config) -> dict[str, Path]:
    """The programs that pages name, besides Joulie's own."""
    return dict(available(pytestconfig, ["kubectl", "kube-scheduler", "helm"]))


@pytest.fixture
def tidy_cluster(fresh_cluster: ControlPlane, tools: dict[str, Path], tmp_path: Path) -> Iterator[ControlPlane]:
    """An empty cluster that is left without what a page installs."""
    from tests.chart.leftovers import forget

    forget(fresh_cluster)
    yield fresh_cluster
    tidy_up(fresh_cluster, tools, tmp_path)


@pytest.fixture
def stock_cluster(tidy_cluster: ControlPlane) -> ControlPlane:
    """The nodes and pods of the bundled example and three nodes more; nothing of Joulie's but the definitions."""
    tidy_cluster.apply(machines_and_pods())
    return tidy_cluster


@pytest.fixture(scope="module")
def joulies_cluster(
    control_plane: ControlPlane, tools: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """The same with operator, agent, extender and simulated machines as processes, and all caps in force.

    It takes long to start, so the pages that need it share it.
    """
    from testbed.cleaning import clear
    from tests.cli.installation import Installation

    clear(control_plane)
    folder = tmp_path_factory.mktemp("installation")
    with ExitStack() as ends:
        there = Installation(control_plane, folder, ends)
        there.install_objects()
        control_plane.apply(machines_and_pods(managed=True))
        there.wait_until(
            lambda: all(there.chain.said().get(name) == "applied" for name in (*OWN_NODES, "gpu-b2")),
            "the caps of all are in force",
        )
        yield control_plane
    tidy_up(control_plane, tools, folder)


def tidy_up(plane: ControlPlane, tools: dict[str, Path], folder: Path) -> None:
    """Nothing of a page may stand in the way of other tests on this shared server."""
    from tests.chart.leftovers import forget

    env = {"HOME": str(folder), "PATH": os.environ["PATH"], "KUBECONFIG": str(plane.kubeconfig)}
    for command in LEFT_BEHIND:
        tool, *arguments = command.split()
        subprocess.run([str(tools[tool]), *arguments], env=env, capture_output=True, check=True)
    forget(plane)


def machines_and_pods(*, managed: bool = False) -> list[Manifest]:
    example = [item for item in yaml.safe_load_all(example_yaml()) if item and item["kind"] in ("Node", "Pod")]
    spaces = {"joulie-system", "team-a"} | {item["metadata"].get("namespace", "default") for item in example}
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(spaces)]
    return [*namespaces, *example, *(_own(name, managed) for name in OWN_NODES), TRAINING]


def _own(name: str, managed: bool) -> Manifest:
    labels = {
        "joulie.io/rack": "r1",
        "joulie.io/hw.cpu-model": "EPYC-9654",
        "joulie.io/hw.cpu-sockets": "2",
        **({"joulie.io/managed": "true"} if managed else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": {"cpu": "192", "memory": "768Gi", "pods": "250"},
            "allocatable": {"cpu": "192", "memory": "768Gi", "pods": "250"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }

"""Joulie on the real node: installed by the chart, looked at from outside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from testbed.api import ApiError
from testbed.node.node import Node
from tests.chart.charts import CHART, NAMESPACE, RELEASE, Helm, Manifest
from tests.chart.kubelet import until
from tests.chart.leftovers import JOULIE
from tests.node.pods import is_ready, look

IMAGE = {"repository": "localhost/joulie", "tag": "test"}
SWIFT = {"RECONCILE_INTERVAL": "1s"}
AGENTS_LEVEL = "privileged"  # as docs/how-to/install.md asks for where agents mount the host's /sys
OTHERS_LEVEL = "restricted"
FOUND_W = 150.0  # the long-term limit of each package
ECO_W = 0.6 * FOUND_W
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
READY_S = 120.0
# How a workload says how many pods it wants, and how many it has.
WANTED_AND_READY = {
    "deployments": ("replicas", "readyReplicas"),
    "statefulsets": ("replicas", "readyReplicas"),
    "daemonsets": ("desiredNumberScheduled", "numberReady"),
}


class Release:
    """The one release of the chart on the node."""

    def __init__(self, node: Node, helm: Helm) -> None:
        self.node, self.helm = node, helm

    def install(self, values: Manifest, pod_security: str, chart: Path = CHART) -> str:
        """Into a namespace that enforces this pod security standard, and until every pod is Ready; Helm's notes."""
        self.make_namespace(pod_security)
        given = self.helm.given({**values, "image": IMAGE})
        notes = self.helm.run("install", RELEASE, str(chart), "--namespace", NAMESPACE, *given)
        until(self.is_ready, "every pod is Ready", READY_S)
        return notes

    def make_namespace(self, pod_security: str) -> None:
        labels = {"pod-security.kubernetes.io/enforce": pod_security}
        metadata = {"name": NAMESPACE, "labels": labels}
        self.node.api.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}])

    def uninstall(self) -> None:
        """With its hook, as a person would; then the namespace."""
        self.helm.run("uninstall", RELEASE, "--namespace", NAMESPACE)
        until(lambda: not self.pods(), "all pods are gone")

    def remove(self) -> None:
        """Whatever is left of it, for the next test."""
        self.helm.run("uninstall", RELEASE, "--namespace", NAMESPACE, "--ignore-not-found", "--no-hooks")
        self.joulie("cleanup", "--crds", "--yes")
        if look(self.node, f"/api/v1/namespaces/{NAMESPACE}"):
            self.node.api.delete(f"/api/v1/namespaces/{NAMESPACE}")
        until(lambda: look(self.node, f"/api/v1/namespaces/{NAMESPACE}") is None, "the namespace is gone")

    def components(self) -> set[str]:
        """Those that have pods."""
        return {one["metadata"]["labels"]["app.kubernetes.io/component"] for one in self.pods()}

    def is_ready(self) -> bool:
        """Whether each workload has all its pods, and each pod is Ready."""
        for plural, (wanted, ready) in WANTED_AND_READY.items():
            for one in self.node.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/{plural}")["items"]:
                status = one["status"]
                is_new = status.get("observedGeneration") != one["metadata"]["generation"]
                if is_new or status.get(wanted, 0) != status.get(ready, 0):
                    return False
        return all(is_ready(pod) for pod in self.pods())

    def pods(self, component: str = "") -> list[Manifest]:
        selector = f"?labelSelector=app.kubernetes.io/component={component}" if component else ""
        found: list[Manifest] = self.node.api.get(f"{PODS}{selector}")["items"]
        return found

    def agent(self) -> Manifest:
        """The agent's pod on the node."""
        (only,) = self.pods("agent")
        return only

    def twins(self) -> dict[str, Manifest]:
        try:
            listed = self.node.api.get(f"{JOULIE}/nodetwins")["items"]
        except ApiError as error:
            if error.status != 404:
                raise
            return {}
        return {one["metadata"]["name"]: one for one in listed}

    def results(self) -> dict[str, str]:
        """What agents say about their CPU caps."""
        statuses = {name: one.get("status", {}).get("controlStatus", {}) for name, one in self.twins().items()}
        return {name: status.get("cpu", {}).get("result", "") for name, status in statuses.items()}

    def condition(self, kind: str) -> str:
        """The status of this condition of the node's twin; empty where it has none."""
        conditions = self.twins()[self.node.name].get("status", {}).get("conditions", ())
        return next((one["status"] for one in conditions if one["type"] == kind), "")

    def joulie(self, *arguments: str) -> str:
        """The command line of a person who may do everything; what it said."""
        command = [sys.executable, "-m", "joulie", *arguments, "--kubeconfig", str(self.node.kubeconfig)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def caps_w(self) -> list[float]:
        """The long-term limit of each CPU package, by the files themselves."""
        assert self.node.fake_sys
        files = sorted((self.node.fake_sys / "class/powercap").glob("intel-rapl:?/constraint_0_power_limit_uw"))
        return [_watts(file) for file in files]


def _watts(file: Path) -> float:
    """A plain file is empty for a moment while it is written, which sysfs never is."""
    return int(file.read_text().strip() or 0) / 1e6


def node_labels(node: Node, **labels: str | None) -> None:
    """Set them; None takes one away."""
    node.api.patch(f"/api/v1/nodes/{node.name}", {"metadata": {"labels": labels}})

"""Install, run, upgrade, uninstall: real Helm, a real API server, components as processes with the chart's rights."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.chart.charts import CHART, NAMESPACE, RELEASE, SCHEDULER_IMAGE, Helm, Refused
from tests.chart.kubelet import Kubelet, until
from tests.chart.leftovers import JOULIE, belongings, forget, wait_unguarded, written_to_nodes
from tests.devices.sysfs_trees import build
from tests.extender.scheduler.scheduling import create, node, pod, twin, wait_placed

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

NODES = 4
FOUND_W = 150  # of each package of the machine below
TLS_FOLDER = "/etc/joulie/tls"
SWIFT = {"RECONCILE_INTERVAL": "1s"}
SIMULATED_CLUSTER: dict[str, Any] = {
    "operator": {"settings": {**SWIFT, "STATIC_HP_FRAC": 0.5}},
    "agent": {"mode": "pool", "settings": SWIFT},
    "simulator": {"enabled": True},
    "scheduler": {"enabled": True, "image": SCHEDULER_IMAGE},
    "wattsResource": {"enabled": True},
}
BUDGET = {"apiVersion": "joulie.io/v1alpha1", "kind": "PowerBudget", "metadata": {"name": "feed"}}
UNCAPPED = {"key": "joulie.io/uncapped", "effect": "NoSchedule"}


class Installed:
    """A cluster where the chart may be installed, and what a test wants to know of it."""

    def __init__(self, plane: ControlPlane, helm: Helm, kubelet: Kubelet) -> None:
        self.plane, self.helm, self.kubelet = plane, helm, kubelet

    def install(self, values: dict[str, Any]) -> str:
        return self.helm.run("install", RELEASE, str(CHART), "--namespace", NAMESPACE, *self.helm.given(values))

    def upgrade(self, *flags: str) -> str:
        return self.helm.run("upgrade", RELEASE, str(CHART), "--namespace", NAMESPACE, "--reuse-values", *flags)

    def twins(self) -> dict[str, dict[str, Any]]:
        return {one["metadata"]["name"]: one for one in self.plane.api.get(f"{JOULIE}/nodetwins")["items"] or ()}

    def classes(self) -> list[str]:
        return sorted(one.get("status", {}).get("schedulableClass", "") for one in self.twins().values())

    def results(self, kind: str = "cpu") -> set[str]:
        statuses = [one.get("status", {}).get("controlStatus", {}) for one in self.twins().values()]
        return {status.get(kind, {}).get("result", "") for status in statuses}

    def power_sources(self) -> set[str]:
        statuses = [one.get("status", {}).get("powerMeasurement", {}) for one in self.twins().values()]
        return {status.get("source", "") for status in statuses}

    def simulated_caps_w(self) -> list[float | None]:
        url = f"http://127.0.0.1:{self.kubelet.port_of('SIM_ADDR')}/debug/nodes"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return [machine["cpu"]["capWatts"] for machine in json.load(answer)]


@pytest.fixture
def cluster(fresh_cluster: ControlPlane, helm_binary: Path, tmp_path: Path) -> Iterator[Installed]:
    """Without Joulie, its definitions and its accounts; afterwards as other tests expect it."""
    plane = fresh_cluster
    forget(plane)
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for item in plane.api.get(definitions)["items"] or ():
        plane.api.delete(f"{definitions}/{item['metadata']['name']}")
    until(lambda: not plane.api.get(definitions)["items"], "the definitions are gone")
    helm = Helm(helm_binary, tmp_path, plane.kubeconfig)
    with ExitStack() as ends:
        yield Installed(plane, helm, Kubelet(plane, tmp_path / "kubelet", ends))
    try:
        helm.run("uninstall", RELEASE, "--namespace", NAMESPACE, "--no-hooks", "--ignore-not-found")
    finally:
        forget(plane)
        plane.install_crds()
        wait_unguarded(plane)


def test_a_simulated_cluster_from_install_to_uninstall(cluster: Installed, tmp_path: Path) -> None:
    plane, kubelet = cluster.plane, cluster.kubelet
    create(plane, [node(f"node-{number}") for number in range(NODES)])
    notes = cluster.install(SIMULATED_CLUSTER)
    assert "kubectl label node NODE joulie.io/managed=true" in notes

    kubelet.start("Deployment", "joulie-simulator").wait_until(
        lambda: _answers(kubelet.port_of("SIM_ADDR")), 60, "the simulator answers"
    )
    for kind, name in [
        ("Deployment", "joulie-operator"),
        ("StatefulSet", "joulie-agent"),
        ("Deployment", "joulie-extender"),
    ]:
        kubelet.start(kind, name)
    until(lambda: cluster.classes() == ["eco"] * 2 + ["performance"] * 2, "every node has a twin")
    until(lambda: cluster.results() == {"applied"}, "every cap was set")
    until(lambda: cluster.power_sources() == {"http"}, "power is measured at the simulator")
    until(lambda: sum(cap is not None for cap in cluster.simulated_caps_w()) >= 2, "simulated hardware is capped")
    until(lambda: len(plane.api.get(f"{JOULIE}/nodehardwares")["items"]) == NODES, "hardware is published")

    with ExitStack() as ends:
        _scheduler(cluster, ends, tmp_path / "scheduler")
        with kubelet.pods_seen("node-0", "joulie-scheduler"):
            assert "no faults found" in _joulie(plane, "doctor").stdout
            assert "0 faults, 1 warning" in kubelet.run_test(cluster.helm)  # a viewer does not reach the extender
        until(lambda: _gets_affinity(plane), "the admission policy acts")
        create(plane, [pod("train", performance=True)])
        where = wait_placed(plane, ["train"])["train"]
        assert cluster.twins()[where]["status"]["schedulableClass"] == "performance"
        assert _asked(kubelet.running["joulie-extender"].page()) >= 1
        plane.api.delete("/api/v1/namespaces/default/pods/train?gracePeriodSeconds=0")

    plane.apply([{**BUDGET, "spec": {"watts": 10_000 * NODES}}])
    until(lambda: all("budget" in one["spec"] for one in cluster.twins().values()), "every twin carries an order")
    until(lambda: "joulie.io/watts" in written_to_nodes(plane), "nodes advertise watts")

    cluster.upgrade("--set", "operator.settings.STATIC_HP_FRAC=0")
    kubelet.start("Deployment", "joulie-operator")  # its template has changed
    until(lambda: cluster.classes() == ["eco"] * NODES, "the operator has the new setting")
    until(lambda: all(cap is not None for cap in cluster.simulated_caps_w()), "every simulated machine is capped")
    assert (
        json.loads(_joulie(plane, "plan", "-o", "json").stdout)["summary"]["eco"] == NODES
    )  # with this operator's setting
    for process in kubelet.running.values():
        assert "cannot" not in process.log_file.read_text(), "some right is missing"
        assert "denied request" not in process.log_file.read_text(), "an admission policy is too narrow"

    plane.api.patch("/api/v1/nodes/node-0", {"spec": {"taints": [UNCAPPED]}})  # registered a moment before
    simulator = kubelet.running.pop("joulie-simulator")  # its machines are to be looked at afterwards
    kubelet.uninstall(cluster.helm)
    assert cluster.simulated_caps_w() == [None] * NODES
    assert simulator.stop() == 0
    plane.api.delete(f"{JOULIE}/powerbudgets/feed")
    _nothing_is_left(plane)


def test_a_machine_from_a_dry_run_to_an_uninstall(cluster: Installed, tmp_path: Path) -> None:
    plane, kubelet = cluster.plane, cluster.kubelet
    tree = build("intel-xeon-6148-dual", tmp_path)
    create(plane, [node("machine")])
    notes = cluster.install({"dryRun": True, "operator": {"settings": {**SWIFT, "STATIC_HP_FRAC": 0}},
                             "agent": {"settings": SWIFT}})  # fmt: skip
    assert "DRY RUN" in notes
    # Helm counts maxUnavailable agents as not needed, rounded up: it would not wait for the only one.
    assert f"kubectl -n {NAMESPACE} rollout status daemonset/joulie-agent" in notes
    machine: dict[str, Any] = {"node": "machine", "mounts": {"/host-sys": tree.sys}}

    def limits_w() -> list[float]:
        # A plain file is empty for a moment while it is written, which sysfs never is.
        return [int(tree.text(f"{zone}/constraint_0_power_limit_uw") or 0) / 1e6 for zone in tree.zones()]

    kubelet.start("Deployment", "joulie-operator")
    kubelet.start("DaemonSet", "joulie-agent", **machine)
    until(lambda: cluster.classes() == ["eco"], "the operator has decided")
    until(lambda: cluster.results() == {"blocked"}, "the agent says that it only pretends")
    assert limits_w() == [FOUND_W] * 2

    cluster.upgrade("--set", "dryRun=false")
    kubelet.start("DaemonSet", "joulie-agent", **machine)
    until(lambda: limits_w() == [0.6 * FOUND_W] * 2, "both packages are capped")
    until(lambda: cluster.results() == {"applied"}, "the agent says so")

    kubelet.uninstall(cluster.helm)
    assert limits_w() == [FOUND_W] * 2
    _nothing_is_left(plane)


def test_the_second_scheduler_asks_over_https_where_there_is_a_certificate(cluster: Installed, tmp_path: Path) -> None:
    from testbed.credentials import write_certificates

    secret = tmp_path / "secret"  # as kubernetes.io/tls has it
    (tmp_path / "made").mkdir()
    made = write_certificates(tmp_path / "made")
    secret.mkdir()
    for name, file in (("tls.crt", made.server), ("tls.key", made.server_key), ("ca.crt", made.ca)):
        (secret / name).write_bytes(file.read_bytes())
    scheduler = {"enabled": True, "image": SCHEDULER_IMAGE}
    values = {"extender": {"tls": {"secretName": "joulie-extender-tls"}}, "scheduler": scheduler}
    cluster.install(
        {**values, "operator": {"enabled": False}}
    )  # or a policy would refuse twins that are written by hand
    create(cluster.plane, [node("fast", "performance"), node("slow", "eco")])
    create(cluster.plane, [twin("fast", "performance"), twin("slow", "eco")])
    extender = cluster.kubelet.start("Deployment", "joulie-extender", mounts={TLS_FOLDER: secret})
    extender.wait_until(lambda: "joulie_scheduler_stale_twin_data{" in extender.page(), 60, "the extender is ready")
    with ExitStack() as ends:
        _scheduler(cluster, ends, tmp_path / "scheduler", secret)
        create(cluster.plane, [pod("train", performance=True)])
        assert wait_placed(cluster.plane, ["train"]) == {"train": "fast"}
    assert _asked(extender.page()) >= 1


def test_there_is_one_joulie_in_a_cluster(cluster: Installed) -> None:
    cluster.install({})
    with pytest.raises(Refused, match=r"ClusterRole .*joulie-\w+.* exists and cannot be imported"):
        cluster.helm.run("install", "another", str(CHART), "--namespace", "default")
    cluster.kubelet.uninstall(cluster.helm)  # although nothing of it ever ran
    assert not {one for one in belongings(cluster.plane) if not one.startswith("customresourcedefinitions/")}


def _scheduler(cluster: Installed, ends: ExitStack, folder: Path, secret: Path | None = None) -> None:
    """kube-scheduler with the configuration and the account that the chart installed."""
    from testbed.build import binary
    from testbed.credentials import write_kubeconfig
    from testbed.processes import Processes
    from testbed.scheduler import Scheduler

    plane = cluster.plane
    folder.mkdir()
    text = plane.api.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/joulie-scheduler")["data"]["config.yaml"]
    here = f"127.0.0.1:{cluster.kubelet.port_of('EXTENDER_ADDR')}"
    text = text.replace(f"joulie-scheduler-extender.{NAMESPACE}.svc:9876", here).replace(TLS_FOLDER, str(secret))
    config = yaml.safe_load(text)
    processes = Processes(folder)
    ends.callback(processes.close)
    token = plane.service_account_token(NAMESPACE, "joulie-scheduler")
    kubeconfig = write_kubeconfig(folder / "kubeconfig", plane.url, plane.ca_file, token)
    ends.enter_context(Scheduler(binary("kube-scheduler"), processes, kubeconfig, config))


def _asked(page: str) -> float:
    """How often a scheduler asked where a performance pod may go."""
    found = re.search(
        r'^joulie_scheduler_filter_requests_total\{workload_class="performance"\} (\S+)$', page, re.MULTILINE
    )
    return float(found[1]) if found else 0.0


def _gets_affinity(plane: ControlPlane) -> bool:
    tried = plane.api.post("/api/v1/namespaces/default/pods?dryRun=All", pod("tried", performance=True))
    return "affinity" in tried["spec"]


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
            return True
    except OSError:
        return False


def _nothing_is_left(plane: ControlPlane) -> None:
    """But the definitions, which only a person removes: with them go all objects."""
    from joulie.cluster.crds.definitions import crds

    assert belongings(plane) == {f"customresourcedefinitions/{one['metadata']['name']}" for one in crds()}
    assert written_to_nodes(plane) == set()
    _joulie(plane, "cleanup", "--crds", "--yes")
    assert _definitions(plane) == []


def _joulie(plane: ControlPlane, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line of a person who may do everything."""
    command = [sys.executable, "-m", "joulie", *arguments, "--kubeconfig", str(plane.kubeconfig)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome


def _definitions(plane: ControlPlane) -> list[dict[str, Any]]:
    return plane.api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"] or []

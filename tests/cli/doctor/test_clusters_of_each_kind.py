"""`joulie doctor` on healthy clusters of each kind, and on what is left of one; objects alone, no process runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from joulie.cluster.crds.definitions import crds
from tests.agent.chain import JOULIE
from tests.cli.doctor.faults import CRDS, wait_for
from tests.cli.installation import (
    LEASE,
    ROOT,
    Object,
    extender_pod,
    micro,
    own_address,
    seconds,
    workload,
)
from tests.support.cli_runner import Outcome, joulie
from tests.support.rights import NAMESPACE, Rights

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

COMPONENTS = ("operator", "agent", "extender")


class Cluster:
    """Nodes with twins, as operator and agents of an installation would have written them a moment ago."""

    def __init__(self, plane: ControlPlane, kind: str) -> None:
        self.plane = plane
        for component in COMPONENTS:
            Rights(component).grant(plane)
        agents = "StatefulSet" if kind in ("pool", "kwok") else "DaemonSet"
        installed = [workload("Deployment", "operator"), workload(agents, "agent"), workload("Deployment", "extender")]
        if kind == "dry run":
            containers = installed[1]["spec"]["template"]["spec"]["containers"]
            containers[0]["env"] = [{"name": "SIMULATE_ONLY", "value": "true"}]
        else:
            plane.apply(yaml.safe_load_all((ROOT / "deploy/admission/performance-affinity.yaml").read_text()))
        plane.apply(installed)
        lease = {"holderIdentity": "operator-0", "leaseDurationSeconds": 15, "renewTime": micro(time.time())}
        metadata = {"name": "joulie-operator", "namespace": NAMESPACE}
        plane.apply([{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": lease}])
        for number in range(4):
            plane.apply(list(self._node(f"node-{number}", "eco" if number % 2 else "performance", kind)))

    def _node(self, name: str, profile: str, kind: str) -> Iterator[Object]:
        simulated = kind in ("pool", "kwok")
        known = {"joulie.io/hw.cpu-model": "EPYC-9654", "joulie.io/hw.cpu-sockets": "2"}
        shown = {"joulie.io/managed": "true", "joulie.io/power-profile": profile, "joulie.io/draining": "false"}
        taints = [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}] if kind == "kwok" else []
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": shown | known},
            "spec": {"taints": taints},
            "status": {"capacity": {"cpu": "192"}},
        }
        pct = 100 if profile == "performance" else 60
        said = {"backend": "http" if simulated else "rapl", "result": "applied", "updatedAt": seconds(time.time())}
        if kind == "dry run":
            said |= {"result": "blocked", "message": f"SIMULATE_ONLY, nothing is written: {pct} %"}
            if name == "node-1":  # there a cap could not be had
                said |= {"backend": "none", "message": "no powercap and no cpufreq here"}
        elif kind == "default" and profile == "performance":  # a machine that cannot be capped, and need not be
            said |= {"backend": "none", "result": "blocked", "message": "no powercap and no cpufreq here"}
        power = {"source": "http" if simulated else "static", "measuredNodePowerW": 300}
        yield {
            "apiVersion": "joulie.io/v1alpha1",
            "kind": "NodeTwin",
            "metadata": {"name": name},
            "spec": {
                "nodeName": name,
                "profile": profile,
                "cpu": {"packagePowerCapPctOfMax": pct},
                "policy": {"name": "static_partition"},
                "scheduling": {"draining": False},
            },
            "status": {
                "schedulableClass": profile,
                "powerMeasurement": power,
                "controlStatus": {"cpu": said},
                "lastUpdated": seconds(time.time()),
            },
        }
        heuristic = {"overall": "heuristic", "warnings": ["unknown model"]}
        yield {
            "apiVersion": "joulie.io/v1alpha1",
            "kind": "NodeHardware",
            "metadata": {"name": name},
            "status": {"cpu": {"sockets": 2}, "quality": heuristic if kind == "default" else {"overall": "exact"}},
        }

    def remove_workloads(self) -> None:
        for kind in ("deployments", "daemonsets", "statefulsets"):
            self.plane.api.delete(f"/apis/apps/v1/namespaces/{NAMESPACE}/{kind}")

    def remove(self) -> None:
        api = self.plane.api
        self.remove_workloads()
        for kind in ("mutatingadmissionpolicybindings", "mutatingadmissionpolicies"):
            api.delete(f"/apis/admissionregistration.k8s.io/v1/{kind}")

    def doctor(self) -> Outcome:
        return joulie("doctor", "-o", "json", env={"KUBECONFIG": str(self.plane.kubeconfig)})


@contextmanager
def extender(plane: ControlPlane) -> Iterator[None]:
    """A pod that is up, and that no scheduler has asked."""

    class Metrics(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"# no request yet\n")

        def log_message(self, *_: Any) -> None:
            """Into no test's output."""

    with HTTPServer((own_address(), 0), Metrics) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        plane.apply([extender_pod("joulie-extender-0", server.server_port)])
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("kind", "hints"),
    [
        ("dry run", {"dry-run", "telemetry-static"}),
        ("default", {"scheduler-not-asking", "telemetry-static", "hardware-heuristic", "cannot-cap"}),
        ("pool", {"scheduler-not-asking"}),
        ("kwok", {"scheduler-not-asking"}),
    ],
)
def test_a_healthy_cluster_has_no_finding_and_at_most_hints(
    kind: str, hints: set[str], fresh_cluster: ControlPlane
) -> None:
    cluster = Cluster(fresh_cluster, kind)
    bound = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "placed", "namespace": "default"},
        "spec": {"nodeName": "node-0", "containers": [{"name": "c", "image": "i"}]},
        "status": {
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": seconds(time.time())},
            ]
        },
    }
    fresh_cluster.apply([bound] if kind != "dry run" else [])
    try:
        with extender(fresh_cluster):
            outcome = cluster.doctor()
        document = outcome.document
        assert (outcome.code, document["faults"], document["warnings"], document["findings"]) == (0, 0, 0, [])
        assert {hint["kind"] for hint in document["hints"]} == hints
        status = joulie("status", "-o", "json", env={"KUBECONFIG": str(fresh_cluster.kubeconfig)}).document
        assert [one["node"] for one in status["attention"]] == (["node-1"] if kind == "dry run" else [])
        if kind == "dry run":
            simulated = [hint for hint in document["hints"] if hint["kind"] == "dry-run"]
            assert sorted(hint["node"] for hint in simulated) == ["node-0", "node-1", "node-2", "node-3"]
            assert "CPU cap of 60 % is not enforced: no powercap" in str(simulated), "what would happen is told"
    finally:
        cluster.remove()


def test_definitions_that_are_all_missing_are_one_fault_and_the_next_step_brings_them(
    fresh_cluster: ControlPlane,
) -> None:
    plane = fresh_cluster
    names = [one["metadata"]["name"] for one in crds()]
    for name in names:
        plane.api.delete(f"{CRDS}/{name}")
    wait_for(lambda: not any(exists_at(plane, f"{CRDS}/{name}") for name in names), 60.0)
    env = {"KUBECONFIG": str(plane.kubeconfig)}
    try:
        outcome = joulie("doctor", "-o", "json", env=env)
    finally:
        plane.install_crds()
    (finding,) = [one for one in outcome.document["findings"] if one["kind"] == "crd-missing"]
    assert outcome.code == 1
    assert all(name in finding["text"] for name in names)
    assert finding["nextStep"] == "joulie crds | kubectl apply -f -"
    again = joulie("doctor", "-o", "json", env=env).document
    assert "crd-missing" not in str(again)


def exists_at(plane: ControlPlane, path: str) -> bool:
    from testbed.api import ApiError

    try:
        plane.api.get(path)
    except ApiError as error:
        if error.status != 404:
            raise
        return False
    return True


def test_objects_that_an_edited_definition_let_in_are_named(fresh_cluster: ControlPlane) -> None:
    """Without its schema the API server takes anything."""
    plane, env = fresh_cluster, {"KUBECONFIG": str(fresh_cluster.kubeconfig)}
    kinds = {
        "NodeHardware": "nodehardwares",
        "NodePowerProfile": "nodepowerprofiles",
        "TelemetryProfile": "telemetryprofiles",
    }
    open_ended = [deepcopy(one) for one in crds() if one["spec"]["names"]["kind"] in kinds]
    for one in open_ended:
        version = one["spec"]["versions"][0]
        version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    try:
        plane.apply(open_ended)
        for kind, plural in kinds.items():
            odd = {"apiVersion": "joulie.io/v1alpha1", "kind": kind, "metadata": {"name": "odd"}, "spec": {"target": 5}}
            odd |= {"status": {"cpu": {"sockets": "many"}}} if kind == "NodeHardware" else {}
            wait_for(lambda plural=plural, odd=odd: accepted(plane, f"{JOULIE}/{plural}", odd), 60.0)  # type: ignore[misc]
            if kind == "NodeHardware":
                plane.api.patch(f"{JOULIE}/{plural}/odd/status", {"status": odd["status"]})
        findings = joulie("doctor", "-o", "json", env=env).document["findings"]
        broken = {one["text"].partition(" ")[0] for one in findings if one["kind"] == "broken-object"}
        assert broken == {f"{kind}/odd" for kind in kinds}
        assert sum(one["kind"] == "crd-outdated" for one in findings) == 3
    finally:
        for plural in kinds.values():
            plane.api.delete(f"{JOULIE}/{plural}")
        plane.install_crds()


def accepted(plane: ControlPlane, path: str, body: Object) -> bool:
    from testbed.api import ApiError

    try:
        plane.api.post(path, body)
    except ApiError as error:
        return error.status == 409
    return True


def test_a_namespace_that_was_deleted_is_told_as_the_one_cause(fresh_cluster: ControlPlane) -> None:
    plane = fresh_cluster
    cluster = Cluster(plane, "pool")
    env, path = {"KUBECONFIG": str(plane.kubeconfig)}, f"/api/v1/namespaces/{NAMESPACE}"
    try:
        plane.api.delete(path)  # nothing finishes that here, as there is no controller
        outcome = cluster.doctor()
        assert [(one["kind"], one["severity"]) for one in outcome.document["findings"]] == [
            ("namespace-deleted", "fault")
        ]
        assert "is being deleted" in outcome.document["findings"][0]["text"]

        cluster.remove_workloads()
        plane.api.delete(LEASE)
        space = plane.api.get(path)
        plane.api.put(f"{path}/finalize", space | {"spec": {"finalizers": []}})
        wait_for(lambda: not exists_at(plane, path), 60.0)
        outcome = cluster.doctor()
        (finding,) = outcome.document["findings"]
        assert (finding["kind"], outcome.code) == ("namespace-deleted", 1)
        assert f"the namespace {NAMESPACE} has been deleted" in finding["text"]
        assert "4 NodeTwins, labels of 4 nodes" in finding["text"]
        assert "helm upgrade --install joulie" in finding["nextStep"]
        assert "joulie cleanup --yes; kubectl delete " in finding["nextStep"]

        assert joulie("cleanup", "--yes", env=env).code == 0  # as the next step says
        for target in finding["nextStep"].partition("kubectl delete ")[2].split():
            group = "admissionregistration" if "admission" in target.partition("/")[0] else "rbac.authorization"
            plane.api.delete(f"/apis/{group}.k8s.io/v1/{target}")
        kinds = [one["kind"] for one in cluster.doctor().document["findings"]]
        assert "namespace-deleted" not in kinds
        assert "left-behind" not in kinds
    finally:
        Rights("operator").grant(plane)


def test_what_an_uninstall_left_is_told_with_the_command_that_removes_it(fresh_cluster: ControlPlane) -> None:
    plane, env = fresh_cluster, {"KUBECONFIG": str(fresh_cluster.kubeconfig)}
    cluster = Cluster(plane, "pool")
    cluster.remove()
    plane.api.delete(LEASE)
    findings = {one["kind"]: one for one in cluster.doctor().document["findings"]}
    assert set(findings) == {"no-leader", "left-behind"}
    assert "4 NodeTwins, labels of 4 nodes" in findings["left-behind"]["text"]
    assert joulie("cleanup", "--yes", env=env).code == 0
    left = {one["kind"]: one for one in cluster.doctor().document["findings"]}
    assert "labels of" not in str(left)


def test_nodes_that_nothing_manages_are_a_warning_on_a_new_cluster(fresh_cluster: ControlPlane) -> None:
    cluster = Cluster(fresh_cluster, "pool")
    try:
        fresh_cluster.api.delete(f"{JOULIE}/nodetwins")
        for number in range(4):
            gone = {
                "metadata": {
                    "labels": dict.fromkeys(("joulie.io/managed", "joulie.io/power-profile", "joulie.io/draining"))
                }
            }
            fresh_cluster.api.patch(f"/api/v1/nodes/node-{number}", gone)
        with extender(fresh_cluster):
            outcome = cluster.doctor()
        (finding,) = outcome.document["findings"]
        assert (finding["kind"], finding["severity"], outcome.code) == ("scope-empty", "warning", 0)
        assert finding["nextStep"] == "kubectl label node NAME joulie.io/managed=true"
        status = joulie("status", env={"KUBECONFIG": str(fresh_cluster.kubeconfig)}).out
        assert "NODE_SELECTOR 'joulie.io/managed=true' matches none of 4 nodes" in status
    finally:
        cluster.remove()

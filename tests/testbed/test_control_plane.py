"""The control plane that other tests stand on: a real API server that can be hurt and brought back."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from joulie.cluster.crds.definitions import KINDS
from testbed.api import ApiError
from testbed.build import KUBERNETES_VERSION
from testbed.control_plane import ControlPlane
from testbed.objects import fill, load
from testbed.requests_seen import Request

ROOT = Path(__file__).resolve().parents[2]
CRDS = ROOT / "deploy" / "chart" / "joulie" / "crds"
TWINS = "/apis/joulie.io/v1alpha1/nodetwins"


def twin(name: str = "node-1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodeTwin",
        "metadata": {"name": name},
        "spec": {"nodeName": name, "profile": "eco", **spec},
    }


def node(name: str) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True"}
    room = {"cpu": "8", "memory": "16Gi", "pods": "100"}
    status = {"capacity": room, "allocatable": room, "conditions": [ready]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "registry.example/app:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def eventually(holds: Callable[[], object], timeout_s: float = 20) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline_s, "it never came true"
        time.sleep(0.05)


def watched(plane: ControlPlane, path: str, version: str) -> list[dict[str, Any]]:
    """What one second of watching from this version tells."""
    lines = plane.api.raw("GET", f"{path}?watch=1&timeoutSeconds=1&resourceVersion={version}").splitlines()
    return [json.loads(line) for line in lines]


def test_the_api_server_is_the_version_that_was_asked_for(control_plane: ControlPlane) -> None:
    assert control_plane.api.get("/version")["gitVersion"] == KUBERNETES_VERSION


def test_every_definition_is_established_and_none_has_a_schema_problem(control_plane: ControlPlane) -> None:
    for kind in KINDS:
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind.plural}.joulie.io"
        conditions = {c["type"]: c["status"] for c in control_plane.api.get(path)["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}


def test_the_shipped_definitions_are_taken_without_a_warning(control_plane: ControlPlane, kubectl: Path) -> None:
    outcome = run_kubectl(control_plane, kubectl, "apply", "--dry-run=server", "-f", str(CRDS))
    assert outcome.returncode == 0, outcome.stderr
    warnings = [line for line in outcome.stderr.splitlines() if "last-applied-configuration" not in line]
    assert warnings == []


def test_an_invalid_twin_is_refused(fresh_cluster: ControlPlane) -> None:
    with pytest.raises(ApiError, match="turbo") as refused:
        fresh_cluster.apply([twin(profile="turbo")])
    assert refused.value.status == 422


def test_fields_that_the_schema_does_not_know_are_dropped(fresh_cluster: ControlPlane) -> None:
    fresh_cluster.apply([twin(colour="green")])
    assert fresh_cluster.api.get(f"{TWINS}/node-1")["spec"] == {"nodeName": "node-1", "profile": "eco"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.plural)
def test_kubectl_shows_the_printer_columns(fresh_cluster: ControlPlane, kubectl: Path, kind: Any) -> None:
    spec: dict[str, Any] = {}
    if kind.kind == "TelemetryProfile":
        spec = {"spec": {"target": {"scope": "cluster"}}}
    elif kind.kind == "PowerBudget":
        spec = {"spec": {"watts": 12_000}}
    elif kind.kind != "NodeHardware":
        spec = {"spec": {"nodeName": "node-1", "profile": "eco"}}
    fresh_cluster.apply(
        [{"apiVersion": "joulie.io/v1alpha1", "kind": kind.kind, "metadata": {"name": "node-1"}, **spec}]
    )
    header = run_kubectl(fresh_cluster, kubectl, "get", kind.short, "-o", "wide").stdout.splitlines()[0]
    assert header.split() == ["NAME", *(column.name.upper() for column in kind.columns)]


def test_applying_again_replaces_object_and_status(fresh_cluster: ControlPlane) -> None:
    first = {**twin(policy={"name": "one"}), "status": {"schedulableClass": "eco"}}
    second = {**twin(), "status": {"schedulableClass": "draining"}}
    for manifest in (first, second):
        fresh_cluster.apply([manifest])
    stored = fresh_cluster.api.get(f"{TWINS}/node-1")
    assert stored["spec"] == second["spec"]
    assert stored["status"] == second["status"]


def test_applying_a_pod_again_changes_its_annotations(fresh_cluster: ControlPlane) -> None:
    fresh_cluster.apply([pod("web"), pod("web", annotations={"joulie.io/workload-class": "performance"})])
    stored = fresh_cluster.api.get("/api/v1/namespaces/default/pods/web")
    assert stored["metadata"]["annotations"] == {"joulie.io/workload-class": "performance"}


@pytest.mark.parametrize("end", ["restart_apiserver", "kill_apiserver"])
def test_objects_survive_the_end_of_the_api_server(fresh_cluster: ControlPlane, end: str) -> None:
    fresh_cluster.apply([twin()])
    getattr(fresh_cluster, end)()
    fresh_cluster.start_apiserver()
    assert fresh_cluster.api.get(f"{TWINS}/node-1")["spec"]["profile"] == "eco"


def test_a_watch_of_a_compacted_version_is_told_that_it_expired(fresh_cluster: ControlPlane) -> None:
    version = fresh_cluster.api.get(TWINS)["metadata"]["resourceVersion"]
    fresh_cluster.apply([twin()])
    assert [event["type"] for event in watched(fresh_cluster, TWINS, version)] == ["ADDED"]
    fresh_cluster.compact_etcd()
    fresh_cluster.restart_apiserver()
    (event,) = watched(fresh_cluster, TWINS, version)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_a_page_of_a_compacted_list_is_told_that_it_expired(fresh_cluster: ControlPlane) -> None:
    fresh_cluster.apply([twin("node-1"), twin("node-2")])
    token = fresh_cluster.api.get(f"{TWINS}?limit=1")["metadata"]["continue"]
    fresh_cluster.compact_etcd()
    fresh_cluster.restart_apiserver()
    with pytest.raises(ApiError) as expired:
        fresh_cluster.api.get(f"{TWINS}?limit=1&continue={token}")
    assert expired.value.status == 410


def test_a_frozen_api_server_hangs_and_goes_on_afterwards(fresh_cluster: ControlPlane) -> None:
    with fresh_cluster.frozen_apiserver(), pytest.raises(TimeoutError):
        fresh_cluster.api.raw("GET", TWINS, timeout_s=0.5)
    assert not fresh_cluster.api.get(TWINS).get("items")


def test_a_service_account_has_its_own_rights_and_no_others(fresh_cluster: ControlPlane) -> None:
    account = {"name": "reader", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "testbed-reader"}
    rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}
    subject = {**account, "kind": "ServiceAccount"}
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "testbed-reader"}}
    fresh_cluster.apply(
        [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
            {**rbac, "kind": "ClusterRole", "rules": [rule]},
            {**rbac, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": [subject]},
            node("node-1"),
        ]
    )
    reader = fresh_cluster.api_as(fresh_cluster.service_account_token("default", "reader"))

    def may(method: str, path: str) -> bool:
        try:
            reader.raw(method, path)
        except ApiError as error:
            if error.status == 403:
                return False
            raise
        return True

    eventually(lambda: may("GET", "/api/v1/nodes"))
    assert not may("DELETE", "/api/v1/nodes/node-1")
    assert not may("GET", "/api/v1/pods")
    assert not may("GET", TWINS)


def test_the_api_servers_counters_tell_what_a_client_did(fresh_cluster: ControlPlane) -> None:
    before = fresh_cluster.metrics()
    fresh_cluster.apply([{**twin(), "status": {"schedulableClass": "eco"}}])
    fresh_cluster.api.get(TWINS)
    watched(fresh_cluster, TWINS, "0")
    seen = fresh_cluster.metrics() - before
    assert Counter({request: count for request, count in seen.items() if request.resource == "nodetwins"}) == {
        Request("POST", "nodetwins"): 1,
        Request("PATCH", "nodetwins", "status"): 1,
        Request("LIST", "nodetwins"): 1,
        Request("WATCH", "nodetwins"): 1,
    }


def test_an_api_server_outlives_the_thread_that_started_it(fresh_cluster: ControlPlane) -> None:
    thread = threading.Thread(target=fresh_cluster.restart_apiserver)
    thread.start()
    thread.join()
    time.sleep(0.5)
    assert fresh_cluster.api.get("/version")["gitVersion"] == KUBERNETES_VERSION


def test_a_pending_pod_is_bound_by_the_scheduler(fresh_cluster: ControlPlane) -> None:
    fresh_cluster.apply([node("node-1"), pod("web")])
    profiles = [{"schedulerName": "default-scheduler", "percentageOfNodesToScore": 100}]
    with fresh_cluster.scheduler({"profiles": profiles}) as scheduler:
        path = "/api/v1/namespaces/default/pods/web"
        eventually(lambda: fresh_cluster.api.get(path)["spec"].get("nodeName") == "node-1")
        assert (
            'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1' in scheduler.metrics()
        )


@pytest.mark.parametrize("make", [fill, load])
def test_a_filled_cluster_has_ready_managed_nodes_and_running_and_waiting_pods(
    fresh_cluster: ControlPlane, make: Callable[..., None]
) -> None:
    make(fresh_cluster, nodes=20, pods_per_node=3)
    nodes = fresh_cluster.api.get("/api/v1/nodes?labelSelector=joulie.io/managed=true")["items"]
    assert len(nodes) == 20
    assert all(n["status"]["conditions"][-1]["type"] == "Ready" and not n["spec"].get("taints") for n in nodes)
    assert len({n["metadata"]["labels"]["joulie.io/hw.cpu-model"] for n in nodes}) > 2
    hardware = fresh_cluster.api.get("/apis/joulie.io/v1alpha1/nodehardwares")["items"]
    assert len(hardware) == 20
    assert all(item["status"]["cpu"]["totalCores"] for item in hardware)
    pods = fresh_cluster.api.get("/api/v1/pods")["items"]
    phases = Counter((p["status"]["phase"], "nodeName" in p["spec"]) for p in pods)
    assert phases.total() == 60
    assert set(phases) == {("Running", True), ("Pending", False)}


def test_a_fresh_cluster_is_empty(fresh_cluster: ControlPlane) -> None:
    for path in ("/api/v1/nodes", "/api/v1/pods", TWINS, "/apis/joulie.io/v1alpha1/nodehardwares"):
        assert not fresh_cluster.api.get(path).get("items")


def run_kubectl(plane: ControlPlane, kubectl: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(kubectl), f"--kubeconfig={plane.kubeconfig}", f"--cache-dir={plane.folder / 'kubectl'}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)

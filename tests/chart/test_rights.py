"""Simulator, cleanup job and people: what the chart lets them do is what they need, and they can do no more."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.chart.charts import SIMULATED, Helm, find
from tests.chart.kubelet import until
from tests.extender.scheduler.scheduling import create, node, twin
from tests.support.rights import NAMESPACE, Rights

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

FORBIDDEN = 403
RBAC = "rbac.authorization.k8s.io/v1"
APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
VERBS = {"list": "LIST", "patch": "PATCH", "delete": "DELETE", "get": "GET", "update": "PUT", "watch": "WATCH"}


def test_cleanup_uses_each_of_its_rights_and_needs_no_other(
    fresh_cluster: ControlPlane, helm: Helm, tmp_path: Path
) -> None:
    plane = fresh_cluster
    hardware = {"apiVersion": "joulie.io/v1alpha1", "kind": "NodeHardware", "metadata": {"name": "a"}}
    order = {"order": 1, "caps": {"cpuWattsPerPackage": 200}}
    followed = {"twinUid": "u", "order": 2, "bootId": "", "session": 1, "sequence": 1}
    held = twin("a", "eco")
    held["spec"]["budget"], held["status"] = order, {"controlStatus": {"budget": followed}}
    create(plane, [node("a", "eco"), held, {**hardware, "spec": {"nodeName": "a"}}])
    plane.api.patch("/api/v1/nodes/a/status", {"status": {"capacity": {"joulie.io/watts": "800"}}})
    rights = Rights("cleanup")
    token = rights.grant(plane)
    pool, host = helm.render(SIMULATED), helm.render()
    plane.apply([find(host, "Deployment", "joulie-operator"), find(pool, "StatefulSet", "joulie-agent")])
    plane.apply([find(host, "DaemonSet", "joulie-agent")])
    lease = {"holderIdentity": "gone", "leaseDurationSeconds": 1, "renewTime": "2026-01-01T00:00:00.000000Z"}
    plane.api.post(LEASES, {"metadata": {"name": "joulie-operator"}, "spec": lease})
    before = plane.metrics()
    outcome = run(plane, token, tmp_path, "cleanup", "--yes")
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert plane.api.get(f"{APPS}/daemonsets")["items"] in ([], None)
    assert plane.api.get(f"{APPS}/deployments/joulie-operator")["spec"]["replicas"] == 0
    assert plane.api.get(f"{APPS}/statefulsets/joulie-agent")["spec"]["replicas"] == 0

    # The API server counts for all clients, but no other scales, or deletes twins, meanwhile.
    def unused() -> set[str]:
        seen = {
            (request.verb, f"{request.resource}/{request.subresource}".strip("/"))
            for request in plane.metrics() - before
        }
        return {str(right) for right in rights.all() if (VERBS[right.verb], right.resource) not in seen}

    until(lambda: not unused(), f"each right is used, but {unused()}", 10)
    for path in ("deployments/joulie-operator", "statefulsets/joulie-agent"):
        plane.api.delete(f"{APPS}/{path}")


@pytest.mark.parametrize("component", ["cleanup", "simulator"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/configmaps"),
        ("DELETE", "/api/v1/nodes/a"),
        ("PUT", "/api/v1/nodes/a/status"),
        ("DELETE", "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings/another"),
        ("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/joulie-node-fields"),
        ("DELETE", "/api/v1/namespaces/default/pods/p"),
        ("POST", "/api/v1/namespaces/default/pods/p/eviction"),
        ("DELETE", f"{APPS}/daemonsets/another"),
        ("PATCH", f"{APPS}/deployments/another/scale"),
        ("PATCH", f"{APPS}/deployments/joulie-operator"),
        ("PATCH", "/apis/apps/v1/namespaces/default/deployments/joulie-operator/scale"),
        ("DELETE", f"{LEASES}/another"),
        ("PATCH", "/apis/joulie.io/v1alpha1/nodetwins/a/status"),
        ("DELETE", "/apis/joulie.io/v1alpha1/nodepowerprofiles/a"),
        ("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodetwins.joulie.io"),
    ],
)
def test_they_can_do_no_more(fresh_cluster: ControlPlane, component: str, method: str, path: str) -> None:
    from testbed.api import ApiError

    api = fresh_cluster.api_as(Rights(component).grant(fresh_cluster))
    body: dict[str, Any] | None = None if method in ("GET", "DELETE") else {}
    with pytest.raises(ApiError) as refusal:
        api.raw(method, path, body, "application/merge-patch+json" if method == "PATCH" else "")
    assert refusal.value.status == FORBIDDEN


@pytest.fixture
def person(fresh_cluster: ControlPlane, helm: Helm) -> Callable[..., str]:
    """The token of a user with these of the chart's roles for people."""

    def with_roles(*names: str) -> str:
        plane, account = fresh_cluster, "-".join(("person", *names))
        roles = [find(helm.render(), "ClusterRole", name) for name in names]
        subject = {"kind": "ServiceAccount", "name": account, "namespace": "default"}
        metadata = {"name": account, "namespace": "default"}
        plane.apply([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}, *roles])
        for role in names:
            binding = {"kind": "ClusterRoleBinding", "apiVersion": RBAC, "metadata": {"name": f"{account}-{role}"}}
            reference = {"apiGroup": RBAC.partition("/")[0], "kind": "ClusterRole", "name": role}
            plane.apply([{**binding, "roleRef": reference, "subjects": [subject]}])
        token = plane.service_account_token("default", account)
        until(lambda: _sees_twins(plane, token), "the roles are known", 20)
        return token

    return with_roles


def test_a_viewer_sees_everything_and_changes_nothing(
    fresh_cluster: ControlPlane, person: Callable[..., str], tmp_path: Path
) -> None:
    create(fresh_cluster, [node("a", "eco"), twin("a", "eco")])
    token = person("joulie-viewer")
    for command in (
        ["status"],
        ["plan"],
        ["explain", "node", "a"],
        ["top", "--once"],
        ["budget"],
        ["doctor", "-o", "json"],
    ):
        outcome = run(fresh_cluster, token, tmp_path, *command)
        assert outcome.returncode in ((0, 1) if command[0] == "doctor" else (0,)), (command, outcome.stderr)
        assert "orbidden" not in outcome.stderr, (command, outcome.stderr)
        assert '"forbidden"' not in outcome.stdout, outcome.stdout
    outcome = run(fresh_cluster, token, tmp_path, "pin", "a", "performance")
    assert outcome.returncode != 0
    assert "nodepowerprofiles" in outcome.stderr


def test_a_pinner_pins_and_unpins(fresh_cluster: ControlPlane, person: Callable[..., str], tmp_path: Path) -> None:
    create(fresh_cluster, [node("a", "eco"), twin("a", "eco")])
    token = person("joulie-viewer", "joulie-pinner")
    pins = "/apis/joulie.io/v1alpha1/nodepowerprofiles"
    for command, there in (
        (["pin", "a", "performance"], 1),
        (["pin", "a", "eco", "--for", "2h"], 1),
        (["unpin", "a"], 0),
    ):
        outcome = run(fresh_cluster, token, tmp_path, *command)
        assert outcome.returncode == there, outcome.stderr  # stored, and no operator leads that would act on a pin
        assert outcome.stderr == ""
        assert len(fresh_cluster.api.get(pins)["items"] or ()) == there


def test_a_budgeter_writes_budgets_and_brakes(
    fresh_cluster: ControlPlane, person: Callable[..., str], tmp_path: Path
) -> None:
    create(fresh_cluster, [node("a", "eco"), twin("a", "eco")])
    budget = {"apiVersion": "joulie.io/v1alpha1", "kind": "PowerBudget", "metadata": {"name": "feed"}}
    token = person("joulie-viewer", "joulie-budgeter")
    budgets = "/apis/joulie.io/v1alpha1/powerbudgets"
    fresh_cluster.api_as(token).post(budgets, {**budget, "spec": {"watts": 9000}})
    for command, key in ((["pause"], "joulie.io/paused"), (["budget", "forget", "b", "--yes"], "joulie.io/forget")):
        outcome = run(fresh_cluster, token, tmp_path, *command)
        assert outcome.returncode == 1, outcome.stderr  # stored, and no operator leads that would act on it
        assert outcome.stderr == ""
        assert key in fresh_cluster.api.get(f"{budgets}/feed")["metadata"]["annotations"]


def _sees_twins(plane: ControlPlane, token: str) -> bool:
    from testbed.api import ApiError

    try:
        plane.api_as(token).get("/apis/joulie.io/v1alpha1/nodetwins")
    except ApiError:
        return False
    return True


def run(plane: ControlPlane, token: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    from testbed.credentials import write_kubeconfig

    config = write_kubeconfig(folder / "kubeconfig", plane.url, plane.ca_file, token)
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": str(config), "POD_NAMESPACE": NAMESPACE}
    command = [sys.executable, "-m", "joulie", *arguments]
    return subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)

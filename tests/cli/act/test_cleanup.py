"""`joulie cleanup` leaves nothing: while everything runs, as the chart's job does it, by hand, and twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from testbed.api import ApiError
from testbed.credentials import write_kubeconfig
from tests.agent.chain import JOULIE
from tests.chart.leftovers import written_to_nodes
from tests.cli.installation import LEASE, NODES, ROOT, Installation, workload
from tests.support.cli_runner import joulie
from tests.support.rights import NAMESPACE, Rights

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS = ("nodetwins", "nodehardwares", "nodepowerprofiles", "telemetryprofiles")


@pytest.fixture
def there(fresh_cluster: ControlPlane, tmp_path: Path) -> Iterator[Installation]:
    with ExitStack() as ends:
        yield Installation(fresh_cluster, tmp_path, ends)


def present(plane: ControlPlane, path: str) -> bool:
    try:
        plane.api.get(path)
    except ApiError as error:
        if error.status != 404:
            raise
        return False
    return True


def left(plane: ControlPlane) -> dict[str, Any]:
    """What a person would find of Joulie, but for what people wrote."""
    return {
        "on nodes": written_to_nodes(plane),
        "twins": plane.api.get(f"{JOULIE}/nodetwins")["items"],
        "hardware": plane.api.get(f"{JOULIE}/nodehardwares")["items"],
        "lease": present(plane, LEASE),
    }


NOTHING = {"on nodes": set(), "twins": [], "hardware": [], "lease": False}


def kubelet(there: Installation, stop: threading.Event) -> None:
    """Ends processes when their pods are deleted, as a kubelet would; agents restore machines then."""
    while not stop.is_set():
        deployment = there.plane.api.get(f"{APPS}/deployments/joulie-operator")
        if deployment["spec"]["replicas"] == 0 and there.operator.process.poll() is None:
            there.operator.stop()
        if not present(there.plane, f"{APPS}/daemonsets/joulie-agent") and there.agent.process.poll() is None:
            there.agent.stop()
        stop.wait(0.1)


def test_the_charts_job_ends_operator_and_agents_and_leaves_nothing_but_definitions_and_pins(
    there: Installation, tmp_path: Path
) -> None:
    plane = there.plane
    plane.apply([workload("Deployment", "operator"), workload("DaemonSet", "agent")])
    pin = {"nodeName": there.names[0], "profile": "eco"}
    plane.apply(
        [{"apiVersion": "joulie.io/v1alpha1", "kind": "NodePowerProfile", "metadata": {"name": "mine"}, "spec": pin}]
    )
    budget = {"watts": 1_000 * NODES}
    plane.apply(
        [{"apiVersion": "joulie.io/v1alpha1", "kind": "PowerBudget", "metadata": {"name": "feed"}, "spec": budget}]
    )
    there.wait_until(lambda: any(cap is not None for cap in there.chain.cpu_caps_w().values()), "machines are capped")
    there.wait_until(
        lambda: all("budget" in there.twin(name)["spec"] for name in there.names), "every twin carries an order"
    )
    token = Rights("cleanup").grant(plane)  # the rights that the chart gives to its job, and no more
    config = write_kubeconfig(tmp_path / "cleanup", plane.url, plane.ca_file, token)
    stop = threading.Event()
    helper = threading.Thread(target=kubelet, args=(there, stop))
    helper.start()
    try:
        outcome = there.run_as(config, "cleanup", "--yes", "--namespace", NAMESPACE)
    finally:
        stop.set()
        helper.join()
    assert outcome.code == 0, outcome
    assert f"to remove: {NODES} NodeTwin" in outcome.out
    assert "stopping Deployment joulie-operator" in outcome.out
    assert "stopping DaemonSet joulie-agent" in outcome.out
    assert f"releasing the budget caps of {NODES} nodes" in outcome.out
    done = [line for line in outcome.out.splitlines() if line.startswith("done: ")]
    assert len(done) == 1
    assert done[0].startswith("done: nothing that Joulie wrote is left; still installed: definitions and pins")
    assert "ClusterRole" not in done[0], "the job may not list those, and Helm removes them right after it"
    assert left(plane) == NOTHING
    assert [item["metadata"]["name"] for item in plane.api.get(f"{JOULIE}/nodepowerprofiles")["items"]] == ["mine"]
    assert "joulie.io/managed" in plane.api.get(f"/api/v1/nodes/{there.names[0]}")["metadata"]["labels"]
    if there.agent.process.poll() is None:
        there.agent.stop()
    assert set(there.chain.cpu_caps_w().values()) == {None}, "machines are as they were found"
    plane.api.delete(f"{APPS}/deployments/joulie-operator")

    again = there.run("cleanup", "--yes")
    assert (again.code, again.out) == (0, "nothing that Joulie wrote is left to remove\n")


def test_definitions_go_on_demand_and_a_cluster_without_them_can_still_be_planned(there: Installation) -> None:
    there.operator.stop()
    there.agent.stop()
    outcome = there.run("cleanup", "--yes", "--crds")
    try:
        assert outcome.code == 0, outcome
        assert "to remove: the definition nodetwins.joulie.io" in outcome.out
        assert "done: nothing" in outcome.out
        assert not any(present(there.plane, f"{CRDS}/{kind}.joulie.io") for kind in KINDS)
        plan = there.run("plan")
        assert plan.code == 0
        assert f"{NODES} nodes would change" in plan.out
        assert "NodeHardware, NodeTwin, NodePowerProfile: the cluster does not have these kinds" in plan.err
        assert "joulie crds | kubectl apply -f -" in plan.err
        assert there.run("status").code == 0
        assert there.run("pin", there.names[0], "eco").code == 2
        assert there.run("unpin", there.names[0]).code == 0
        again = there.run("cleanup", "--crds", "--dry-run").out
        assert again.startswith("nothing that Joulie wrote is left to remove\n")
    finally:
        there.plane.install_crds()


def test_it_asks_first_and_names_an_operator_that_it_cannot_end(there: Installation) -> None:
    """That one runs outside the cluster, say on an administrator's laptop; meanwhile it does not write."""
    outcome = there.run("cleanup")
    assert outcome.code == 2
    assert "not a terminal; pass --yes, or --dry-run to change nothing" in outcome.err
    assert there.run("cleanup", "--dry-run").code == 0
    elsewhere = there.run("cleanup", "--yes", "--namespace", "default")
    assert elsewhere.complaint == f"an operator leads in namespace {NAMESPACE}: pass --namespace {NAMESPACE}"
    untouched = left(there.plane)
    assert len(untouched["twins"]) == NODES
    assert untouched["lease"]

    outcome = there.run("cleanup", "--yes", "--timeout", "5s")
    assert outcome.code == 1
    assert "an operator outside this namespace's workloads is leading again: " in outcome.out
    assert there.operator.process.poll() is None


def test_labels_with_another_name_go_too_by_the_settings_of_the_operator(fresh_cluster: ControlPlane) -> None:
    plane = fresh_cluster
    operator = workload("Deployment", "operator")
    operator["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "POWER_PROFILE_LABEL", "value": "a.b/c"}]
    operator["spec"]["replicas"] = 0  # it was ended before
    Rights("operator").grant(plane)  # makes the namespace
    plane.apply([operator, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"a.b/c": "eco"}}}])
    try:
        outcome = joulie("cleanup", "--yes", env={"KUBECONFIG": str(plane.kubeconfig)})
        assert (outcome.code, outcome.out.splitlines()[0]) == (0, "to remove: Joulie's labels of 1 node")
        assert "a.b/c" not in plane.api.get("/api/v1/nodes/n")["metadata"].get("labels", {})
    finally:
        plane.api.delete(f"{APPS}/deployments/joulie-operator")


OURS = {"key": "joulie.io/uncapped", "effect": "NoSchedule"}
FOREIGN = {"key": "example.com/gpu", "value": "yes", "effect": "NoSchedule"}


def written(name: str, *taints: dict[str, str], watts: bool = True) -> dict[str, Any]:
    room = {"cpu": "8", "example.com/npu": "2"} | ({"joulie.io/watts": "800"} if watts else {})
    status = {"capacity": room, "allocatable": room}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {"taints": list(taints)},
        "status": status,
    }


def test_watts_and_taints_go_with_the_rights_of_the_job_and_what_others_wrote_stays(
    fresh_cluster: ControlPlane, tmp_path: Path
) -> None:
    plane = fresh_cluster
    plane.apply([written("a", FOREIGN, OURS, {**OURS, "key": "joulie.io/asleep"}), written("b", OURS, watts=False)])
    plane.apply([written("c"), written("d", FOREIGN, watts=False)])
    untouched = plane.api.get("/api/v1/nodes/d")
    config = write_kubeconfig(tmp_path / "job", plane.url, plane.ca_file, Rights("cleanup").grant(plane))
    policies = list(yaml.safe_load_all((ROOT / "deploy/admission/watts.yaml").read_text()))
    plane.apply(policies)
    bindings = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings/joulie-watts"
    try:
        tried = joulie("cleanup", "--dry-run", env={"KUBECONFIG": str(config)})
        assert tried.out.splitlines()[:2] == [
            "to remove: Joulie's taints of 2 nodes",
            "to remove: Joulie's resource joulie.io/watts of 2 nodes",
        ]
        assert "joulie.io/watts" in written_to_nodes(plane)
        outcome = joulie("cleanup", "--yes", env={"KUBECONFIG": str(config)})
        assert outcome.code == 0, outcome
        assert written_to_nodes(plane) == set()
        assert not present(plane, bindings), "else new pods would ask for what no node has"
        assert "pods that still wait for joulie.io/watts have to be created again" in outcome.out
        first = plane.api.get("/api/v1/nodes/a")
        assert first["spec"]["taints"] == [FOREIGN]
        assert first["status"]["capacity"] == {"cpu": "8", "example.com/npu": "2"}
        assert plane.api.get("/api/v1/nodes/d") == untouched
        again = joulie("cleanup", "--yes", env={"KUBECONFIG": str(config)})
        assert (again.code, again.out) == (0, "nothing that Joulie wrote is left to remove\n")
    finally:
        for one in policies:
            path = plane.api.resource_path(one["apiVersion"], one["kind"])
            if present(plane, target := f"{path.prefix}/{path.plural}/{one['metadata']['name']}"):
                plane.api.delete(target)


def test_a_taint_that_another_client_sets_meanwhile_is_not_lost(fresh_cluster: ControlPlane) -> None:
    """Taints are one list to the API server: many nodes are changed while they are cleaned, and keep every change."""
    plane, names = fresh_cluster, [f"n{number}" for number in range(30)]
    plane.apply(written(name, OURS, watts=False) for name in names)
    stop, changed = threading.Event(), dict.fromkeys(names, 0)

    def disturb() -> None:
        while not stop.is_set() and min(changed.values()) < 50:
            for name in names:
                try:
                    node = plane.api.get(f"/api/v1/nodes/{name}")
                    taint = {"key": f"example.com/{changed[name]}", "effect": "PreferNoSchedule"}
                    node["spec"]["taints"] = [*node["spec"].get("taints", ()), taint]
                    plane.api.put(f"/api/v1/nodes/{name}", node)
                    changed[name] += 1
                except ApiError as error:
                    if error.status != 409:  # the clean-up was faster
                        raise

    other = threading.Thread(target=disturb)
    other.start()
    try:
        outcome = joulie("cleanup", "--yes", env={"KUBECONFIG": str(plane.kubeconfig)})
    finally:
        stop.set()
        other.join()
    assert outcome.code == 0, outcome
    assert written_to_nodes(plane) == set()
    for name in names:
        kept = [one["key"] for one in plane.api.get(f"/api/v1/nodes/{name}")["spec"].get("taints", ())]
        assert kept == [f"example.com/{number}" for number in range(changed[name])]


def test_caps_that_may_not_be_released_are_one_line_and_no_success(fresh_cluster: ControlPlane, tmp_path: Path) -> None:
    plane, rights = fresh_cluster, Rights("cleanup")
    order = {"order": 1, "caps": {"cpuWattsPerPackage": 200}}
    spec = {"nodeName": "held", "budget": order}
    plane.apply([{"apiVersion": "joulie.io/v1alpha1", "kind": "NodeTwin", "metadata": {"name": "held"}, "spec": spec}])
    (patching,) = (one for one in rights.all() if (one.resource, one.verb) == ("nodetwins", "patch"))
    token = rights.grant(plane, without=patching)
    config = write_kubeconfig(tmp_path / "less", plane.url, plane.ca_file, token)
    outcome = joulie("cleanup", "--yes", env={"KUBECONFIG": str(config)})
    assert outcome.code == 1
    assert "failed: release of held: " in outcome.out
    assert "Traceback" not in outcome.out + outcome.err


def test_an_installation_in_another_namespace_is_named_even_while_its_operator_is_dead(
    fresh_cluster: ControlPlane,
) -> None:
    plane = fresh_cluster
    Rights("operator").grant(plane)
    plane.apply([workload("DaemonSet", "agent")])
    try:
        outcome = joulie("cleanup", "--yes", "--namespace", "default", env={"KUBECONFIG": str(plane.kubeconfig)})
        assert outcome.code == 2
        assert outcome.complaint == f"Joulie is installed in namespace {NAMESPACE}: pass --namespace {NAMESPACE}"
    finally:
        plane.api.delete(f"{APPS}/daemonsets/joulie-agent")


def test_it_does_not_claim_that_an_object_is_gone_which_a_finalizer_holds(fresh_cluster: ControlPlane) -> None:
    plane, env = fresh_cluster, {"KUBECONFIG": str(fresh_cluster.kubeconfig)}
    metadata = {"name": "held", "finalizers": ["example.com/held"]}
    twin = {"apiVersion": "joulie.io/v1alpha1", "kind": "NodeTwin", "metadata": metadata, "spec": {"nodeName": "held"}}
    plane.apply([twin])
    outcome = joulie("cleanup", "--yes", env=env)
    assert outcome.code == 1
    assert "failed: 1 NodeTwin still there, held by a finalizer" in outcome.out
    assert "done" not in outcome.out
    plane.api.patch(f"{JOULIE}/nodetwins/held", {"metadata": {"finalizers": None}})
    assert joulie("cleanup", "--yes", env=env).out == "nothing that Joulie wrote is left to remove\n"


def test_roles_and_admission_policies_that_stay_are_named_with_the_command_that_removes_them(
    fresh_cluster: ControlPlane,
) -> None:
    plane, env = fresh_cluster, {"KUBECONFIG": str(fresh_cluster.kubeconfig)}
    Rights("operator").grant(plane)
    plane.apply(yaml.safe_load_all((ROOT / "deploy/admission/performance-affinity.yaml").read_text()))
    plane.apply([workload("Deployment", "extender")])
    try:
        outcome = joulie("cleanup", "--crds", "--yes", env=env)
        assert outcome.code == 0, outcome
        for one in ("MutatingAdmissionPolicy joulie-performance-affinity", "ClusterRole joulie-operator"):
            assert one in outcome.out
        assert "Deployment joulie-extender" in outcome.out
        assert "nothing of Joulie is left" not in outcome.out
        by_helm = {"metadata": {"annotations": {"meta.helm.sh/release-name": "power"}}}
        plane.api.patch("/apis/rbac.authorization.k8s.io/v1/clusterroles/joulie-operator", by_helm)
        again = joulie("cleanup", "--crds", "--yes", env=env)
        assert "ClusterRole joulie-operator" in again.out, "also when there is nothing else to remove"
        assert f"helm uninstall power -n {NAMESPACE}" in again.out

        plane.api.delete(f"{APPS}/deployments/joulie-extender")
        (line,) = [line for line in again.out.splitlines() if "without Helm: " in line]
        verb, *targets = line.partition("without Helm: ")[2].removeprefix("kubectl ").split()
        assert verb == "delete"
        for target in targets:
            group = "admissionregistration" if "admission" in target.partition("/")[0] else "rbac.authorization"
            plane.api.delete(f"/apis/{group}.k8s.io/v1/{target}")
        last = joulie("cleanup", "--crds", "--yes", env=env)
        assert last.out.splitlines()[-1] == "nothing of Joulie is left"
    finally:
        plane.install_crds()

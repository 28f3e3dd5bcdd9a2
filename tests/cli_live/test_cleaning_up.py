"""`joulie cleanup` leaves nothing: while everything runs, as the chart's job does it, by hand, and twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from testbed.api import ApiError
from testbed.kubeconfig import write_kubeconfig
from tests.agent_shell.chain import JOULIE
from tests.cli_live.installation import LEASE, NODES, Installation, workload
from tests.cli_runner import joulie
from tests.rights import NAMESPACE, Rights

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
    nodes = plane.api.get("/api/v1/nodes")["items"]
    labels = {key for node in nodes for key in node["metadata"]["labels"] if key.startswith("joulie.io/")}
    return {
        "labels": labels & {"joulie.io/power-profile", "joulie.io/draining"},
        "twins": plane.api.get(f"{JOULIE}/nodetwins")["items"],
        "hardware": plane.api.get(f"{JOULIE}/nodehardwares")["items"],
        "lease": present(plane, LEASE),
    }


NOTHING = {"labels": set(), "twins": [], "hardware": [], "lease": False}


def kubelet(there: Installation, stop: threading.Event) -> None:
    """Ends processes when nobody wants their pods any more, as a kubelet would; agents restore machines then."""
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
    there.wait_until(lambda: any(cap is not None for cap in there.chain.cpu_caps_w().values()), "machines are capped")
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
    assert "Deployment joulie-operator is ending" in outcome.out
    assert "DaemonSet joulie-agent is ending" in outcome.out
    assert outcome.out.splitlines()[-1] == "done: nothing of Joulie's is left but definitions and pins"
    assert left(plane) == NOTHING
    assert [item["metadata"]["name"] for item in plane.api.get(f"{JOULIE}/nodepowerprofiles")["items"]] == ["mine"]
    assert "joulie.io/managed" in plane.api.get(f"/api/v1/nodes/{there.names[0]}")["metadata"]["labels"]
    if there.agent.process.poll() is None:
        there.agent.stop()
    assert set(there.chain.cpu_caps_w().values()) == {None}, "machines are as they were found"
    plane.api.delete(f"{APPS}/deployments/joulie-operator")

    again = there.run("cleanup", "--yes")
    assert (again.code, again.out) == (0, "there is nothing of Joulie's to remove\n")


def test_definitions_go_on_demand_and_a_cluster_without_them_can_still_be_planned(there: Installation) -> None:
    there.operator.stop()
    there.agent.stop()
    outcome = there.run("cleanup", "--yes", "--crds")
    try:
        assert outcome.code == 0, outcome
        assert "to remove: the definition nodetwins.joulie.io" in outcome.out
        assert outcome.out.splitlines()[-1] == "done: nothing of Joulie's is left"
        assert not any(present(there.plane, f"{CRDS}/{kind}.joulie.io") for kind in KINDS)
        plan = there.run("plan")
        assert plan.code == 0
        assert f"{NODES} nodes would change" in plan.out
        assert "NodeHardware, NodeTwin, NodePowerProfile: the cluster does not have these kinds" in plan.err
        assert "joulie crds | kubectl apply -f -" in plan.err
        assert there.run("status").code == 0
        assert there.run("pin", there.names[0], "eco").code == 2
        assert there.run("unpin", there.names[0]).code == 0
        assert there.run("cleanup", "--crds", "--dry-run").out == "there is nothing of Joulie's to remove\n"
    finally:
        there.plane.install_crds()


def test_it_asks_first_and_names_an_operator_that_it_cannot_end(there: Installation) -> None:
    """That one runs outside the cluster, say on an administrator's laptop; meanwhile it does not write."""
    outcome = there.run("cleanup")
    assert outcome.code == 2
    assert "say --yes, or --dry-run to look only" in outcome.err
    assert there.run("cleanup", "--dry-run").code == 0
    elsewhere = there.run("cleanup", "--yes", "--namespace", "default")
    assert elsewhere.complaint == f"an operator leads in the namespace {NAMESPACE}: --namespace {NAMESPACE}"
    untouched = left(there.plane)
    assert len(untouched["twins"]) == NODES
    assert untouched["lease"]

    outcome = there.run("cleanup", "--yes", "--timeout", "5s")
    assert outcome.code == 1
    assert "an operator still runs outside this namespace's workloads and leads again: " in outcome.out
    assert there.operator.process.poll() is None


def test_labels_with_another_name_go_too_by_the_settings_of_the_operator(fresh_cluster: ControlPlane) -> None:
    plane = fresh_cluster
    operator = workload("Deployment", "operator")
    operator["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "POWER_PROFILE_LABEL", "value": "a.b/c"}]
    operator["spec"]["replicas"] = 0  # somebody ended it before
    Rights("operator").grant(plane)  # makes the namespace
    plane.apply([operator, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"a.b/c": "eco"}}}])
    try:
        outcome = joulie("cleanup", "--yes", env={"KUBECONFIG": str(plane.kubeconfig)})
        assert (outcome.code, outcome.out.splitlines()[0]) == (0, "to remove: Joulie's labels of 1 node")
        assert "a.b/c" not in plane.api.get("/api/v1/nodes/n")["metadata"].get("labels", {})
    finally:
        plane.api.delete(f"{APPS}/deployments/joulie-operator")


def test_an_installation_in_another_namespace_is_named_even_while_its_operator_is_dead(
    fresh_cluster: ControlPlane,
) -> None:
    plane = fresh_cluster
    Rights("operator").grant(plane)
    plane.apply([workload("DaemonSet", "agent")])
    try:
        outcome = joulie("cleanup", "--yes", "--namespace", "default", env={"KUBECONFIG": str(plane.kubeconfig)})
        assert outcome.code == 2
        assert outcome.complaint == f"Joulie is installed in the namespace {NAMESPACE}: --namespace {NAMESPACE}"
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
    assert joulie("cleanup", "--yes", env=env).out == "there is nothing of Joulie's to remove\n"

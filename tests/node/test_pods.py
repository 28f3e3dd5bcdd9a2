"""The node itself: pods run, find each other, and can be looked into, all without anything of Joulie."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.node.images import BUSYBOX
from testbed.node.mounts import KERNEL_SETTINGS
from testbed.node.node import Node
from testbed.processes import ProcessFailed
from tests.chart.kubelet import until
from tests.node.pods import PODS, clear, finished, is_ready, phase, pod, running

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"

ASK_THE_SERVICE = """
until [ "$said" = hello ]; do
  address=$(nslookup web.default.svc.cluster.local | awk '/^Address: / { print $2 }')
  said=$(printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 "$address" 80 | tail -n 1)
done
echo "$said"
"""


@pytest.fixture(autouse=True)
def no_pods_left(node: Node) -> Iterator[None]:
    yield
    clear(node)


def test_a_deployment_is_served_to_a_pod_by_the_name_of_its_service(node: Node) -> None:
    web = pod("web", "echo hello > /tmp/index.html", "exec httpd -f -p 8000 -h /tmp")
    template = {"metadata": web["metadata"], "spec": {**web["spec"], "restartPolicy": "Always"}}
    selector = {"matchLabels": {"app": "web"}}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    ports = [{"port": 80, "targetPort": 8000}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    node.api.apply(
        [
            {**deployment, "spec": {"replicas": 2, "selector": selector, "template": template}},
            {**service, "spec": {"selector": {"app": "web"}, "ports": ports}},
        ]
    )
    until(lambda: node.api.get(f"{DEPLOYMENTS}/web")["status"].get("readyReplicas") == 2, "both pods are Ready")
    try:
        assert finished(node, pod("client", ASK_THE_SERVICE)) == "hello\n"
    finally:
        node.api.delete(f"{DEPLOYMENTS}/web?propagationPolicy=Foreground")
        node.api.delete("/api/v1/namespaces/default/services/web")
        until(lambda: not node.api.get(DEPLOYMENTS)["items"], "the deployment is gone")


def test_a_pod_reaches_the_api_server_with_the_token_of_its_account(node: Node) -> None:
    # busybox has no TLS, so that is left to what pods of Joulie do; here the token and the certificate are there.
    folder = "/var/run/secrets/kubernetes.io/serviceaccount"
    said = finished(node, pod("account", f"ls {folder}", "echo $KUBERNETES_SERVICE_HOST"))
    assert said.split() == ["ca.crt", "namespace", "token", "10.0.0.1"]


def test_kubectl_runs_a_command_in_a_pod(node: Node, kubectl: Path) -> None:
    running(node, pod("shell"))
    command = [str(kubectl), f"--kubeconfig={node.kubeconfig}", "exec", "shell", "--", "id", "-u"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr


def test_an_image_that_was_not_imported_is_not_found_anywhere_else(node: Node) -> None:
    node.api.apply([pod("stranger", image="registry.example/stranger:1")])

    def refused() -> bool:
        statuses = node.api.get(f"{PODS}/stranger")["status"].get("containerStatuses", ())
        return any(one["state"].get("waiting", {}).get("reason") == "ErrImagePull" for one in statuses)

    until(refused, "the pull has failed")


def test_an_archive_that_is_no_image_is_refused(node: Node, tmp_path: Path) -> None:
    (tmp_path / "image.tar").write_text("nothing")
    with pytest.raises(ProcessFailed, match="cannot import"):
        node.import_image(tmp_path / "image.tar")


def test_a_pod_writes_a_power_cap_that_does_not_exist_and_no_file_of_the_real_machine(node: Node) -> None:
    cap = "class/powercap/intel-rapl:0/constraint_0_power_limit_uw"
    assert node.fake_sys
    found = (node.fake_sys / cap).read_text()
    volumes = [{"name": "sys", "hostPath": {"path": "/sys"}}]
    mounts = {"volumeMounts": [{"name": "sys", "mountPath": "/host-sys"}]}
    try:
        said = finished(
            node,
            pod(
                "agent",
                f"cat /host-sys/{cap}",
                f"echo 90000000 > /host-sys/{cap}",
                "! touch /host-sys/kernel/profiling 2>&1",
                container=mounts,
                volumes=volumes,
            ),
        )
        assert said.splitlines()[0] == found.strip()
        assert "Read-only file system" in said
        assert (node.fake_sys / cap).read_text() == "90000000\n"
    finally:
        (node.fake_sys / cap).write_text(found)


def test_what_kubelet_sets_for_the_whole_machine_stays_within_the_node(node: Node) -> None:
    within = node.run("grep", "--no-filename", "", *(f"/proc/sys/{name}" for name in KERNEL_SETTINGS)).output.split()
    here = [Path("/proc/sys", name).read_text().strip() for name in KERNEL_SETTINGS]
    assert within == ["1", "0", "10", "1", "1000000", "25000000"]
    assert here != within, "this machine cannot show the difference"


def test_pods_outlive_a_kubelet_that_is_killed(node: Node) -> None:
    before = running(node, pod("steady", restartPolicy="Always"))
    node.kill_component("kubelet")
    node.start_component("kubelet")
    running(node, pod("after"))  # kubelet is back
    after = node.api.get(f"{PODS}/steady")
    assert is_ready(after)
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]


def test_a_container_whose_process_is_killed_is_started_again(node: Node) -> None:
    status = running(node, pod("victim", restartPolicy="Always"))["status"]["containerStatuses"][0]
    node.kill_container(status["containerID"])

    def restarted() -> bool:
        now = node.api.get(f"{PODS}/victim")["status"]["containerStatuses"][0]
        return bool(now["restartCount"] == 1 and now["ready"])

    until(restarted, "kubelet has started it again")


def test_a_claim_gets_a_volume_that_a_pod_without_rights_can_write(node: Node) -> None:
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    node.api.apply([{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "disk"}, "spec": spec}])
    volumes = [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]
    mounts = {"volumeMounts": [{"name": "disk", "mountPath": "/disk"}]}
    security = {"runAsUser": 65532, "fsGroup": 65532}
    try:
        writer = pod(
            "writer", "touch /disk/file", "ls /disk", container=mounts, volumes=volumes, securityContext=security
        )
        assert finished(node, writer) == "file\n"
    finally:
        node.api.delete(f"{PODS}/writer")
        node.api.delete(f"{claims}/disk")


def test_fake_nodes_are_ready_and_pods_run_there_in_name(node: Node) -> None:
    node.add_fake_nodes(3)
    try:
        fake = "/api/v1/nodes?labelSelector=type=kwok"
        until(lambda: [is_ready(one) for one in node.api.get(fake)["items"]] == [True] * 3, "all are Ready")
        tolerations = [{"operator": "Exists"}]
        node.api.apply([pod("fake", image=BUSYBOX, tolerations=tolerations, nodeSelector={"type": "kwok"})])
        until(lambda: phase(node, "fake") == "Running", "the pod runs")
        clear(node)
    finally:
        node.api.delete(fake)

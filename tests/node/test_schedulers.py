"""Two schedulers that ask the extender, on a node that runs what they place: the shipped one as a pod over TLS, and the
cluster's own as docs/how-to/scheduler.md says."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from testbed.build import binary
from testbed.credentials import write_certificates
from testbed.node.images import write_program_image
from testbed.node.node import Node
from tests.chart.charts import NAMESPACE, SCHEDULER_IMAGE
from tests.chart.kubelet import until
from tests.node import pods
from tests.node.release import OTHERS_LEVEL, SWIFT, Release, node_labels
from tools.release.image import ROOT

SERVICE = "joulie-scheduler-extender"
SECRET = "joulie-extender-tls"
PERFORMANCE = {"joulie.io/workload-class": "performance"}
VALUES = {
    "operator": {"settings": {**SWIFT, "STATIC_HP_FRAC": 1}},
    "agent": {"enabled": False},
    "extender": {"replicas": 1, "tls": {"secretName": SECRET}},
    "scheduler": {"enabled": True, "image": SCHEDULER_IMAGE, "replicas": 1},
}


@pytest.fixture(scope="module")
def installed(node: Node, release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    folder = tmp_path_factory.mktemp("schedulers")
    tag = f"docker.io/library/{SCHEDULER_IMAGE}"
    node.import_image(write_program_image(binary("kube-scheduler"), tag, folder / "kube-scheduler.tar"))
    node_labels(node, **{"joulie.io/managed": "true"})
    release.make_namespace(OTHERS_LEVEL)
    node.api.apply([secret(folder)])
    release.install(VALUES, OTHERS_LEVEL)
    until(lambda: release.node.name in release.twins(), "the operator has decided")
    yield release
    pods.clear(node)
    release.remove()
    node_labels(node, **{"joulie.io/managed": None})


def secret(folder: Path) -> pods.Manifest:
    """A certificate for the Service's name, as cert-manager would put it there."""
    made = write_certificates(folder, names=[f"{SERVICE}.{NAMESPACE}.svc"])
    files = {"tls.crt": made.server, "tls.key": made.server_key, "ca.crt": made.ca}
    data = {name: base64.b64encode(file.read_bytes()).decode() for name, file in files.items()}
    metadata = {"name": SECRET, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata, "data": data}


def asked(release: Release) -> int:
    """How often the extender was asked which nodes a pod may use."""
    (extender,) = release.pods("extender")
    path = f"{extender['metadata']['name']}:9877/proxy/metrics"
    page = release.node.api.raw("GET", f"/api/v1/namespaces/{NAMESPACE}/pods/{path}").decode()
    counts = re.findall(r"(?m)^joulie_scheduler_filter_duration_seconds_count{.*} (\S+)", page)
    return sum(int(float(count)) for count in counts)


def placed_by(release: Release, scheduler: str) -> None:
    """Pods of both classes run, and the extender was asked about each."""
    node = release.node
    before = asked(release)
    for name, marks in ((f"fast-{scheduler}", PERFORMANCE), (f"any-{scheduler}", {})):
        wanted = pods.pod(name, annotations=marks, schedulerName=scheduler, restartPolicy="Always")
        assert pods.running(node, wanted)["spec"]["nodeName"] == node.name
    assert asked(release) >= before + 2


def test_pods_of_both_classes_run_by_the_shipped_scheduler_over_tls(installed: Release) -> None:
    assert "scheduler" in installed.components()
    placed_by(installed, "joulie-scheduler")


def test_pods_of_both_classes_run_by_the_clusters_own_scheduler_with_the_shipped_configuration(
    installed: Release,
) -> None:
    node = installed.node
    node.stop_component("kube-scheduler")
    try:
        node.start_program("configured-scheduler", *configured(installed))
        try:
            placed_by(installed, "default-scheduler")
        except AssertionError as error:
            error.add_note(node.logs("configured-scheduler"))
            raise
        installed.joulie("pin", node.name, "eco")
        until(lambda: installed.twins()[node.name]["spec"]["profile"] == "eco", "the operator has heard of the pin")
        pods.clear(node)  # its performance pods let the node drain
        labels = f"/api/v1/nodes/{node.name}"
        until(lambda: node.api.get(labels)["metadata"]["labels"].get("joulie.io/draining") != "true", "it has drained")
        node.api.apply([pods.pod("refused", annotations=PERFORMANCE)])
        until(lambda: "0/1 nodes are available" in waits_because(node, "refused"), "a performance pod waits")
        pods.running(node, pods.pod("standard", restartPolicy="Always"))
        assert pods.phase(node, "refused") == "Pending"
    finally:
        installed.joulie("unpin", node.name)
        node.stop_component("configured-scheduler")
        node.start_component("kube-scheduler")
        pods.clear(node)


def configured(release: Release) -> list[str]:
    """kube-scheduler with deploy/scheduler/default-scheduler.yaml, changed as the page says: by cluster IP."""
    node = release.node
    config = yaml.safe_load((ROOT / "deploy/scheduler/default-scheduler.yaml").read_text())
    service = node.api.get(f"/api/v1/namespaces/{NAMESPACE}/services/{SERVICE}")
    (extender,) = config["extenders"]
    extender["urlPrefix"] = f"https://{service['spec']['clusterIP']}:9876"
    authority = node.folder / "extender-ca.crt"
    found = node.api.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}")
    authority.write_bytes(base64.b64decode(found["data"]["ca.crt"]))
    # The certificate is for the Service's name, which the host's network does not resolve.
    extender |= {
        "enableHTTPS": True,
        "tlsConfig": {"caFile": str(authority), "serverName": f"{SERVICE}.{NAMESPACE}.svc"},
    }
    kubeconfig = node.ca_file.parent / "kubeconfig"
    config["clientConnection"] = {"kubeconfig": str(kubeconfig)}
    file = node.folder / "default-scheduler.yaml"
    file.write_text(yaml.safe_dump(config))
    return [str(binary("kube-scheduler")), f"--config={file}", "--secure-port=0"]


def waits_because(node: Node, name: str) -> str:
    conditions = node.api.get(f"{pods.PODS}/{name}")["status"].get("conditions", ())
    return next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "")

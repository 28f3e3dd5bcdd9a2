"""A real API server takes every object that the chart can make, and its pods keep to the pod security standards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.chart.charts import MATRIX, SIMULATED, Helm, Manifest, find, pod_template

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

# Objects of the Prometheus operator, whose definitions are not ours to test against.
FOREIGN = "monitoring.coreos.com/v1"
OURS = "joulie-chart"  # no other test's account or role is in the way here
LEVEL = "pod-security.kubernetes.io/enforce"


@pytest.mark.parametrize("values", MATRIX.values(), ids=MATRIX)
def test_every_object_is_taken_strictly(fresh_cluster: ControlPlane, helm: Helm, values: dict[str, Any]) -> None:
    _namespace(fresh_cluster, OURS)
    for manifest in helm.render(values, namespace=OURS):
        if manifest["apiVersion"] != FOREIGN:
            _try(fresh_cluster, manifest)


def test_the_definitions_are_those_of_this_version(fresh_cluster: ControlPlane, helm: Helm) -> None:
    from joulie.cluster.crds.definitions import crds

    manifests = helm.render({}, "--include-crds")
    definitions = [one for one in manifests if one["kind"] == "CustomResourceDefinition"]
    assert sorted(definitions, key=_name) == sorted(crds(), key=_name)


def test_all_but_the_agent_on_the_host_are_admitted_as_restricted(fresh_cluster: ControlPlane, helm: Helm) -> None:
    _namespace(fresh_cluster, "joulie-restricted", **{LEVEL: "restricted"})
    manifests = helm.render({**MATRIX["everything for a stock cluster"], **SIMULATED})
    tried = dict(_pods(manifests))
    assert set(tried) == {
        *("joulie-operator", "joulie-agent", "joulie-extender", "joulie-simulator", "joulie-scheduler"),
        "joulie-cleanup",
    }
    for pod in tried.values():
        _create_pod(fresh_cluster, pod, "joulie-restricted")


@pytest.mark.parametrize("kind", ["", "-nvidia", "-hsmp", "-nvidia-hsmp"])
def test_the_agent_on_the_host_needs_a_privileged_namespace(fresh_cluster: ControlPlane, helm: Helm, kind: str) -> None:
    from testbed.api import ApiError

    agent = find(helm.render(MATRIX["NVIDIA and HSMP"]), "DaemonSet", f"joulie-agent{kind}")
    ((_, pod),) = _pods([agent])
    _namespace(fresh_cluster, "joulie-baseline", **{LEVEL: "baseline"})
    with pytest.raises(ApiError, match="hostPath volumes"):
        _create_pod(fresh_cluster, pod, "joulie-baseline")
    _namespace(fresh_cluster, "joulie-privileged", **{LEVEL: "privileged"})
    _create_pod(fresh_cluster, pod, "joulie-privileged")


def _pods(manifests: list[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """Each workload's pod, as its controller would create it."""
    for manifest in manifests:
        if manifest["kind"] in ("Deployment", "DaemonSet", "StatefulSet", "Job"):
            template = pod_template(manifest)
            volumes = [
                {"name": claim["metadata"]["name"], "emptyDir": {}}
                for claim in manifest["spec"].get("volumeClaimTemplates", ())
            ]
            spec = {**template["spec"], "volumes": template["spec"]["volumes"] + volumes}
            spec.pop("priorityClassName", None)  # a quota of the namespace's may forbid it, the standard does not
            name = manifest["metadata"]["name"]
            yield name, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _create_pod(plane: ControlPlane, pod: Manifest, namespace: str) -> None:
    plane.api.post(f"/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldValidation=Strict", pod)


def _try(plane: ControlPlane, manifest: Manifest) -> None:
    """As `kubectl apply --dry-run=server --validate=strict`; what another test left there is replaced."""
    from testbed.api import ApiError

    path = plane.api.resource_path(manifest["apiVersion"], manifest["kind"]).of(manifest)
    flags = "dryRun=All&fieldValidation=Strict"
    try:
        plane.api.post(f"{path}?{flags}", manifest)
    except ApiError as error:
        if error.status != 409:
            raise
        query = f"{flags}&fieldManager=test&force=true"
        plane.api.patch(f"{path}/{_name(manifest)}?{query}", manifest, "application/apply-patch+yaml")


def _namespace(plane: ControlPlane, name: str, **labels: str) -> None:
    plane.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}])


def _name(manifest: Manifest) -> str:
    return str(manifest["metadata"]["name"])

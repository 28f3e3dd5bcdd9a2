"""What of a release is in a cluster: by the API server's own list of kinds, so that nothing is overlooked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.chart.charts import NAMESPACE

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

JOULIE = "/apis/joulie.io/v1alpha1"
# Events pass away by themselves; an APIService is there as long as the definitions are.
IGNORED = frozenset({"events", "namespaces", "componentstatuses", "apiservices"})


def belongings(plane: ControlPlane) -> set[str]:
    """Every object that has Joulie's name or this release's label, as `plural/name`."""
    found = set()
    for prefix, plural in _kinds(plane):
        for item in plane.api.get(f"{prefix}/{plural}").get("items") or ():
            metadata = item["metadata"]
            ours = metadata.get("labels", {}).get("app.kubernetes.io/name") == "joulie"
            if ours or metadata["name"].startswith(("joulie", "sh.helm.release")) or _is_joulies(prefix, metadata):
                found.add(f"{plural}/{metadata['name']}")
    return found


def _is_joulies(prefix: str, metadata: dict[str, Any]) -> bool:
    return prefix == JOULIE or metadata["name"].endswith(".joulie.io")


def forget(plane: ControlPlane) -> None:
    """Remove accounts and rights that other tests gave by hand on this shared server: Helm would not take them over."""
    from testbed.api import ApiError

    rbac = "/apis/rbac.authorization.k8s.io/v1"
    plane.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
    paths = [f"{rbac}/clusterroles", f"{rbac}/clusterrolebindings", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"]
    paths += [f"{rbac}/namespaces/{place}/{kind}" for place in ("default", "kube-system", NAMESPACE)
              for kind in ("roles", "rolebindings")]  # fmt: skip
    for path in paths:
        for item in plane.api.get(path)["items"] or ():
            if item["metadata"]["name"].startswith("joulie-"):
                try:
                    plane.api.delete(f"{path}/{item['metadata']['name']}")
                except ApiError as error:
                    if error.status != 404:
                        raise


def joulie_labels(plane: ControlPlane) -> set[str]:
    """Labels on nodes that only Joulie writes."""
    labels: set[str] = set()
    for node in plane.api.get("/api/v1/nodes")["items"] or ():
        labels |= node["metadata"].get("labels", {}).keys() & {"joulie.io/power-profile", "joulie.io/draining"}
    return labels


def _kinds(plane: ControlPlane) -> list[tuple[str, str]]:
    versions = [f"/apis/{group['preferredVersion']['groupVersion']}" for group in plane.api.get("/apis")["groups"]]
    listed: list[tuple[str, str]] = []
    for prefix in ("/api/v1", *versions):
        resources: list[dict[str, Any]] = plane.api.get(prefix)["resources"]
        listed += [(prefix, one["name"]) for one in resources if "list" in one["verbs"] and one["name"] not in IGNORED]
    return listed

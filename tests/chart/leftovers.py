"""What of a release is in a cluster: by the API server's own list of kinds, so that nothing is overlooked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tests.chart.charts import NAMESPACE
from tests.chart.kubelet import until

if TYPE_CHECKING:
    from testbed.api import Api


class Cluster(Protocol):
    """A control plane, or a node with its own."""

    api: Api


JOULIE = "/apis/joulie.io/v1alpha1"
# Events pass away by themselves; an APIService is there as long as the definitions are.
IGNORED = frozenset({"events", "namespaces", "componentstatuses", "apiservices"})


def belongings(plane: Cluster) -> set[str]:
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


def forget(plane: Cluster) -> None:
    """Remove accounts and rights that other tests gave by hand on this shared server: Helm would not take them over."""
    from testbed.api import ApiError

    rbac = "/apis/rbac.authorization.k8s.io/v1"
    plane.api.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
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


def wait_unguarded(plane: Cluster) -> None:
    """Until a policy that was removed acts no more, which the API server learns a moment later: tests write twins."""
    from testbed.api import ApiError

    def accepted() -> bool:
        twin = {"apiVersion": "joulie.io/v1alpha1", "kind": "NodeTwin", "metadata": {"name": "tried"}}
        try:
            plane.api.post(f"{JOULIE}/nodetwins?dryRun=All", twin)
        except ApiError:
            return False
        return True

    until(accepted, "twins can be written by hand")


def joulie_labels(plane: Cluster) -> set[str]:
    """Labels on nodes that only Joulie writes."""
    labels: set[str] = set()
    for node in plane.api.get("/api/v1/nodes")["items"] or ():
        labels |= node["metadata"].get("labels", {}).keys() & {"joulie.io/power-profile", "joulie.io/draining"}
    return labels


def written_to_nodes(plane: Cluster) -> set[str]:
    """All that Joulie writes to nodes, of any node: labels, taints, and the resource in watts."""
    found = joulie_labels(plane)
    for node in plane.api.get("/api/v1/nodes")["items"] or ():
        found |= {one["key"] for one in node["spec"].get("taints", ()) if one["key"].startswith("joulie.io/")}
        for side in ("capacity", "allocatable"):
            found |= node["status"].get(side, {}).keys() & {"joulie.io/watts"}
    return found


def _kinds(plane: Cluster) -> list[tuple[str, str]]:
    versions = [f"/apis/{group['preferredVersion']['groupVersion']}" for group in plane.api.get("/apis")["groups"]]
    listed: list[tuple[str, str]] = []
    for prefix in ("/api/v1", *versions):
        resources: list[dict[str, Any]] = plane.api.get(prefix)["resources"]
        listed += [(prefix, one["name"]) for one in resources if "list" in one["verbs"] and one["name"] not in IGNORED]
    return listed

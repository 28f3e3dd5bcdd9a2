"""Cluster-wide objects of an installation, which `cleanup` and `kubectl delete namespace` leave in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from joulie.cluster.port import ClusterError, NotFoundError, Resource

if TYPE_CHECKING:
    from joulie.cli.connection import ClusterConnection

_ADMISSION, _RBAC = "admissionregistration.k8s.io", "rbac.authorization.k8s.io"
NAMESPACES = Resource("", "v1", "namespaces", "Namespace")
CLUSTER_ROLE_BINDINGS = Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding")
MUTATING_BINDINGS = Resource(_ADMISSION, "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding")
CLUSTER_WIDE = (
    MUTATING_BINDINGS,
    Resource(_ADMISSION, "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
    Resource(_ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
    Resource(_ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
    CLUSTER_ROLE_BINDINGS,
    Resource(_RBAC, "v1", "clusterroles", "ClusterRole"),
)
_LABEL = "app.kubernetes.io/name"
_RELEASE = "meta.helm.sh/release-name"  # an annotation that Helm itself writes


class ClusterWideObject(NamedTuple):
    """One cluster-scoped object of Joulie."""

    resource: Resource
    name: str
    namespaces: tuple[str, ...] = ()  # of the service accounts that a role binding names
    release: str = ""  # of Helm, if it came with one

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.name}"


class ClusterWideObjects(NamedTuple):
    """All cluster-scoped objects of Joulie that can be listed."""

    items: tuple[ClusterWideObject, ...] = ()
    complete: bool = True  # False: listing some kinds is not allowed


async def cluster_wide(connection: ClusterConnection) -> ClusterWideObjects:
    found: list[ClusterWideObject] = []
    complete = True
    for resource in CLUSTER_WIDE:
        try:
            bodies = await connection.list_all(resource)
        except NotFoundError:  # the API server is too old for this kind
            continue
        except ClusterError:
            complete = False
            continue
        found += [_leftover(resource, body) for body in map(msgspec.json.decode, bodies) if _is_ours(body)]
    return ClusterWideObjects(tuple(found), complete)


async def namespace_state(connection: ClusterConnection, name: str) -> str:
    """`present`, `terminating` or `deleted`; empty if reading it is not allowed."""
    try:
        body = msgspec.json.decode(await connection.cluster.get(NAMESPACES, name))
    except NotFoundError:
        return "deleted"
    except ClusterError:
        return ""
    return "terminating" if (body.get("status") or {}).get("phase") == "Terminating" else "present"


def removal(left: Sequence[ClusterWideObject]) -> str:
    """The command that removes them."""
    return "kubectl delete " + " ".join(f"{item.resource.plural}/{item.name}" for item in left)


def _is_ours(body: dict[str, object]) -> bool:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    return metadata["name"].startswith("joulie-") or (metadata.get("labels") or {}).get(_LABEL) == "joulie"


def _leftover(resource: Resource, body: dict[str, object]) -> ClusterWideObject:
    metadata, subjects = body["metadata"], body.get("subjects") or ()
    assert isinstance(metadata, dict)
    assert isinstance(subjects, list | tuple)
    spaces = {str(one["namespace"]) for one in subjects if isinstance(one, dict) and one.get("namespace")}
    release = (metadata.get("annotations") or {}).get(_RELEASE, "")
    return ClusterWideObject(resource, metadata["name"], tuple(sorted(spaces)), release)

"""The rights that the chart gives, given to accounts of a test's own, whole or with a part missing."""

from __future__ import annotations

import time
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

Manifest = dict[str, Any]

FOLDER = Path(__file__).parents[2] / "deploy" / "chart" / "joulie" / "files" / "rbac"
NAMESPACE = "joulie-system"
PATIENCE_S = 20.0


class Right(NamedTuple):
    """One verb on one resource, as one of the roles grants it."""

    role: str
    namespace: str  # "": everywhere
    group: str
    resource: str
    verb: str
    name: str  # "": any object

    def __str__(self) -> str:
        return f"{self.verb}-{self.resource.replace('/', '-')}"


class Rights:
    """What one of these files grants to its account."""

    def __init__(self, component: str) -> None:
        self.account = f"joulie-{component}"
        self._file = FOLDER / f"{component}.yaml"

    def all(self) -> list[Right]:
        """Every verb of every rule."""
        return [
            Right(role["metadata"]["name"], role["metadata"].get("namespace", ""), group, resource, verb, name)
            for role in self._manifests()
            if role["kind"] in ("ClusterRole", "Role")
            for rule in role["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
            for name in rule.get("resourceNames", [""])
        ]

    def grant(self, plane: ControlPlane, account: str = "", without: Right | None = None) -> str:
        """An account with these rights, less one; its token, once the API server knows of it all."""
        account = account or (self.account if without is None else f"{self.account}-without-{without}")
        suffix = account.removeprefix(self.account)
        plane.apply(_renamed(manifest, suffix) for manifest in (_less(one, without) for one in self._manifests()))
        user = f"system:serviceaccount:{NAMESPACE}:{account}"
        for right in self.all():
            _wait_until(plane, user, right, allowed=right != without)
        return plane.service_account_token(NAMESPACE, account)

    def _manifests(self) -> list[Manifest]:
        return list(yaml.safe_load_all(self._file.read_text()))


def _less(manifest: Manifest, right: Right | None) -> Manifest:
    """The manifest without this right; rules name resources together, so each is taken apart first."""
    if right is None or manifest["kind"] not in ("ClusterRole", "Role") or manifest["metadata"]["name"] != right.role:
        return manifest
    reduced = deepcopy(manifest)
    reduced["rules"] = [
        {**rule, "resources": [resource], "verbs": verbs}
        for rule in manifest["rules"]
        for resource in rule["resources"]
        if (verbs := [verb for verb in rule["verbs"] if not (resource == right.resource and verb == right.verb)])
    ]
    return reduced


def _renamed(manifest: Manifest, suffix: str) -> Manifest:
    copy = deepcopy(manifest)
    named = [copy["metadata"], *copy.get("subjects", []), *([copy["roleRef"]] if "roleRef" in copy else [])]
    for part in named if copy["kind"] != "Namespace" else []:
        part["name"] += suffix
    return copy


def _wait_until(plane: ControlPlane, user: str, right: Right, *, allowed: bool) -> None:
    """The API server learns of new roles by a watch of its own, a moment later."""
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "verb": right.verb,
        "namespace": right.namespace,
        "name": right.name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": attributes},
    }
    deadline_s = time.monotonic() + PATIENCE_S
    while plane.api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"] != allowed:
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{user}: {right} did not become {'allowed' if allowed else 'forbidden'}")
        time.sleep(0.02)

"""The rights in `deploy/rbac/extender.yaml`, given to accounts of a test's own, whole or with one missing."""

from __future__ import annotations

import time
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

RBAC_FILE = Path(__file__).parents[2] / "deploy" / "rbac" / "extender.yaml"
ACCOUNT = "joulie-extender"
NAMESPACE = "joulie-system"
PATIENCE_S = 20.0


class Right(NamedTuple):
    """One verb on one resource of all namespaces."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb}-{self.resource}"


def all_rights() -> list[Right]:
    """Every verb of every rule."""
    return [
        Right(group, resource, verb)
        for manifest in _manifests()
        for rule in manifest.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def grant(plane: ControlPlane, without: Right | None = None) -> str:
    """A token with these rights, less one, once the API server knows of them."""
    suffix = "" if without is None else f"-without-{without}"
    for manifest in _manifests():
        plane.apply([_renamed(_less(manifest, without), suffix)])
    for right in all_rights():
        _wait_until(plane, f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}{suffix}", right, allowed=right != without)
    return plane.service_account_token(NAMESPACE, ACCOUNT + suffix)


def _manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(RBAC_FILE.read_text()))


def _less(manifest: dict[str, Any], without: Right | None) -> dict[str, Any]:
    """Each right in a rule of its own, without this one."""
    if "rules" not in manifest:
        return manifest
    kept = [right for right in all_rights() if right != without]
    rules = [{"apiGroups": [one.group], "resources": [one.resource], "verbs": [one.verb]} for one in kept]
    return {**manifest, "rules": rules}


def _renamed(manifest: dict[str, Any], suffix: str) -> dict[str, Any]:
    copy = deepcopy(manifest)
    if copy["kind"] != "Namespace":
        for part in (copy["metadata"], *copy.get("subjects", []), *([copy["roleRef"]] if "roleRef" in copy else [])):
            part["name"] += suffix
    return copy


def _wait_until(plane: ControlPlane, user: str, right: Right, *, allowed: bool) -> None:
    """The API server learns of new roles by a watch of its own, a moment later."""
    attributes = {"group": right.group, "resource": right.resource, "verb": right.verb}
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

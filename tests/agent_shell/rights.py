"""The rights in `deploy/rbac/agent.yaml`, given to accounts of a test's own, whole or with one missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tests.operator_shell.rights import NAMESPACE, Manifest, Right, _less, _renamed, _wait_until

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

RBAC_FILE = Path(__file__).parents[2] / "deploy" / "rbac" / "agent.yaml"
ACCOUNT = "joulie-agent"


def manifests() -> list[Manifest]:
    return list(yaml.safe_load_all(RBAC_FILE.read_text()))


def all_rights() -> list[Right]:
    """Every verb of every rule."""
    return [
        Right(role["metadata"]["name"], role["metadata"].get("namespace", ""), group, resource, verb, "")
        for role in manifests()
        if role["kind"] in ("ClusterRole", "Role")
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def grant(plane: ControlPlane, account: str = ACCOUNT, without: Right | None = None) -> str:
    """An account with these rights, less one; its token, once the API server knows of it all."""
    suffix = account.removeprefix(ACCOUNT)
    plane.apply(_renamed(manifest, suffix) for manifest in (_less(one, without) for one in manifests()))
    user = f"system:serviceaccount:{NAMESPACE}:{account}"
    for right in all_rights():
        _wait_until(plane, user, right, allowed=right != without)
    return plane.service_account_token(NAMESPACE, account)

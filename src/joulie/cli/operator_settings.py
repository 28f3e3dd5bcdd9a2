"""The settings of the operator that runs in a cluster, so that `plan` foresees what that operator will do.

They are the environment of its Deployment: plain values, and ConfigMaps that it is given whole. What cannot be read is
as if it were not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from joulie.cli.workloads import CONFIG_MAPS, DEPLOYMENTS, selecting
from joulie.cluster.port import ClusterError

if TYPE_CHECKING:
    from joulie.cli.connection import Connection


async def operator_settings(connection: Connection) -> Mapping[str, str]:
    """By variable; empty where no operator is deployed, or nobody may look."""
    try:
        deployments = await connection.list_all(DEPLOYMENTS, labels=selecting("operator"))
    except ClusterError:
        return {}
    if len(deployments) != 1:  # of several nobody could say which one counts
        return {}
    deployment = msgspec.json.decode(deployments[0])
    settings: dict[str, str] = {}
    for container in _path(deployment, "spec", "template", "spec", "containers") or ():
        for source in container.get("envFrom") or ():
            name = _path(source, "configMapRef", "name")
            settings |= await _config_map(connection, deployment["metadata"]["namespace"], name) if name else {}
        settings |= {one["name"]: one["value"] for one in container.get("env") or () if one.get("value") is not None}
    return settings


async def _config_map(connection: Connection, namespace: str, name: str) -> dict[str, str]:
    try:
        found = msgspec.json.decode(await connection.cluster.get(CONFIG_MAPS, name, namespace=namespace))
    except ClusterError:
        return {}
    return dict(found.get("data") or {})


def _path(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value

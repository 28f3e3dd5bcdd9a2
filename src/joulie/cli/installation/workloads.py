"""Joulie's own components in a cluster: the chart's labels that identify them, and the operator's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from joulie.cluster.port import ClusterError, Resource

if TYPE_CHECKING:
    from joulie.cli.connection import ClusterConnection

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", namespaced=True)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", namespaced=True)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", namespaced=True)
WORKLOADS = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)
SERVICES = Resource("", "v1", "services", "Service", namespaced=True)
DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition")

COMPONENT_LABEL = "app.kubernetes.io/component"
VERSION_LABEL = "app.kubernetes.io/version"
OURS = "app.kubernetes.io/name=joulie"  # as a selector
ANY_COMPONENT = f"{OURS},{COMPONENT_LABEL}"


def selector_of(*components: str) -> str:
    """A label selector for these components."""
    return f"{OURS},{COMPONENT_LABEL} in ({','.join(components)})"


async def operator_settings(connection: ClusterConnection) -> Mapping[str, str]:
    """The environment of the operator's Deployment, so that `plan` predicts what that operator will do.

    Covers plain values and ConfigMaps used with envFrom. Empty if there is no operator, or it cannot be read.
    """
    try:
        deployments = await connection.list_all(DEPLOYMENTS, labels=selector_of("operator"))
    except ClusterError:
        return {}
    if len(deployments) != 1:  # with several, it is unclear which one counts
        return {}
    deployment = msgspec.json.decode(deployments[0])
    settings: dict[str, str] = {}
    for container in _path(deployment, "spec", "template", "spec", "containers") or ():
        for source in container.get("envFrom") or ():
            name = _path(source, "configMapRef", "name")
            settings |= await _config_map(connection, deployment["metadata"]["namespace"], name) if name else {}
        settings |= {one["name"]: one["value"] for one in container.get("env") or () if one.get("value") is not None}
    return settings


async def _config_map(connection: ClusterConnection, namespace: str, name: str) -> dict[str, str]:
    try:
        found = msgspec.json.decode(await connection.cluster.get(CONFIG_MAPS, name, namespace=namespace))
    except ClusterError:
        return {}
    return dict(found.get("data") or {})


def _path(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value

"""How Joulie's own components are found in a cluster: by the labels that the chart gives them."""

from __future__ import annotations

from joulie.cluster.port import Resource

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


def selecting(*components: str) -> str:
    """A selector of the objects of these components."""
    return f"{OURS},{COMPONENT_LABEL} in ({','.join(components)})"

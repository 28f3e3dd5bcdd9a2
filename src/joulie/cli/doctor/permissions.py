"""The permissions that each component needs, for `doctor` to check; a test compares them with the shipped roles."""

from __future__ import annotations

from typing import NamedTuple

from joulie.model.names import BUDGET_LEASE


class Permission(NamedTuple):
    """One verb on one resource."""

    group: str
    resource: str  # or with a subresource: `nodetwins/status`
    verb: str
    namespace: str = ""  # "": all namespaces
    name: str = ""  # "": any object

    def __str__(self) -> str:
        full = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {full}{self.name and f' {self.name}'}" + (
            f" in {self.namespace}" if self.namespace else ""
        )

    def attributes(self) -> dict[str, str]:
        """The resource attributes of a SubjectAccessReview."""
        resource, _, subresource = self.resource.partition("/")
        return {
            "group": self.group,
            "resource": resource,
            "subresource": subresource,
            "verb": self.verb,
            "namespace": self.namespace,
            "name": self.name,
        }


JOULIE, LEASES = "joulie.io", "coordination.k8s.io"
WATCH = ("list", "watch")


def _permissions(group: str, resources: str, *verbs: str, namespace: str = "", name: str = "") -> list[Permission]:
    return [Permission(group, resource, verb, namespace, name) for resource in resources.split() for verb in verbs]


def needed(component: str, namespace: str) -> list[Permission]:
    """The permissions of a component that is installed in this namespace."""
    if component == "operator":
        return [
            *_permissions("", "nodes", *WATCH, "patch"),
            *_permissions("", "pods", *WATCH),
            *_permissions(JOULIE, "nodehardwares nodepowerprofiles powerbudgets telemetryprofiles", *WATCH),
            *_permissions(JOULIE, "nodetwins", *WATCH, "create", "patch", "delete"),
            *_permissions(
                JOULIE,
                "nodetwins/status nodepowerprofiles/status powerbudgets/status telemetryprofiles/status",
                "patch",
            ),
            *_permissions("", "events", "create", namespace="default"),
            *_permissions(LEASES, "leases", "create", namespace=namespace),
            *_permissions(LEASES, "leases", "get", "update", namespace=namespace, name="joulie-operator"),
            *_permissions(LEASES, "leases", "get", "update", namespace=namespace, name=BUDGET_LEASE),
            *_permissions("", "configmaps", "get", namespace=namespace),
        ]
    if component == "agent":
        return [
            *_permissions("", "nodes", *WATCH),
            *_permissions(JOULIE, "nodepowerprofiles telemetryprofiles", *WATCH),
            *_permissions(JOULIE, "nodetwins", "get", *WATCH),
            *_permissions(JOULIE, "nodehardwares", *WATCH, "create"),
            *_permissions(
                JOULIE,
                "nodehardwares/status nodetwins/status telemetryprofiles/status nodepowerprofiles/status",
                "patch",
            ),
            *_permissions("", "events", "create", namespace="default"),
            *_permissions(LEASES, "leases", *WATCH, namespace=namespace, name=BUDGET_LEASE),
        ]
    if component == "extender":
        return [
            *_permissions("", "nodes pods", *WATCH),
            *_permissions(JOULIE, "nodehardwares nodetwins powerbudgets", *WATCH),
        ]
    return []

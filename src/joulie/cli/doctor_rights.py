"""What each component has to be allowed, as `doctor` asks about it; a test holds it to the roles that are shipped."""

from __future__ import annotations

from typing import NamedTuple


class Right(NamedTuple):
    """One verb on one resource."""

    group: str
    resource: str  # `nodetwins/status` for a part
    verb: str
    namespace: str = ""  # "": everywhere
    name: str = ""  # "": any

    def __str__(self) -> str:
        full = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {full}{self.name and f' {self.name}'}" + (
            f" in {self.namespace}" if self.namespace else ""
        )

    def attributes(self) -> dict[str, str]:
        """As an access review asks."""
        resource, _, part = self.resource.partition("/")
        return {
            "group": self.group,
            "resource": resource,
            "subresource": part,
            "verb": self.verb,
            "namespace": self.namespace,
            "name": self.name,
        }


JOULIE, LEASES = "joulie.io", "coordination.k8s.io"
WATCH = ("list", "watch")


def _rights(group: str, resources: str, *verbs: str, namespace: str = "", name: str = "") -> list[Right]:
    return [Right(group, resource, verb, namespace, name) for resource in resources.split() for verb in verbs]


def needed(component: str, namespace: str) -> list[Right]:
    """Everything that a component installed in this namespace does."""
    if component == "operator":
        return [
            *_rights("", "nodes", *WATCH, "patch"),
            *_rights("", "pods", *WATCH),
            *_rights(JOULIE, "nodehardwares nodepowerprofiles", *WATCH),
            *_rights(JOULIE, "nodetwins", *WATCH, "create", "patch", "delete"),
            *_rights(JOULIE, "nodetwins/status", "patch"),
            *_rights("", "events", "create", namespace="default"),
            *_rights(LEASES, "leases", "create", namespace=namespace),
            *_rights(LEASES, "leases", "get", "update", namespace=namespace, name="joulie-operator"),
        ]
    if component == "agent":
        return [
            *_rights("", "nodes", *WATCH),
            *_rights(JOULIE, "nodepowerprofiles telemetryprofiles", *WATCH),
            *_rights(JOULIE, "nodetwins", "get", *WATCH),
            *_rights(JOULIE, "nodehardwares", *WATCH, "create"),
            *_rights(JOULIE, "nodehardwares/status nodetwins/status telemetryprofiles/status", "patch"),
            *_rights("", "events", "create", namespace="default"),
        ]
    if component == "extender":
        return [*_rights("", "nodes pods", *WATCH), *_rights(JOULIE, "nodehardwares nodetwins", *WATCH)]
    return []

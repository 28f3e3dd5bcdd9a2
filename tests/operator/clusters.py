"""Where operators are tried: a cluster in memory, and one behind a real API server. A person acts on either alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import json

from joulie.cluster.api.cluster import KubernetesCluster
from joulie.cluster.api.credentials import Credentials, trusting
from joulie.cluster.memory.cluster import MemoryCluster, MemoryServer
from joulie.cluster.port import EVENTS, NODES, PODS, Resource
from joulie.cluster.watch.backoff import Backoff
from joulie.cluster.watch.list_watch import Scope
from joulie.cluster.watch.observer import ClusterObserver
from joulie.model.names import OPERATOR_MANAGER
from joulie.operator.state import WATCHED
from tests.support.static_token import StaticToken

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

Body = dict[str, Any]
AnyCluster = MemoryCluster | KubernetesCluster

REAL = pytest.param(
    "real", marks=[pytest.mark.control_plane, pytest.mark.slow, pytest.mark.xdist_group("control_plane")]
)
NAMESPACE = "default"


def hasty() -> Backoff:
    return Backoff(0.02, 0.5)


class Ground:
    """A cluster, and what people and agents do to it: never through the client that is under test."""

    def client(self, observer: ClusterObserver | None = None, manager: str = OPERATOR_MANAGER) -> AnyCluster:
        raise NotImplementedError


class MemoryGround(Ground):
    def __init__(self) -> None:
        self.server = MemoryServer()

    def client(self, observer: ClusterObserver | None = None, manager: str = OPERATOR_MANAGER) -> MemoryCluster:
        return MemoryCluster(self.server, field_manager=manager, observer=observer, backoff=hasty)


class RealGround(Ground):
    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane

    def client(self, observer: ClusterObserver | None = None, manager: str = OPERATOR_MANAGER) -> KubernetesCluster:
        plane = self.plane
        credentials = Credentials(plane.url, StaticToken(plane.admin_token), ssl_context=trusting(plane.ca_file))
        return KubernetesCluster(credentials, field_manager=manager, observer=observer, backoff=hasty)


class Person:
    """A user with all rights: sets the scene and looks at what became of it."""

    def __init__(self, cluster: AnyCluster) -> None:
        self.cluster = cluster

    async def put(self, resource: Resource, body: Mapping[str, Any]) -> None:
        """A new object with its status."""
        namespace = NAMESPACE if resource.namespaced else ""
        await self.cluster.create(resource, body, namespace=namespace)
        if "status" in body and resource is not NODES:
            await self.edit(resource, body["metadata"]["name"], {"status": body["status"]}, status=True)

    async def edit(self, resource: Resource, name: str, patch: Mapping[str, Any], *, status: bool = False) -> None:
        namespace = NAMESPACE if resource.namespaced else ""
        await self.cluster.patch(resource, name, patch, namespace=namespace, status=status)

    async def remove(self, resource: Resource, name: str) -> None:
        await self.cluster.delete(resource, name, namespace=NAMESPACE if resource.namespaced else "")

    async def label(self, node: str, **labels: str | None) -> None:
        """`label("a", power_profile="eco")`."""
        named = {f"joulie.io/{key.replace('_', '-')}": value for key, value in labels.items()}
        await self.edit(NODES, node, {"metadata": {"labels": named}})

    async def all(self, resource: Resource) -> dict[str, Body]:
        """Every object of a kind by name (a pod's with its namespace), as `kubectl get -o json` shows it."""
        found: dict[str, Body] = {}
        token = ""
        while True:
            page = await self.cluster.list_page(Scope(resource), token)
            for item in page.items:
                body = {"apiVersion": resource.api_version, "kind": resource.kind, **json.decode(item)}
                metadata = body["metadata"]
                key = f"{metadata['namespace']}/{metadata['name']}" if resource is PODS else metadata["name"]
                found[key] = body
            token = page.continue_token
            if not token:
                return found

    async def export(self) -> bytes:
        """Everything that a decision reads, as one document."""
        items = [body for resource in WATCHED for body in (await self.all(resource)).values()]
        return json.encode({"apiVersion": "v1", "kind": "List", "items": items})

    async def events(self) -> list[str]:
        """Of nodes, in the order of their creation: `node reason: message`."""
        events = sorted((await self.all(EVENTS)).values(), key=lambda body: int(body["metadata"]["resourceVersion"]))
        return [
            f"{body['involvedObject']['name']} {body['reason']}: {body['message']}"
            for body in events
            if body["involvedObject"]["kind"] == "Node"
        ]

"""The two clusters that the contract is tried on: one in memory, one behind a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from joulie.cluster.api.cluster import KubernetesCluster
from joulie.cluster.api.credentials import Credentials, trusting
from joulie.cluster.memory.cluster import MemoryCluster, MemoryServer
from joulie.cluster.port import Cluster, ClusterError
from joulie.cluster.watch.backoff import Backoff
from joulie.cluster.watch.observer import ClusterObserver
from tests.cluster.watching import Notes, run
from tests.support.static_token import StaticToken

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

PAGE_SIZE = 3  # small, so that a handful of objects comes in pages


def hasty() -> Backoff:
    return Backoff(0.02, 0.5)


class World:
    """A cluster to talk to, and what can be done to it from outside."""

    def __init__(self) -> None:
        self.notes = Notes()

    def client(self, observer: ClusterObserver | None = None, manager: str = "joulie") -> Cluster:
        raise NotImplementedError

    async def expire(self) -> None:
        """Every watch breaks, and none can be resumed."""
        raise NotImplementedError

    async def go_down(self) -> None:
        raise NotImplementedError

    async def come_up(self) -> None:
        raise NotImplementedError

    def play(self, scenario: Callable[[Cluster], Awaitable[None]]) -> None:
        async def whole() -> None:
            cluster = self.client(self.notes)
            try:
                await scenario(cluster)
            finally:
                await cluster.close()

        run(whole())


class MemoryWorld(World):
    def __init__(self) -> None:
        super().__init__()
        self._server = MemoryServer()
        self._clients: list[MemoryCluster] = []

    def client(self, observer: ClusterObserver | None = None, manager: str = "joulie") -> MemoryCluster:
        client = MemoryCluster(
            self._server, field_manager=manager, observer=observer, page_size=PAGE_SIZE, backoff=hasty
        )
        self._clients.append(client)
        return client

    async def expire(self) -> None:
        self._server.expire_watches()

    async def go_down(self) -> None:
        for client in self._clients:
            client.cut_off()

    async def come_up(self) -> None:
        self._server.cut_watches(ClusterError("restarted"))
        for client in self._clients:
            client.reconnect()


class RealWorld(World):
    def __init__(self, plane: ControlPlane) -> None:
        super().__init__()
        self._plane = plane

    def client(self, observer: ClusterObserver | None = None, manager: str = "joulie") -> KubernetesCluster:
        plane = self._plane
        credentials = Credentials(plane.url, StaticToken(plane.admin_token), ssl_context=trusting(plane.ca_file))
        return KubernetesCluster(
            credentials, field_manager=manager, observer=observer, page_size=PAGE_SIZE, backoff=hasty
        )

    async def expire(self) -> None:
        def restart() -> None:
            self._plane.stop_apiserver()
            self._plane.compact_etcd()
            self._plane.start_apiserver()

        await asyncio.to_thread(restart)

    async def go_down(self) -> None:
        await asyncio.to_thread(self._plane.kill_apiserver)

    async def come_up(self) -> None:
        await asyncio.to_thread(self._plane.start_apiserver)


def node(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "status": {"capacity": {"cpu": "8"}}}


def twin(name: str, profile: str = "eco") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"nodeName": name, "profile": profile}}


def pod(name: str, node_name: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "a", "image": "b"}]}
    return {"metadata": {"name": name}, "spec": spec | ({"nodeName": node_name} if node_name else {})}

"""A server that does what it is told, a watch of its nodes, and what both saw."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from joulie.cluster.api.cluster import KubernetesCluster
from joulie.cluster.api.credentials import Credentials
from joulie.cluster.port import NODES
from joulie.cluster.watch.backoff import Backoff
from tests.cluster.fault_server import FaultServer, Step, serving
from tests.cluster.watching import Notes, Reader, watch

IDLE_S = 0.4


class Scene:
    """A server, a watch of its nodes, and what both saw."""

    def __init__(self, server: FaultServer, reader: Reader[dict[str, object]], notes: Notes) -> None:
        self.server = server
        self.reader = reader
        self.notes = notes

    @property
    def versions(self) -> list[str]:
        return [query["resourceVersion"] for query in self.server.watch_queries]


@asynccontextmanager
async def scene(*, lists: list[Step], watches: list[Step], timeout_s: float = 5.0) -> AsyncIterator[Scene]:
    notes = Notes()
    async with serving(FaultServer(lists, watches)) as server:
        cluster = KubernetesCluster(
            Credentials(server.url),
            observer=notes,
            timeout_s=timeout_s,
            watch_idle_s=IDLE_S,
            backoff=lambda: Backoff(0.01, 0.05),
        )
        try:
            async with watch(cluster, NODES) as reader:
                yield Scene(server, reader, notes)
        finally:
            await cluster.close()

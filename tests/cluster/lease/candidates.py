"""Candidates for a Lease whose clocks a test turns by hand."""

from __future__ import annotations

from joulie.cluster.lease.election import LeaderElector, LeaderHooks, LeaseTimes
from joulie.cluster.memory.cluster import MemoryCluster, MemoryServer
from joulie.cluster.port import ClusterError

NAMESPACE, NAME = "joulie", "operator"


class Told(LeaderHooks):
    def __init__(self) -> None:
        self.story: list[str] = []

    def gained(self) -> None:
        self.story.append("gained")

    def lost(self, reason: str) -> None:
        self.story.append(f"lost: {reason}")

    def leader(self, identity: str) -> None:
        self.story.append(f"leader: {identity}")

    def failed(self, error: ClusterError) -> None:
        self.story.append("failed")


class Candidate:
    """An elector with a client and a clock of its own."""

    def __init__(self, server: MemoryServer, identity: str, *, wall_s: float = 0.0, times: LeaseTimes | None = None):
        self.now_s = 1_000.0
        self.wall_s = wall_s
        self.told = Told()
        self.cluster = MemoryCluster(server)
        self.elector = LeaderElector(
            self.cluster,
            namespace=NAMESPACE,
            name=NAME,
            identity=identity,
            times=times,
            hooks=self.told,
            clock=lambda: self.now_s,
            wall_clock=lambda: self.wall_s,
        )

    def leads(self) -> bool:
        return self.elector.is_leader()

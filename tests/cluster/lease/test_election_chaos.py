"""Never two leaders: chance against three candidates."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from joulie.cluster.memory.cluster import MemoryCluster, MemoryServer
from joulie.cluster.port import ClusterError
from tests.cluster.lease.candidates import Candidate
from tests.cluster.watching import run

pytestmark = pytest.mark.slow


class Gate(MemoryCluster):
    """Each call waits twice for permission: to arrive at the server, and to bring its answer back."""

    def __init__(self, server: MemoryServer) -> None:
        super().__init__(server)
        self.waiting: list[asyncio.Future[None]] = []

    async def _sent(self, call: Any, effect: Any, may_send: Any) -> Any:
        await self._permission()
        try:
            answer = effect()
        except ClusterError:
            await self._permission()
            raise
        await self._permission()
        return answer

    async def _permission(self) -> None:
        permission: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(permission)
        await asyncio.shield(permission)


class Chaos:
    """Three candidates on one server, and chance: calls held up there and back, freezes, clean stops, wrong clocks."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        server = MemoryServer()
        self.candidates = [Candidate(server, identity, wall_s=1e9 * n) for n, identity in enumerate("abc")]
        self.gates = [Gate(server) for _ in self.candidates]
        for candidate, gate in zip(self.candidates, self.gates, strict=True):
            candidate.cluster = candidate.elector._cluster = gate
        self.tasks: list[asyncio.Future[Any] | None] = [None] * len(self.candidates)
        self.reigns: list[str] = []

    async def play(self, moves: int) -> None:
        for _ in range(moves):
            self.move()
            self.look()
            for _ in range(6):
                await asyncio.sleep(0)
            self.look()
        for task in self.tasks:
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in self.tasks if task is not None), return_exceptions=True)

    def look(self) -> None:
        leaders = [candidate.elector.identity for candidate in self.candidates if candidate.leads()]
        assert len(leaders) <= 1
        if leaders and self.reigns[-1:] != leaders:
            self.reigns += leaders

    def move(self) -> None:
        number = self.chance.randrange(len(self.candidates))
        candidate, gate, task = self.candidates[number], self.gates[number], self.tasks[number]
        roll = self.chance.random()
        if roll < 0.25:
            passed_s = self.chance.choice([0.3, 1.0, 1.0, 2.0, 2.0, 6.0, 11.0, 16.0])
            for each in self.candidates:
                each.now_s += passed_s
        elif gate.waiting and roll < 0.8:
            gate.waiting.pop(0).set_result(None)
        elif task is None or task.done():
            work = candidate.elector.release() if roll > 0.97 else candidate.elector.step()
            self.tasks[number] = asyncio.ensure_future(work)
        elif roll > 0.98:
            task.cancel()
        elif roll > 0.95:
            candidate.wall_s = self.chance.uniform(0, 2e9)


def test_there_are_never_two_leaders() -> None:
    reigns = 0
    for seed in range(100):
        chaos = Chaos(seed)
        run(chaos.play(300))
        reigns += len(chaos.reigns)
    assert reigns > 200, "the chaos is such that leadership changes often"

"""An operator's budget loop on a small cluster, with agents in the test's hands."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from joulie.cluster.port import NODE_TWINS, NODES, POWER_BUDGETS
from joulie.operator.budget.loop import BudgetLoop
from joulie.sources.budget_readings import SignalReader
from tests.operator.budget.agents import Agents
from tests.operator.clusters import Ground
from tests.operator.harness import Play, Scene, play_out
from tests.operator.objects import node

REST_W = 0.15 * 800


def budget(watts: float, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "PowerBudget",
        "metadata": {"name": "feed"},
        "spec": {"watts": watts, **spec},
    }


class Stage:
    """An operator with its budget loop, three nodes of two packages of 400 W, and their agents."""

    def __init__(self, scene: Scene, play: Play, reader: SignalReader | None = None) -> None:
        self.scene, self.play = scene, play
        self.loop: BudgetLoop = play.budget_loop(reader)
        self.agents = Agents(scene.person)

    async def turn(self, after_s: float = 5.0) -> list[str]:
        """What one turn wrote."""
        await self.play.caught_up()
        self.play.now_s += after_s
        self.scene.link.take()
        await self.loop.turn()
        return self.scene.link.take()

    async def settle(self, turns: int = 8) -> None:
        for _ in range(turns):
            await self.turn()
            await self.agents.follow()

    async def caps(self) -> dict[str, float]:
        twins = await self.scene.person.all(NODE_TWINS)
        return {name: twin["spec"]["budget"]["caps"]["cpuWattsPerPackage"] for name, twin in sorted(twins.items())}

    async def twin(self, name: str) -> dict[str, Any]:
        return (await self.scene.person.all(NODE_TWINS))[name]

    async def drawn_w(self) -> float:
        return sum(2 * watts + REST_W for watts in (await self.caps()).values())

    async def condition(self, kind: str) -> str:
        status = (await self.scene.person.all(POWER_BUDGETS))["feed"]["status"]
        (found,) = (each for each in status["conditions"] if each["type"] == kind)
        return f"{found['status']} {found['reason']}"


@asynccontextmanager
async def staged(scene: Scene, watts: float = 2_000, env: dict[str, str] | None = None) -> AsyncIterator[Stage]:
    for name in "abc":
        await scene.person.put(NODES, node(name))
    if watts:
        await scene.person.put(POWER_BUDGETS, budget(watts))
    async with scene.operator({"STATIC_HP_FRAC": "1", **(env or {})}) as play:
        await play.tick()
        yield Stage(scene, play)


def played(ground: Ground, scenario: Callable[[Stage], Awaitable[None]], **options: Any) -> None:
    async def whole(scene: Scene) -> None:
        async with staged(scene, **options) as stage:
            await scenario(stage)

    play_out(ground, whole)

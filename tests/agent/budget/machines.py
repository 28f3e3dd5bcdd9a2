"""A two-socket machine of fake files under a budget: its agent, its operator's Lease, and what can be seen of both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from joulie.agent.restore.journal import read_boot_id
from joulie.agent.routing.wiring import HostDevices
from joulie.catalogue.lookup import Catalogue
from joulie.cluster.memory.cluster import MemoryServer
from joulie.cluster.port import NODE_TWINS, NODES
from joulie.settings import AgentSettings, load
from tests.agent.budget.orders import BudgetLoop
from tests.agent.world import Running, agent, node, put_twin, twin, until
from tests.devices.sysfs_pieces import UW
from tests.devices.sysfs_trees import build

RAPL_TREE, MAX_W = "intel-xeon-6148-dual", 150  # of each package
LIMITS = [
    f"class/powercap/intel-rapl:{zone}/constraint_{number}_power_limit_uw" for zone in (0, 1) for number in (0, 1)
]
RENEW_S = 0.05
ONCE_AN_HOUR = {"RECONCILE_INTERVAL": "1h"}  # whatever happens then does not wait for a tick


class BudgetMachine:
    """Node `a`. `operator_lives` says whether its Lease is renewed."""

    def __init__(self, folder: Path, tree: str) -> None:
        self.tree = build(tree, folder)
        self.server = MemoryServer()
        self.state_dir = folder / "state"
        self.operator_lives = True
        body = node("a")
        body["status"]["nodeInfo"] = {"bootID": read_boot_id()}
        self.server.put(NODES, body, "")
        self.found = self.limits if tree == RAPL_TREE else []

    @property
    def limits(self) -> list[int]:
        """Long-term and short-term limits of both packages, as the files have them."""
        return [int((self.tree.sys / place).read_text()) for place in LIMITS]

    def set_limits(self, values: list[int]) -> None:
        for place, value in zip(LIMITS, values, strict=True):
            (self.tree.sys / place).write_text(f"{value}\n")

    def holds(self, watts: float) -> bool:
        """Whether each package is held to this, without bursts."""
        return self.limits == [watts * UW] * 4

    def order(self, spec: dict[str, Any], cpu_pct: float = 100) -> None:
        put_twin(self.server, twin("a", cpu_pct, **spec))

    @property
    def said(self) -> dict[str, Any]:
        """What the twin says of budgets."""
        for body in self.server.all(NODE_TWINS):
            budget: dict[str, Any] = body["status"].get("controlStatus", {}).get("budget") or {}
            return budget
        return {}

    def confirms(self, number: int, watts: float | None) -> bool:
        said = self.said
        held = None if watts is None else {"cpuWattsPerPackage": watts}
        return (said.get("order"), said.get("held")) == (number, held)

    def agent(self, **more: str) -> AbstractAsyncContextManager[Running]:
        env = {
            "NODE_NAME": "a",
            "RECONCILE_INTERVAL": "200ms",
            "STATE_DIR": str(self.state_dir),
            "HOST_SYS_PATH": str(self.tree.sys),
            "CPU_MIN_CAP_PCT": "10",
            **more,
        }
        host = HostDevices(load(AgentSettings, env), Catalogue(), str(self.tree.proc))
        return agent(self.server, env, host=host)


@asynccontextmanager
async def budget_machine(folder: Path, tree: str = RAPL_TREE) -> AsyncIterator[BudgetMachine]:
    machine = BudgetMachine(folder, tree)
    loop = BudgetLoop(machine.server)

    async def renew() -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            if machine.operator_lives:
                loop.renew()

    renewing = asyncio.create_task(renew())
    try:
        yield machine
    finally:
        renewing.cancel()
        with suppress(asyncio.CancelledError):
            await renewing


async def held_to(machine: BudgetMachine, watts: float, what: str) -> None:
    await until(lambda: machine.holds(watts), f"{what} ({watts} W; {[value // UW for value in machine.limits]})")

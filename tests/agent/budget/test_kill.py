"""kill -9 at every line while orders are followed: caps never exceed what the disk, or the order before, allows."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from joulie.agent.budget.limiting import limited
from joulie.agent.budget.node_budget import NodeBudget
from joulie.agent.budget.order_file import OrderFile, order_path
from joulie.agent.budget.sessions import Sessions
from joulie.agent.enforcement.node_control import NodeControl
from joulie.agent.outcome import CapLimits
from joulie.agent.restore.journal import Journal, journal_path
from joulie.devices.rapl.capper import Rapl
from joulie.model.api import NodeTwin
from joulie.settings import DvfsSettings
from tests.agent.budget.machines import LIMITS, MAX_W, RAPL_TREE
from tests.agent.budget.orders import order, release, twin
from tests.agent.held_nodes import BOOT, WholeWrites
from tests.agent.restore.killing import kill_at, moments
from tests.devices.enforcing import Clock
from tests.devices.sysfs_pieces import UW
from tests.devices.sysfs_trees import build

CAPS = CapLimits(cpu_max_w=2.0 * MAX_W, cpu_packages=2.0)
ORDERS = {1: 100, 2: 60, 3: 130}
RELEASED = 4


class Scene:
    """A machine whose agent is killed again and again."""

    def __init__(self, folder: Path) -> None:
        self.tree = build(RAPL_TREE, folder)
        self.state_dir = folder / "state"
        self.found = self.limits

    @property
    def limits(self) -> list[int]:
        return [int((self.tree.sys / place).read_text()) for place in LIMITS]

    @property
    def order_on_disk(self) -> int | None:
        with_order = order_path(self.state_dir)
        return json.loads(with_order.read_text())["order"]["order"] if with_order.exists() else None

    def remains(self) -> object:
        return self.limits, self.order_on_disk, journal_path(self.state_dir).exists()

    def begin(self) -> None:
        shutil.rmtree(self.state_dir, ignore_errors=True)
        for place, value in zip(LIMITS, self.found, strict=True):
            (self.tree.sys / place).write_text(f"{value}\n")

    def live(self, *told: NodeTwin | None) -> None:
        """One process: each of these is seen, followed and set."""
        asyncio.run(self._live(*(told or (*(twin(order(n, w)) for n, w in ORDERS.items()), twin(release(RELEASED))))))

    async def _live(self, *told: NodeTwin | None) -> None:
        sessions = Sessions(self.state_dir / "session.json")
        budget = NodeBudget(OrderFile.open(order_path(self.state_dir), "a"), sessions)
        journal = Journal.open(journal_path(self.state_dir), node="a", boot_id=BOOT)
        control = NodeControl("a", [Rapl(WholeWrites(self.tree.sys), Clock())], journal, dvfs=DvfsSettings())
        for number, each in enumerate(told):
            await budget.follow(each)
            ceiling = budget.ceiling(in_contact=True)
            if ceiling is None:
                await control.restore()
            else:
                await control.enforce(limited(None, ceiling, CAPS, has_gpus=False), CAPS, 20.0 * number)


@pytest.mark.slow
def test_killed_at_any_line_no_cap_exceeds_what_may_be_counted_on(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    lines, killing_lines = moments(scene.live, scene.remains)
    seen: set[int | None] = set()
    for line in killing_lines:
        scene.begin()
        kill_at(line, scene.live)
        where = f"killed at line {line} of {lines}"
        kept, limits = scene.order_on_disk, scene.limits
        seen.add(kept)
        if kept is not None:  # a cut may not have reached the devices yet, but a raise is never there before its order
            allowed_w = max(ORDERS[kept], ORDERS.get(kept - 1, max(scene.found) / UW))
            assert max(limits) <= allowed_w * UW, where
            scene.live(None)  # the next agent, with no API server
            assert scene.limits == [ORDERS[kept] * UW] * 4, where
        scene.live(twin(order(3, 130)))
        assert scene.limits == [130 * UW] * 4, where
        scene.live(twin(release(RELEASED)))
        assert scene.limits == scene.found, where
    assert seen == {None, *ORDERS}

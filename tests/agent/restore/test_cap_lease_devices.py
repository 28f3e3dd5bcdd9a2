"""An API server that is gone for longer than the lease: the devices are as found, by themselves, and it is said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from joulie.agent.enforcement.node_control import NodeControl
from joulie.agent.outcome import CapLimits
from joulie.agent.restore.cap_lease import CapLease
from joulie.agent.targets import CapTarget
from joulie.devices.rapl.capper import Rapl
from joulie.devices.sysfs import SysFs
from tests.agent.held_nodes import TICK_S, Held, run, target
from tests.agent.simulated_node import LIMITS, NODE, served
from tests.devices.enforcing import Clock
from tests.devices.sysfs_trees import build
from tests.simulator.grounds import node, simulation

LEASE_S = 600.0
Work = Callable[[NodeControl], Awaitable[None]]


class Place(NamedTuple):
    """A machine: how to look at its caps, and how an agent lives on it."""

    caps: Callable[[], object]
    live: Callable[[Work], None]
    limits: CapLimits
    wanted: CapTarget


@pytest.fixture(params=["sysfs", "simulator"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "simulator":
        with served(simulation(node(NODE, 4)), tmp_path / "state") as simulated:
            yield Place(lambda: simulated.caps, simulated.life, LIMITS, target(cpu_pct=60, gpu_w=400))
        return
    tree = build("intel-xeon-6148-dual", tmp_path)
    held = Held(tmp_path / "state", [Rapl(SysFs(tree.sys), Clock())])

    def live(work: Work) -> None:
        async def on_this_machine() -> None:
            await work(held.control)

        run(on_this_machine())

    def caps() -> object:
        return [tree.text(f"{zone}/constraint_0_power_limit_uw") for zone in tree.zones()]

    yield Place(caps, live, CapLimits(cpu_max_w=300.0), target(cpu_w=200))


class Agent:
    """The part of a tick that decides and acts."""

    def __init__(self, place: Place, control: NodeControl) -> None:
        self.place = place
        self.control = control
        self.lease = CapLease("node-1", lease_s=LEASE_S, action="restore", interval_s=TICK_S, started_at_s=0.0)
        self.now_s = 0.0
        self.contact_s = 0.0
        self.said: list[str] = []

    async def tick(self, *, contact: bool = True, twin_age_s: float = 1.0) -> str:
        self.now_s += TICK_S
        self.contact_s = self.now_s if contact else self.contact_s
        verdict = self.lease.judge(
            now_s=self.now_s, last_contact_s=self.contact_s, target=self.place.wanted, twin_age_s=twin_age_s
        )
        if verdict.notice:
            self.said.append(verdict.notice.reason)
        if verdict.act == "restore":
            enforced = await self.control.restore()
        elif verdict.act == "hold":
            enforced = await self.control.hold(self.now_s)
        else:
            enforced = await self.control.enforce(self.place.wanted, self.place.limits, self.now_s)
        assert enforced.left == ()
        return verdict.act


@pytest.mark.parametrize("how", ["no contact", "dead operator"])
def test_caps_end_with_the_lease_and_return_with_the_contact(place: Place, how: str) -> None:
    found = place.caps()

    async def work(control: NodeControl) -> None:
        agent = Agent(place, control)
        await agent.tick()
        capped = place.caps()
        assert capped != found
        acts = []
        for tick in range(60):
            age_s = 1.0 + TICK_S * tick if how == "dead operator" else 1.0
            acts.append(await agent.tick(contact=how != "no contact", twin_age_s=age_s))
            assert place.caps() == (found if acts[-1] == "restore" else capped)
        lasted_s = acts.index("restore") * TICK_S
        assert LEASE_S - TICK_S <= lasted_s <= 1.5 * LEASE_S + 2 * TICK_S
        assert await agent.tick() == "enforce"
        assert place.caps() == capped
        assert agent.said == ["CapLeaseEnded", "CapLeaseResumed"]
        await control.restore()

    place.live(work)
    assert place.caps() == found


def test_a_change_of_shard_restores_nothing_and_the_next_owner_knows_how(place: Place) -> None:
    found = place.caps()

    async def leave(control: NodeControl) -> None:
        await control.enforce(place.wanted, place.limits, 0.0)
        await control.close()

    place.live(leave)
    assert place.caps() != found

    async def take_over(control: NodeControl) -> None:
        await control.enforce(place.wanted, place.limits, 0.0)
        assert (await control.restore()).left == ()

    place.live(take_over)
    assert place.caps() == found

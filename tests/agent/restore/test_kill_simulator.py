"""kill -9 at every line while an agent caps a node behind HTTP: the next one knows, and all ends uncapped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from joulie.agent.enforcement.node_control import NodeControl
from joulie.agent.restore.cap_lease import CapLease
from joulie.agent.restore.journal import journal_path
from tests.agent.held_nodes import TICK_S, target
from tests.agent.restore.killing import kill_at, moments
from tests.agent.simulated_node import LIMITS, NODE, UNCAPPED, Caps, SimulatedNode, served
from tests.simulator.grounds import node, simulation
from tests.support.cli_runner import joulie

TARGETS = (target(cpu_pct=60, gpu_w=400), target(cpu_w=500, gpu_pct=80))
LATER = target(cpu_w=450, gpu_w=450)


@pytest.fixture
def simulated(tmp_path: Path) -> Iterator[SimulatedNode]:
    with served(simulation(node(NODE, 4)), tmp_path / "state") as beside:
        yield beside


async def live(control: NodeControl) -> None:
    """What an agent does until it is killed: cap, cap anew, and put back."""
    for tick, wanted in enumerate(TARGETS):
        enforced = await control.enforce(wanted, LIMITS, tick * TICK_S)
        assert (enforced.cpu.result, enforced.gpu.result) == ("applied", "applied")
    assert (await control.restore()).left == ()


async def cap_anew(control: NodeControl) -> None:
    enforced = await control.enforce(LATER, LIMITS, 1000.0)
    assert (enforced.cpu.result, enforced.gpu.result) == ("applied", "applied")


async def put_back(control: NodeControl) -> None:
    assert (await control.restore()).left == ()


async def hear_nothing(control: NodeControl) -> None:
    """An agent whose node has no target."""
    lease = CapLease(NODE, lease_s=600.0, action="restore", interval_s=TICK_S, started_at_s=0.0)
    for tick in range(1, 5):
        now_s = tick * TICK_S
        verdict = lease.judge(now_s=now_s, last_contact_s=now_s, target=None, twin_age_s=None)
        await (put_back(control) if verdict.act == "restore" else control.hold(now_s))


def begin(simulated: SimulatedNode, caps: Caps = UNCAPPED, journal: bytes | None = None) -> None:
    shutil.rmtree(simulated.state_dir, ignore_errors=True)
    simulated.set(caps)
    if journal is not None:
        path = journal_path(simulated.state_dir, NODE)
        path.parent.mkdir(parents=True)
        path.write_bytes(journal)


def journal_of(simulated: SimulatedNode) -> bytes | None:
    path = journal_path(simulated.state_dir, NODE)
    return path.read_bytes() if path.exists() else None


@pytest.mark.slow
def test_killed_at_any_line_the_next_agent_enforces_its_target_and_all_ends_uncapped(simulated: SimulatedNode) -> None:
    def whole_life() -> None:
        simulated.life(live)

    begin(simulated)
    lines, killing_lines = moments(whole_life, lambda: (simulated.caps, journal_of(simulated)))
    for line in killing_lines:
        begin(simulated)
        kill_at(line, whole_life)
        where = f"killed at line {line} of {lines}"
        caps, journal = simulated.caps, journal_of(simulated)
        assert caps == UNCAPPED or journal is not None, where

        simulated.life(cap_anew)
        assert simulated.caps == Caps(450, 0, 450), where
        simulated.life(put_back)
        assert (simulated.caps, journal_of(simulated)) == (UNCAPPED, None), where

        begin(simulated, caps, journal)
        simulated.life(hear_nothing)
        assert (simulated.caps, journal_of(simulated)) == (UNCAPPED, None), where

        begin(simulated, caps, journal)
        answer = joulie("agent", "restore", env={"STATE_DIR": str(simulated.state_dir)})
        assert (answer.code, simulated.caps, journal_of(simulated)) == (0, UNCAPPED, None), where
    assert len(killing_lines) >= 20


def test_a_cap_of_an_agent_whose_journal_is_lost_is_lifted_too(simulated: SimulatedNode) -> None:
    """A pool agent that moved to another machine: the interface has a word for "no limit", so nothing need be known."""
    simulated.set(Caps(500.0, 30.0, 400.0))
    simulated.life(put_back)
    assert simulated.caps == UNCAPPED


def test_a_throttle_of_another_agent_does_not_stay_beside_a_limit(simulated: SimulatedNode) -> None:
    simulated.set(Caps(None, 30.0, None))
    simulated.life(cap_anew)
    assert simulated.caps == Caps(450, 0, 450)


@pytest.mark.parametrize("how", ["blocked", "error", "silent"])
def test_where_the_limit_does_not_work_the_throttle_takes_over_and_hands_back(
    simulated: SimulatedNode, how: str
) -> None:
    async def work(control: NodeControl) -> list[str]:
        modes: list[str] = []
        for tick in range(60):
            if tick == 20:
                simulated.fault(fault="none")
            await control.enforce(target(cpu_pct=60), LIMITS, 1000.0 + tick * TICK_S)
            modes.append(control.cpu_mode)
        return modes

    simulated.fault(fault="blocked", how=how, actions=["rapl.set_power_cap_watts"])
    modes = simulated.life(work)
    assert "dvfs" in modes[:20]
    assert set(modes[:20]) <= {"none", "dvfs"}
    assert modes[-1] == "rapl"
    assert (simulated.caps.cpu_w, simulated.caps.throttle_pct) == (480, 0)

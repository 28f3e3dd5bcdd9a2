"""Orders on a machine's own limits: followed and confirmed at once, kept through every end of an agent."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from joulie.agent.budget.order_file import order_path
from joulie.agent.restore.journal import journal_path, read_boot_id
from joulie.cluster.port import EVENTS, NODE_TWINS
from tests.agent.budget.machines import MAX_W, ONCE_AN_HOUR, budget_machine, held_to
from tests.agent.budget.orders import order, release
from tests.agent.world import scenario, until
from tests.devices.sysfs_pieces import UW


def test_orders_are_followed_and_confirmed_without_waiting_for_a_tick(tmp_path: Path) -> None:
    async def play() -> None:
        async with budget_machine(tmp_path) as machine:
            machine.order({})
            async with machine.agent(**ONCE_AN_HOUR) as running:
                await until(lambda: machine.confirms(0, None), "it says that no order holds it")
                free = machine.said
                assert free["bootId"] == read_boot_id()
                assert machine.limits == machine.found
                machine.order(order(1, 120))
                await held_to(machine, 120, "the first order is followed")
                await until(lambda: machine.confirms(1, 120), "and confirmed")
                for number, watts in ((2, 80), (3, 110), (4, MAX_W)):
                    machine.order(order(number, watts))
                    await held_to(machine, watts, "each is followed")
                    await until(lambda n=number, w=watts: machine.confirms(n, w), "and confirmed")  # type: ignore[misc]
                assert machine.said["session"] == free["session"]
                assert machine.said["sequence"] > free["sequence"]
                assert machine.said["twinUid"] == machine.server.all(NODE_TWINS)[0]["metadata"]["uid"]
                held = ("joulie_agent_budget_held", 'node="a"')
                found = await running.metrics(held)
                assert found["joulie_agent_budget_order", 'node="a"'] == 4
                assert (found[held], found["joulie_agent_budget_in_contact", 'node="a"']) == (1, 1)
                assert found["joulie_agent_budget_renewal_age_seconds", ""] < 60

    scenario(play())


def test_the_lower_of_profile_and_order_holds(tmp_path: Path) -> None:
    async def play() -> None:
        async with budget_machine(tmp_path) as machine:
            machine.order(order(1, 100), cpu_pct=60)
            async with machine.agent():
                await held_to(machine, 90, "the profile wants less")
                await until(lambda: machine.confirms(1, 90), "what is held is confirmed")
                machine.order(order(2, 80), cpu_pct=60)
                await held_to(machine, 80, "the order allows less")
                machine.order(order(2, 80), cpu_pct=100)
                await until(lambda: machine.confirms(2, 80), "the order still holds")
                assert machine.holds(80)
                told = machine.server.all(NODE_TWINS)[0]["status"]["controlStatus"]["cpu"]["message"]
                assert "a power budget allows no more" in told

    scenario(play())


def test_a_clean_stop_keeps_what_is_safe_and_the_next_agent_takes_up_the_order(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        async with budget_machine(tmp_path) as machine:
            machine.order(order(5, 120, failsafe_w=70))
            async with machine.agent() as running:
                await held_to(machine, 120, "the order is followed")
                assert await running.end() == 0
            assert machine.holds(70)
            assert journal_path(machine.state_dir).exists()
            assert machine.confirms(5, 70)
            before = machine.said["session"]
            machine.order(order(4, 140, failsafe_w=140))  # an older one, late
            async with machine.agent():
                await held_to(machine, 120, "in contact again, the order counts")
                assert machine.said["session"] == before + 1
                machine.order(release(6))
                await until(lambda: machine.limits == machine.found, "released, it is as found")
                await until(lambda: machine.confirms(6, None), "and says so")
                assert not order_path(machine.state_dir).exists()
            assert not journal_path(machine.state_dir).exists()

    with caplog.at_level(logging.INFO):
        scenario(play())
    stopped = [record.message for record in caplog.records if record.message.startswith("agent stopped")]
    assert [("power budgets still hold" in line) for line in stopped] == [True, False]


def test_killed_it_follows_no_older_order_and_without_its_state_folder_what_the_twin_says(tmp_path: Path) -> None:
    async def play() -> None:
        async with budget_machine(tmp_path) as machine:
            machine.order(order(5, 100))
            async with machine.agent() as running:
                await until(lambda: machine.confirms(5, 100), "the order is confirmed")
                await running.kill()
            assert machine.holds(100)
            machine.order(order(4, 140))
            async with machine.agent() as running:
                await until(lambda: machine.said.get("session") == 2, "the next agent speaks")
                await until(lambda: machine.confirms(5, 100), "of the order that it kept")
                assert machine.holds(100)
                await running.kill()
            machine.state_dir.rename(tmp_path / "lost")
            machine.order(order(6, 110))
            async with machine.agent():
                await held_to(machine, 110, "it follows what the twin says")
                await until(lambda: machine.said.get("session", 0) > 2, "its life counts on from what the twin shows")
                await until(lambda: machine.confirms(6, 110), "and confirms it")

    scenario(play())


def test_after_a_reboot_the_kept_order_holds_before_the_api_server_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        async with budget_machine(tmp_path) as machine:
            machine.order(order(5, 100, failsafe_w=80))
            async with machine.agent() as running:
                await until(lambda: machine.confirms(5, 100), "the order is confirmed")
                await running.kill()
            machine.set_limits(machine.found)
            monkeypatch.setattr("joulie.agent.process.read_boot_id", lambda: "boot-2")
            async with machine.agent() as running:
                running.cluster.cut_off()
                await held_to(machine, 80, "the failsafe holds, with no API server")
                assert machine.said["bootId"] != "boot-2"
                running.cluster.reconnect()
                await held_to(machine, 100, "the order counts when the operator is heard")
                await until(lambda: machine.said["bootId"] == "boot-2", "and is confirmed for this boot")

    scenario(play())


def test_a_twin_that_is_deleted_lifts_nothing(tmp_path: Path) -> None:
    async def play() -> None:
        async with budget_machine(tmp_path) as machine:
            machine.order(order(5, 120, failsafe_w=70))
            async with machine.agent() as running:
                await until(lambda: machine.confirms(5, 120), "the order is confirmed")
                machine.server.delete(NODE_TWINS, "a", None)
                await held_to(machine, 70, "without a twin no more can be known")
                told = ("joulie_agent_budget_in_contact", 'node="a"')
                assert (await running.metrics(told))[told] == 0
                machine.order({})  # a policy makes another
                await until(lambda: bool(machine.said), "the agent speaks to the new one")
                assert (machine.said["order"], machine.limits[0] <= 120 * UW) == (5, True)
                machine.order(order(1, 100))
                await held_to(machine, 100, "the new twin's orders count from one")
                await until(lambda: machine.confirms(1, 100), "and are confirmed")

    scenario(play())


@pytest.mark.parametrize("cause", ["operator", "api server"])
def test_in_silence_the_failsafe_holds_whatever_the_cap_lease_does(tmp_path: Path, cause: str) -> None:
    async def play() -> None:
        async with budget_machine(tmp_path) as machine:
            machine.order(order(5, 120, failsafe_w=100), cpu_pct=60)
            async with machine.agent(BUDGET_LEASE="1s", CAP_LEASE="2s") as running:
                await held_to(machine, 90, "the profile holds")
                machine.order(order(6, 120, failsafe_w=100))
                await held_to(machine, 120, "the order holds")
                machine.operator_lives = False
                if cause == "api server":
                    running.cluster.cut_off()
                await held_to(machine, 100, "the failsafe holds")
                told = ("joulie_agent_let_go", 'node="a"')
                assert (await running.metrics(told))[told] == 0
                running.cluster.reconnect()
                machine.operator_lives = True
                machine.order(order(6, 120, failsafe_w=100))
                await held_to(machine, 120, "heard again, the order counts")

    scenario(play())


def test_a_dead_operator_ends_its_profiles_caps_and_not_the_budgets(tmp_path: Path) -> None:
    async def play() -> None:
        async with budget_machine(tmp_path) as machine:
            machine.order(order(5, 120, failsafe_w=100), cpu_pct=60)
            async with machine.agent(BUDGET_LEASE="1s", CAP_LEASE="2s"):
                await held_to(machine, 90, "the profile holds")
                machine.operator_lives = False
                await held_to(machine, 100, "its cap is lifted, and the failsafe stays")
                await until(lambda: bool(machine.server.all(EVENTS)), "an event tells of it")
                (event,) = machine.server.all(EVENTS)
                assert event["reason"] == "CapLeaseEnded"
                assert "caps of a power budget, which stay" in event["message"]

    scenario(play())


def test_a_garbled_order_raises_nothing_until_the_next_is_seen(tmp_path: Path) -> None:
    async def play() -> None:
        async with budget_machine(tmp_path) as machine:
            machine.order(order(5, 100))
            async with machine.agent() as running:
                await until(lambda: machine.confirms(5, 100), "the order is confirmed")
                await running.kill()
            order_path(machine.state_dir).write_bytes(b"\0" * 100)
            machine.server.delete(NODE_TWINS, "a", None)
            machine.order({})
            async with machine.agent() as running:
                await until(lambda: machine.confirms(0, None), "it confirms nothing")
                await until(lambda: "BudgetOrderLost" in _reasons(machine.server.all(EVENTS)), "it says so")
                assert machine.holds(100)
                assert await running.end() == 0
            assert machine.holds(100)
            async with machine.agent():
                machine.order(order(1, 130))
                await held_to(machine, 130, "an order ends it")
                await until(lambda: machine.confirms(1, 130), "and is confirmed")

    scenario(play())


def test_a_dry_run_writes_to_no_device_and_no_file_and_confirms_no_watts(tmp_path: Path) -> None:
    async def play() -> None:
        async with budget_machine(tmp_path) as machine:
            machine.order(order(5, 100))
            async with machine.agent(SIMULATE_ONLY="true") as running:
                await until(lambda: machine.confirms(5, None), "it confirms no watts")
                assert await running.end() == 0
            assert machine.limits == machine.found
            assert not order_path(machine.state_dir).exists()

    scenario(play())


def test_an_order_below_the_range_holds_the_lowest_and_that_is_confirmed(tmp_path: Path) -> None:
    async def play() -> None:
        async with budget_machine(tmp_path) as machine:
            machine.order(order(1, 0))
            async with machine.agent():
                await held_to(machine, 15, "the lowest that it takes")  # CPU_MIN_CAP_PCT of 150 W
                await until(lambda: machine.confirms(1, 15), "which is confirmed")

    scenario(play())


def test_frequency_alone_confirms_no_watts(tmp_path: Path) -> None:
    async def play() -> None:
        async with budget_machine(tmp_path, "arm-cm4") as machine:
            machine.order(order(1, 2), cpu_pct=60)
            async with machine.agent(DVFS_MIN_FREQ_KHZ="600000"):
                await until(lambda: machine.confirms(1, None), "the order is followed, without watts")
                told = machine.server.all(NODE_TWINS)[0]["status"]["controlStatus"]["cpu"]
                assert (told["result"], told["backend"]) == ("applied", "dvfs")

    scenario(play())


def test_a_contested_cap_is_not_confirmed(tmp_path: Path) -> None:
    async def play() -> None:
        async with budget_machine(tmp_path) as machine:
            machine.order(order(1, 100))
            async with machine.agent():
                await until(lambda: machine.confirms(1, 100), "the order is confirmed")

                def tamper() -> bool:
                    machine.set_limits([140 * UW] * 4)
                    return machine.confirms(1, None)

                await until(tamper, "another program wins, and nothing is said to be held")

    scenario(play())


def _reasons(events: list[dict[str, str]]) -> set[str]:
    return {event["reason"] for event in events}

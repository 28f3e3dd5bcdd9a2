"""The loop between decisions: what is written when, by whose leave, how fast, and what is said about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import pytest

from joulie.cluster.port import EVENTS, NODE_TWINS, NODES, PODS
from joulie.control.policies.interface import Choice, PolicyView
from joulie.model.rfc3339 import parse_time_s
from joulie.operator.rate_limit import TokenBucket
from joulie.operator.writes import Job
from tests.operator.clusters import MemoryGround
from tests.operator.harness import Scene, play_out
from tests.operator.log_lines import logged
from tests.operator.objects import node, pod

STATUS = "patch nodetwins/status"


class Moody:
    """A policy that can be told to fail in several ways."""

    name = "moody"

    def __init__(self) -> None:
        self.mood = "well"

    def plan(self, view: PolicyView) -> Mapping[str, Choice]:
        if self.mood == "raises":
            raise KeyError("no idea")
        if self.mood == "forgets a node":
            return {node.name: Choice("eco", "") for node in view.nodes[1:]}
        return {node.name: Choice("performance", "well") for node in view.nodes}


async def _nodes(scene: Scene, count: int) -> None:
    for number in range(count):
        await scene.person.put(NODES, node(f"node-{number:03}"))


def test_small_moves_wait_for_a_refresh_and_large_ones_do_not() -> None:
    async def scenario(scene: Scene) -> None:
        await _nodes(scene, 2)
        async with scene.operator({"STATIC_HP_FRAC": "1", "TWIN_REFRESH_INTERVAL": "1h"}) as play:
            await play.tick()
            scene.link.take()
            await scene.person.put(PODS, pod("small", "node-000", cpu="2"))  # 6 W of 800 W
            await play.tick(1)
            await play.tick(1)
            assert scene.link.take() == []
            await scene.person.put(PODS, pod("more", "node-000", cpu="4"))  # now 17 W, against what was last written
            await play.tick(1)
            assert scene.link.take() == [f"{STATUS} node-000"]

    play_out(MemoryGround(), scenario)


def test_unchanged_twins_are_refreshed_in_turns_and_none_grows_stale() -> None:
    names = [f"node-{number:03}" for number in range(60)]

    async def scenario(scene: Scene) -> None:
        await _nodes(scene, len(names))
        env = {"RECONCILE_INTERVAL": "1m", "TWIN_REFRESH_INTERVAL": "5m"}
        async with scene.operator(env) as play:
            await play.tick()
            scene.link.take()
            per_tick = []
            for _ in range(15):
                await play.tick(60)
                written = scene.link.take()
                assert all(call.startswith(STATUS) for call in written)
                assert len(set(written)) == len(written)
                per_tick.append(len(written))
                for twin in play.operator.state.twins.values():
                    updated = twin.status.last_updated if twin.status else None
                    assert updated is not None
                    assert play.now_s - parse_time_s(updated) < 5 * 60
            assert sum(per_tick[5:]) == 2 * len(names)  # each twice in ten minutes
            assert max(per_tick) < len(names) / 2

    play_out(MemoryGround(), scenario)


def test_refreshes_are_spread_between_two_decisions_and_counted_also_when_cut_short() -> None:
    async def scenario(scene: Scene) -> None:
        await _nodes(scene, 40)
        async with scene.operator({"RECONCILE_INTERVAL": "1s"}) as play:
            await play.tick()
            scene.link.take()
            await play.caught_up()
            play.now_s += 600
            await play.operator.reconcile()
            await asyncio.sleep(0.3)
            after_a_third = len(scene.link.writes)
            assert 1 < after_a_third < 38
            play.now_s += 1
            await play.operator.reconcile()
            counted = play.operator.metrics.made.registry.get_sample_value(
                "joulie_operator_api_writes_total", {"verb": "patch", "resource": "nodetwins/status"}
            )
            assert counted is not None
            assert counted >= 40 + after_a_third - 1
            await asyncio.sleep(1.0)
            assert len({call for call in scene.link.writes if call.startswith(STATUS)}) == 40

    play_out(MemoryGround(), scenario)


@pytest.mark.parametrize("mood", ["raises", "forgets a node"])
def test_a_policy_that_fails_costs_the_decision_and_nothing_is_written(mood: str) -> None:
    policy = Moody()

    async def scenario(scene: Scene) -> None:
        await _nodes(scene, 2)
        async with scene.operator(policy=policy) as play:
            policy.mood = mood
            with logged() as log:
                assert await play.tick() is None
                assert scene.link.take() == []
                (line,) = log.lines
                assert (line.level, line.message) == ("error", "decision failed; nothing was changed")
                assert "moody" in line.fields["error"]
            errors = play.operator.metrics.made.registry.get_sample_value("joulie_operator_reconcile_errors_total")
            assert errors == 1
            policy.mood = "well"
            assert await play.tick() is not None
            assert len(scene.link.take()) == 6

    play_out(MemoryGround(), scenario)


def test_losing_the_lead_stops_the_writes_at_once_and_the_next_leader_finishes() -> None:
    async def scenario(scene: Scene) -> None:
        await _nodes(scene, 100)
        async with scene.operator() as play:

            async def depose(_: str) -> None:
                if len(scene.link.writes) == 50:
                    play.lead_s = 0.0

            scene.link.before = depose
            with logged() as log:
                outcome = await play.tick()
            assert outcome is not None
            assert outcome.lost_lead
            assert len(scene.link.take()) == 50
            assert log.saying("decided")[0].fields["unfinished"] == "no longer leading"
            assert play.operator.metrics.page().count(b"joulie_operator_node_state{") == 0
        scene.link.before = None
        async with scene.operator() as play:
            await play.tick()
            outcome = await play.tick()
            assert outcome is not None
            assert not outcome.writes
            assert len(play.operator.state.twins) == 100
            assert await scene.person.events() == []

    play_out(MemoryGround(), scenario)


def test_writes_keep_to_the_rate_and_the_burst() -> None:
    async def scenario(scene: Scene) -> None:
        await _nodes(scene, 20)
        async with scene.operator({"KUBE_CLIENT_QPS": "100", "KUBE_CLIENT_BURST": "10"}) as play:
            began_s = time.monotonic()
            await play.tick()
            assert time.monotonic() - began_s >= (60 - 10) / 100  # 60 writes, 10 of them at once

    play_out(MemoryGround(), scenario)


def test_a_token_bucket_gives_its_burst_and_then_its_rate() -> None:
    async def scenario() -> None:
        bucket = TokenBucket(200.0, 5, time.monotonic)
        began_s = time.monotonic()
        given_s = []
        for _ in range(25):
            await bucket.take()
            given_s.append(time.monotonic() - began_s)
        assert given_s[4] < 0.08
        assert given_s[24] >= 20 / 200

    asyncio.run(scenario())


def test_one_line_a_tick_one_a_transition_and_nothing_for_each_node() -> None:
    async def scenario(scene: Scene) -> None:
        await _nodes(scene, 50)
        async with scene.operator() as play:
            with logged() as log:
                await play.tick()
                await play.tick()
                await play.tick(600)
                assert [line.message for line in log.lines] == ["decided"] * 3
                first, second, refreshed = (line.fields for line in log.lines)
                assert (first["nodes"], first["performance"], first["eco"]) == (50, 25, 25)
                assert (first["written"], second["written"], refreshed["written"]) == (150, 0, 50)
                await scene.person.put(PODS, pod("training", "node-049", performance=True))
                await play.tick()
                assert [line.message for line in log.lines[3:]] == ["transition", "decided"]
                told = log.lines[3].fields
                assert (told["node"], told["result"]) == ("node-049", "deferred")

    play_out(MemoryGround(), scenario)


def test_the_rate_grows_with_the_cluster_unless_it_is_set() -> None:
    async def scenario(scene: Scene) -> None:
        await _nodes(scene, 20)
        async with scene.operator({"KUBE_CLIENT_QPS": "auto"}) as play:
            await play.tick()
            assert _rate(play.operator) == 51
        async with scene.operator({"KUBE_CLIENT_QPS": "7.5"}) as play:
            await play.tick()
            assert _rate(play.operator) == 7.5

    play_out(MemoryGround(), scenario)


def test_a_fault_of_our_own_costs_the_decision_and_is_shown_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(scene: Scene) -> None:
        await _nodes(scene, 1)
        async with scene.operator() as play:

            def broken(*_: Any) -> list[Job]:
                raise ZeroDivisionError("ours")

            monkeypatch.setattr(play.operator, "pending_jobs", broken)
            with logged() as log:
                assert await play.tick() is None
                assert [line.level for line in log.lines] == ["error"]
            monkeypatch.undo()
            assert await play.tick() is not None

    play_out(MemoryGround(), scenario)


def _rate(operator: Any) -> float:
    rate: float = operator._writer.bucket.rate_per_s
    return rate


def test_all_twins_at_once_go_only_after_a_while_and_not_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(scene: Scene) -> None:
        await _nodes(scene, 3)
        async with scene.operator({"EMPTY_SCOPE_GRACE": "1h", "RECONCILE_INTERVAL": "1s"}) as play:
            await play.tick()
            for number in range(3):
                await scene.person.label(f"node-{number:03}", managed=None)
            await play.caught_up()
            for _ in range(2):
                await play.operator.reconcile()
            assert len(await scene.person.all(NODE_TWINS)) == 3
            held = play.operator.metrics.made.registry.get_sample_value("joulie_operator_held_removals")
            assert held == 3
            assert caplog.text.count("no node is in scope (NODE_SELECTOR 'joulie.io/managed=true'): 3 twins") == 2
            events = await scene.person.all(EVENTS)
            assert [event["reason"] for event in events.values()].count("ScopeEmpty") == 1

            await scene.person.label("node-001", managed="true")  # a person's wish now, no mistake
            await play.caught_up()
            await play.operator.reconcile()
            assert set(await scene.person.all(NODE_TWINS)) == {"node-001"}

    play_out(MemoryGround(), scenario)


def test_twins_go_when_the_scope_stays_empty() -> None:
    async def scenario(scene: Scene) -> None:
        await _nodes(scene, 3)
        async with scene.operator({"EMPTY_SCOPE_GRACE": "200ms", "RECONCILE_INTERVAL": "1s"}) as play:
            await play.tick()
            for number in range(3):
                await scene.person.label(f"node-{number:03}", reserved="true")
            await play.caught_up()
            await play.operator.reconcile()
            assert len(await scene.person.all(NODE_TWINS)) == 3
            await asyncio.sleep(0.25)
            await play.operator.reconcile()
            assert await scene.person.all(NODE_TWINS) == {}

    play_out(MemoryGround(), scenario)

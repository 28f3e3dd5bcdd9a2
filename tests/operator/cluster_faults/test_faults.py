"""Calls that fail in every way an API server knows: the objects end as planned, and each change is told once."""

from __future__ import annotations

import asyncio

import pytest

from joulie.cluster.memory.cluster import MemoryCluster
from joulie.cluster.port import EVENTS, NODE_TWINS, NODES, PODS, Resource
from joulie.operator import apply
from tests.operator.clusters import MemoryGround
from tests.operator.expected_objects import Expected, assert_as_planned
from tests.operator.harness import Play, Scene, play_out
from tests.operator.log_lines import logged
from tests.operator.objects import node, pod

WRITES = [("create", NODE_TWINS), ("patch_status", NODE_TWINS), ("patch", NODES)]
WRITE_IDS = ["create twin", "twin status", "node label"]
TOO_OFTEN = 4 * apply.ATTEMPTS  # for one node: the write fails for this decision


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "FIRST_RETRY_S", 0.005)
    monkeypatch.setattr(apply, "MAX_RETRY_S", 0.02)
    monkeypatch.setattr(apply, "CALL_DEADLINE_S", 0.05)


async def _nodes(scene: Scene, count: int = 4) -> MemoryCluster:
    for number in range(count):
        await scene.person.put(NODES, node(f"node-{number}"))
    assert isinstance(scene.link.cluster, MemoryCluster)
    return scene.link.cluster


async def _as_planned(scene: Scene, play: Play) -> None:
    expected = Expected(await scene.person.export(), play.env, play.now_s)
    await assert_as_planned(scene.person, expected)
    assert len(await scene.person.all(NODE_TWINS)) == len(await scene.person.all(NODES))


@pytest.mark.parametrize(("verb", "resource"), WRITES, ids=WRITE_IDS)
@pytest.mark.parametrize("fault", ["429", "500", "lost", "hangs", "hangs applied"])
def test_a_write_that_fails_for_a_moment_is_made_within_the_same_decision(
    verb: str, resource: Resource, fault: str
) -> None:
    async def scenario(scene: Scene) -> None:
        server = await _nodes(scene)
        if fault.startswith("hangs"):
            server.hang_next(4, verb=verb, resource=resource, applied="applied" in fault)
        elif fault == "lost":
            server.fail_next(4, verb=verb, resource=resource, status=500, applied=True)
        else:
            server.fail_next(4, verb=verb, resource=resource, status=int(fault), retry_after_s=3600)
        async with scene.operator() as play:
            outcome = await play.tick()
            assert outcome is not None
            assert outcome.failed == {}
            assert len(scene.link.take()) >= 12 + 4  # it did fail
            await _as_planned(scene, play)
            await play.tick()
            assert scene.link.take() == []

    play_out(MemoryGround(), scenario)


@pytest.mark.parametrize(("verb", "resource"), WRITES, ids=WRITE_IDS)
def test_a_write_that_fails_for_long_costs_its_nodes_and_is_made_by_a_later_decision(
    verb: str, resource: Resource
) -> None:
    async def scenario(scene: Scene) -> None:
        server = await _nodes(scene)
        server.fail_next(apply.ATTEMPTS, verb=verb, resource=resource, key="node-2", status=503)
        async with scene.operator() as play:
            with logged() as log:
                outcome = await play.tick()
                assert outcome is not None
                assert list(outcome.failed) == ["node-2"]
                (decided,) = log.lines
                assert decided.fields["failed"] == 1
                assert decided.fields["first_failures"] == {"node-2": "injected fault"}
            assert _metric(play, "joulie_operator_write_errors_total") == 1
            await play.tick()
            await _as_planned(scene, play)
            assert await scene.person.events() == []

    play_out(MemoryGround(), scenario)


@pytest.mark.parametrize(
    ("verb", "resource"),
    [("patch", NODES), ("patch_status", NODE_TWINS), ("patch", NODE_TWINS)],
    ids=["node label", "twin status", "twin spec"],
)
@pytest.mark.parametrize("decisions", [1, 2])
def test_a_transition_whose_writes_come_in_parts_is_told_once_from_where_it_began(
    verb: str, resource: Resource, decisions: int
) -> None:
    async def scenario(scene: Scene) -> None:
        server = await _nodes(scene)
        async with scene.operator() as play:
            await play.tick()
            await scene.person.put(PODS, pod("training", "node-3", performance=True))
            server.fail_next(decisions * apply.ATTEMPTS, verb=verb, resource=resource, key="node-3", status=500)
            for _ in range(decisions):
                outcome = await play.tick()
                assert outcome is not None
                assert list(outcome.failed) == ["node-3"]
                assert await scene.person.events() == []
            with logged() as log:
                await play.tick()
                await play.tick()
            await _as_planned(scene, play)
            (told,) = await scene.person.events()
            assert told.startswith("node-3 PowerDraining: eco → draining: ")
            (line,) = log.saying("transition")
            assert (line.fields["from_state"], line.fields["to_state"]) == ("eco", "draining")

    play_out(MemoryGround(), scenario)


def test_a_change_taken_back_before_it_was_written_whole_is_not_told() -> None:
    async def scenario(scene: Scene) -> None:
        server = await _nodes(scene)
        async with scene.operator() as play:
            await play.tick()
            await scene.person.put(PODS, pod("training", "node-3", performance=True))
            server.fail_next(apply.ATTEMPTS, verb="patch", resource=NODE_TWINS, status=500)
            await play.tick()
            await scene.person.edit(PODS, "training", {"status": {"phase": "Failed"}}, status=True)
            await play.tick()
            await _as_planned(scene, play)
            assert await scene.person.events() == []

    play_out(MemoryGround(), scenario)


@pytest.mark.parametrize("fault", ["500", "lost", "hangs", "for long"])
def test_an_event_is_written_once_or_its_loss_is_said_once(fault: str) -> None:
    async def scenario(scene: Scene) -> None:
        server = await _nodes(scene)
        async with scene.operator() as play:
            await play.tick()
            for name in ("node-2", "node-3"):
                await scene.person.put(PODS, pod(f"on-{name}", name, performance=True))
            if fault == "hangs":
                server.hang_next(2, verb="create", resource=EVENTS)
            else:
                count = TOO_OFTEN if fault == "for long" else 2
                server.fail_next(count, verb="create", resource=EVENTS, status=500, applied=fault == "lost")
            with logged() as log:
                outcome = await play.tick()
                assert outcome is not None
                assert outcome.failed == {}
            assert len(await scene.person.events()) == (0 if fault == "for long" else 2)
            assert len(log.saying("transition")) == 2
            assert len(log.saying("events could not be written")) == (1 if fault == "for long" else 0)
            await _as_planned(scene, play)

    play_out(MemoryGround(), scenario)


def test_a_twin_that_vanished_while_its_watch_was_deaf_is_made_anew() -> None:
    async def scenario(scene: Scene) -> None:
        server = await _nodes(scene)
        async with scene.operator() as play:
            await play.tick()
            server.hang_next(verb="watch", resource=NODE_TWINS)
            server.cut_watches()
            while ("watch", "nodetwins") not in server.calls or server.calls["watch", "nodetwins"] < 2:
                await asyncio.sleep(0.01)
            await scene.person.remove(NODE_TWINS, "node-3")
            play.now_s += 600  # a refresh of all twins
            outcome = await play.operator.reconcile(spread=False)
            assert outcome is not None
            assert list(outcome.failed) == ["node-3"]
            await play.operator.reconcile(spread=False)
            assert "node-3" in await scene.person.all(NODE_TWINS)

    play_out(MemoryGround(), scenario)


def test_an_answer_that_comes_after_newer_news_changes_nothing() -> None:
    async def scenario(scene: Scene) -> None:
        await _nodes(scene)
        async with scene.operator() as play:
            state = play.operator.state
            await play.caught_up()
            answer = await scene.person.cluster.get(NODES, "node-3")
            await scene.person.edit(NODES, "node-3", {"spec": {"unschedulable": True}})
            await scene.person.remove(NODES, "node-2")
            await play.caught_up()
            state.written(NODES, "node-3", answer)
            state.written(NODES, "node-2", answer)
            assert state.nodes["node-3"].unschedulable
            assert "node-2" not in state.nodes

    play_out(MemoryGround(), scenario)


def test_the_loop_survives_a_server_that_is_away_and_forgot_its_history() -> None:
    async def scenario(scene: Scene) -> None:
        server = await _nodes(scene)
        async with scene.operator() as play:
            await play.tick()
            server.cut_off()
            await scene.person.remove(NODES, "node-0")
            await scene.person.remove(NODE_TWINS, "node-1")
            await scene.person.put(NODES, node("new"))
            play.now_s += 600
            outcome = await play.operator.reconcile(spread=False)
            assert outcome is not None
            assert set(outcome.failed) == {"node-0", "node-1", "node-2", "node-3"}
            scene.person.cluster.expire_watches()  # type: ignore[union-attr]
            server.reconnect()
            await play.tick()
            await play.tick()
            assert set(await scene.person.all(NODE_TWINS)) == {"node-1", "node-2", "node-3", "new"}
            await _as_planned(scene, play)

    play_out(MemoryGround(), scenario)


def _metric(play: Play, name: str, **labels: str) -> float:
    value = play.operator.metrics.made.registry.get_sample_value(name, labels)
    assert value is not None
    return value

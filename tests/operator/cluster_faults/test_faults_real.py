"""A real API server that dies, forgets, refuses or falls silent: afterwards the objects say what the plan says.

Nothing is lost, nothing is there twice, and the log explains it in a handful of lines.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest

from joulie.cluster.port import EVENTS, NODE_TWINS, NODES, PODS, ConflictError
from joulie.cluster.watch.log import WatchLog
from tests.operator.cluster_faults.fault_proxy import Answer, HarmfulProxy, harmful, spoilt_cluster
from tests.operator.clusters import NAMESPACE, RealGround
from tests.operator.expected_objects import Expected, assert_as_planned
from tests.operator.harness import Play, Recorded, Scene, play_out
from tests.operator.log_lines import Logged, logged
from tests.operator.objects import node, pod

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

HANDFUL = 6
TWINS, NODE_PATHS = "/apis/joulie.io/v1alpha1/nodetwins", "/api/v1/nodes"


async def _settled(play: Play, ticks: int = 3) -> None:
    """Decisions until one finds nothing to repair."""
    for _ in range(ticks):
        outcome = await play.tick()
        if outcome is not None and not outcome.failed and not outcome.writes:
            return
    raise AssertionError(f"still writing after {ticks} decisions")


async def _as_planned(scene: Scene, play: Play) -> None:
    expected = Expected(await scene.person.export(), play.env, play.now_s)
    await assert_as_planned(scene.person, expected)


def _explains(log: Logged) -> None:
    assert len(log.besides("decided", "transition")) <= HANDFUL, log.lines


def test_a_server_killed_and_restarted_in_the_middle_of_first_contact(fresh_cluster: ControlPlane) -> None:
    from testbed.objects import fill

    fill(fresh_cluster, 300, 0, kinds={"Node"})

    async def scenario(scene: Scene) -> None:
        async def kill_half_way(_: str) -> None:
            if len(scene.link.writes) == 450:
                fresh_cluster.kill_apiserver()

        async with scene.operator() as play:
            scene.link.before = kill_half_way
            with logged() as log:
                outcome = await play.operator.reconcile()
                assert outcome is not None
                assert outcome.done
                assert outcome.failed
                await asyncio.to_thread(fresh_cluster.start_apiserver)
                await _settled(play)
            assert len(await scene.person.all(NODE_TWINS)) == 300
            await _as_planned(scene, play)
            assert await scene.person.events() == []  # first contact is no transition, also in two parts
            _explains(log)

    play_out(RealGround(fresh_cluster), scenario, WatchLog("operator"))


class Spoilt:
    """A scene whose operator talks through the proxy; the person does not."""

    def __init__(self, scene: Scene, proxy: HarmfulProxy, plane: ControlPlane) -> None:
        self.scene, self.proxy, self.plane = scene, proxy, plane


def _through_proxy(
    plane: ControlPlane,
    scenario: Callable[[Spoilt], Awaitable[None]],
    *,
    nodes: int = 20,
    idle_s: float = 30.0,
) -> None:
    async def whole(scene: Scene) -> None:
        for number in range(nodes):
            await scene.person.put(NODES, node(f"node-{number:02}"))
        async with harmful(plane) as proxy:
            scene.link = Recorded(spoilt_cluster(plane, proxy, WatchLog("operator"), idle_s=idle_s))
            try:
                await scenario(Spoilt(scene, proxy, plane))
            finally:
                await scene.link.close()

    play_out(RealGround(plane), whole)


def test_history_compacted_while_the_operator_was_cut_off(fresh_cluster: ControlPlane) -> None:
    async def scenario(spoilt: Spoilt) -> None:
        scene, proxy, plane = spoilt.scene, spoilt.proxy, spoilt.plane
        async with scene.operator() as play:
            await play.tick()
            with logged() as log:
                proxy.go_down()
                for number in range(5):
                    await scene.person.remove(NODES, f"node-{number:02}")
                    await scene.person.remove(NODE_TWINS, f"node-{number + 5:02}")
                await scene.person.put(NODES, node("new"))
                await scene.person.put(PODS, pod("training", "node-19", performance=True))

                def forget() -> None:
                    plane.stop_apiserver()
                    plane.compact_etcd()
                    plane.start_apiserver()

                await asyncio.to_thread(forget)
                proxy.down = False
                scene.link.take()
                await play.tick()
                recreated = {f"create nodetwins node-{number:02}" for number in range(5, 10)}
                creations = {call for call in scene.link.take() if call.startswith("create nodetwins")}
                assert creations == recreated | {"create nodetwins new"}
                await _settled(play)
            await _as_planned(scene, play)
            assert len(await scene.person.all(NODE_TWINS)) == 16
            told = Counter(line.split(":")[0] for line in await scene.person.events())
            assert told["node-19 PowerDraining"] == 1
            assert max(told.values()) == 1
            _explains(log)

    _through_proxy(fresh_cluster, scenario)


@pytest.mark.parametrize(
    "answer", [Answer("refused", 429, 1), Answer("refused", 500), Answer("refused", 409)], ids=["429", "500", "409"]
)
def test_every_write_refused_once(fresh_cluster: ControlPlane, answer: Answer) -> None:
    async def scenario(spoilt: Spoilt) -> None:
        scene, proxy = spoilt.scene, spoilt.proxy
        seen: set[tuple[str, str]] = set()

        def once(method: str, path: str) -> Answer | None:
            if method == "GET" or (method, path) in seen:
                return None
            seen.add((method, path))
            return None if method == "POST" and answer.status == 409 else answer

        async with scene.operator() as play:
            with logged() as log:
                proxy.spoil = once
                outcome = await play.tick()
                assert outcome is not None
                assert proxy.spoilt >= 40
                await _settled(play)
            await _as_planned(scene, play)
            assert log.besides("decided") == []
            assert outcome.failed == {}

    _through_proxy(fresh_cluster, scenario)


def test_lists_and_watches_refused_for_a_while(fresh_cluster: ControlPlane) -> None:
    async def scenario(spoilt: Spoilt) -> None:
        scene, proxy = spoilt.scene, spoilt.proxy
        refusals = Counter({f"/{path}": 3 for path in ("api/v1/nodes", "api/v1/pods", TWINS[1:])})

        def refuse(method: str, path: str) -> Answer | None:
            if method != "GET" or refusals[path] <= 0:
                return None
            refusals[path] -= 1
            return Answer("refused", 429 if refusals[path] % 2 else 500)

        proxy.spoil = refuse
        with logged() as log:
            async with scene.operator() as play:
                await play.tick()
                await _settled(play)
                await _as_planned(scene, play)
        assert proxy.spoilt == 9
        _explains(log)

    _through_proxy(fresh_cluster, scenario)


def test_another_writer_at_each_write(fresh_cluster: ControlPlane) -> None:
    async def scenario(spoilt: Spoilt) -> None:
        scene, proxy = spoilt.scene, spoilt.proxy
        others = {"metadata": {"annotations": {"example.com/other": "was here"}}}
        blocked = {"status": {"controlStatus": {"gpu": {"result": "none"}}}}
        met: Counter[str] = Counter()

        async def other(method: str, path: str) -> None:
            name = path.removesuffix("/status").rpartition("/")[2]
            if method == "POST" and path == TWINS:
                missing = {f"node-{number:02}" for number in range(20)} - set(await scene.person.all(NODE_TWINS))
                for twin in sorted(missing)[:3]:  # some of those that are about to be created
                    spec = {"nodeName": twin, "profile": "eco", "cpu": {"packagePowerCapPctOfMax": 7}}
                    try:
                        await scene.person.put(NODE_TWINS, {"metadata": {"name": twin}, "spec": spec})
                        met["created first"] += 1
                    except ConflictError:
                        met["created after"] += 1
            elif method == "PATCH" and path.startswith(TWINS):
                await scene.person.edit(NODE_TWINS, name, others)
                await scene.person.edit(NODE_TWINS, name, blocked, status=True)
                met["twins"] += 1
            elif method == "PATCH" and path.startswith(NODE_PATHS):
                await scene.person.edit(NODES, name, others)
                met["nodes"] += 1

        async with scene.operator() as play:
            with logged() as log:
                proxy.meddle = other
                await play.tick()
                await _settled(play)
            assert met["created first"] > 0
            assert met["twins"] >= 20
            assert met["nodes"] >= 20
            await _as_planned(scene, play)
            for twin in (await scene.person.all(NODE_TWINS)).values():
                assert twin["status"]["controlStatus"] == blocked["status"]["controlStatus"]
                assert twin["metadata"]["annotations"] == others["metadata"]["annotations"]
            _explains(log)

    _through_proxy(fresh_cluster, scenario)


@pytest.mark.parametrize("what", ["unanswered", "answer lost"])
def test_writes_that_hang_without_an_answer(fresh_cluster: ControlPlane, what: str) -> None:
    async def scenario(spoilt: Spoilt) -> None:
        scene, proxy = spoilt.scene, spoilt.proxy
        seen: set[tuple[str, str]] = set()

        def once(method: str, path: str) -> Answer | None:
            if method == "GET" or (method, path) in seen or not path.rpartition("/")[2].endswith(("3", "s")):
                return None
            seen.add((method, path))
            return Answer("unanswered") if what == "unanswered" else Answer("answer lost")

        async with scene.operator() as play:
            await play.tick()
            await scene.person.put(PODS, pod("training", "node-13", performance=True))
            with logged() as log:
                proxy.spoil = once
                await play.tick()
                await _settled(play)
            assert proxy.spoilt >= 4  # twin, its status, the node's label, and the event
            await _as_planned(scene, play)
            told = [line.split(":")[0] for line in await scene.person.events()]
            assert told == ["node-13 PowerDraining"]
            assert len(await scene.person.all(EVENTS)) == 1
            _explains(log)

    _through_proxy(fresh_cluster, scenario)


def test_watches_that_fall_silent_without_closing(fresh_cluster: ControlPlane) -> None:
    async def scenario(spoilt: Spoilt) -> None:
        scene, proxy = spoilt.scene, spoilt.proxy
        async with scene.operator() as play:
            await play.tick()
            with logged() as log:
                proxy.silence_streams()
                await scene.person.put(PODS, pod("training", "node-19", performance=True))
                await scene.person.remove(NODES, "node-00")
                await asyncio.sleep(0.3)
                assert f"{NAMESPACE}/training" not in play.operator.state.pods  # no event said so
                await _settled(play)  # waits until the operator knows
            await _as_planned(scene, play)
            assert [line for line in await scene.person.events() if "node-19" in line] != []
            _explains(log)

    _through_proxy(fresh_cluster, scenario, idle_s=3.0)

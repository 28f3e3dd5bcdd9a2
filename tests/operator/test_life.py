"""A cluster's whole life under the operator: at every step its objects say what `joulie plan` and `joulie twin` say."""

from __future__ import annotations

from typing import Any

import pytest

from joulie.cluster.port import NODE_POWER_PROFILES, NODE_TWINS, NODES, PODS
from tests.operator.clusters import REAL, Body, Ground, MemoryGround, RealGround
from tests.operator.expected_objects import Expected, assert_as_planned
from tests.operator.harness import Play, Scene, play_out
from tests.operator.objects import node, pin, pod

CONTROL_STATUS = {
    "cpu": {"backend": "rapl", "result": "applied", "message": "240 W", "updatedAt": "2026-11-01T11:59:00Z"}
}
FIRST_CONTACT = ["create nodetwins", "patch nodetwins/status", "patch nodes"]


@pytest.fixture(params=["memory", REAL])
def ground(request: pytest.FixtureRequest) -> Ground:
    if request.param == "memory":
        return MemoryGround()
    return RealGround(request.getfixturevalue("fresh_cluster"))


class Life:
    """Steps of a life, each of them checked against the command line."""

    def __init__(self, scene: Scene, play: Play) -> None:
        self.scene = scene
        self.person = scene.person
        self.play = play
        self._told = 0

    async def step(
        self, *, pinned: frozenset[str] = frozenset(), exact: bool = False, after_s: float = 1.0
    ) -> dict[str, str]:
        """One decision; the states that the plan gives."""
        self.scene.link.take()
        expected = Expected(await self.person.export(), self.play.env, self.play.now_s + after_s)
        outcome = await self.play.tick(after_s)
        assert outcome is not None
        assert outcome.failed == {}
        await assert_as_planned(self.person, expected, pinned=pinned, exact=exact)
        return expected.states()

    async def news(self) -> list[str]:
        """Events since the last time."""
        events = await self.person.events()
        new, self._told = events[self._told :], len(events)
        return new

    def writes(self, name: str) -> list[str]:
        """What was written for one node in the last step."""
        return [call.removesuffix(f" {name}") for call in self.scene.link.writes if call.endswith(f" {name}")]

    async def twin(self, name: str) -> Body:
        return (await self.person.all(NODE_TWINS))[name]


async def _begin(scene: Scene, *more: Body) -> None:
    for body in (node("gpu-1", gpus=8), node("cpu-1"), node("cpu-2"), node("cpu-3"), *more):
        await scene.person.put(NODES, body)


def test_first_contact_is_three_writes_a_node_without_an_event_and_then_there_is_silence(ground: Ground) -> None:
    async def scenario(scene: Scene) -> None:
        await _begin(scene)
        async with scene.operator() as play:
            life = Life(scene, play)
            states = await life.step(exact=True)
            assert states == {"gpu-1": "performance", "cpu-1": "performance", "cpu-2": "eco", "cpu-3": "eco"}
            for name in states:
                assert life.writes(name) == FIRST_CONTACT
            assert len(scene.link.writes) == 12
            await life.step()
            assert scene.link.writes == []
            assert await life.news() == []

    play_out(ground, scenario)


def test_a_performance_pod_makes_an_eco_node_drain_at_full_power_until_it_ends(ground: Ground) -> None:
    async def scenario(scene: Scene) -> None:
        await _begin(scene)
        async with scene.operator() as play:
            life = Life(scene, play)
            await life.step(exact=True)

            await life.person.put(PODS, pod("training", "cpu-2", performance=True))
            states = await life.step()
            assert states["cpu-2"] == "draining"
            spec = (await life.twin("cpu-2"))["spec"]
            assert (spec["profile"], spec["cpu"]) == ("eco", {"packagePowerCapPctOfMax": 100})
            (told,) = await life.news()
            assert told.startswith("cpu-2 PowerDraining: eco → draining: eco wanted, but 1 performance-only pod")

            await life.step()
            assert await life.news() == []  # draining is told once

            await life.person.edit(PODS, "training", {"status": {"phase": "Succeeded"}}, status=True)
            assert (await life.step())["cpu-2"] == "eco"
            assert (await life.twin("cpu-2"))["spec"]["cpu"] == {"packagePowerCapPctOfMax": 60}
            (told,) = await life.news()
            assert told.startswith("cpu-2 PowerEco: draining → eco: ")

    play_out(ground, scenario)


def test_pins_rule_while_they_are_there_and_have_not_expired(ground: Ground) -> None:
    async def scenario(scene: Scene) -> None:
        await _begin(scene)
        async with scene.operator() as play:
            life = Life(scene, play)
            await life.step(exact=True)
            on = frozenset({"cpu-3"})

            await life.person.put(NODE_POWER_PROFILES, pin("keep", "cpu-3", "performance"))
            assert (await life.step(pinned=on))["cpu-3"] == "performance"
            assert await life.news() == [
                "cpu-3 PowerPerformance: eco → performance: pinned to performance by NodePowerProfile/keep"
            ]
            await life.person.remove(NODE_POWER_PROFILES, "keep")
            assert (await life.step())["cpu-3"] == "eco"
            assert len(await life.news()) == 1

            cap = {"cpu": {"packagePowerCapPctOfMax": 80}}
            short = pin("short", "cpu-3", "performance", play.now_s + 30, **cap)
            await life.person.put(NODE_POWER_PROFILES, short)
            assert (await life.step(pinned=on))["cpu-3"] == "performance"
            assert (await life.twin("cpu-3"))["spec"]["cpu"] == {"packagePowerCapPctOfMax": 80}
            assert (await life.step(after_s=60))["cpu-3"] == "eco"
            assert [line.split(":")[0] for line in await life.news()] == ["cpu-3 PowerPerformance", "cpu-3 PowerEco"]

    play_out(ground, scenario)


def test_a_reserved_node_loses_twin_and_labels_and_gets_them_back(ground: Ground) -> None:
    async def scenario(scene: Scene) -> None:
        await _begin(scene)
        async with scene.operator() as play:
            life = Life(scene, play)
            await life.step(exact=True)
            await life.person.label("cpu-3", reserved="true")
            assert set(await life.step()) == {"gpu-1", "cpu-1", "cpu-2"}
            assert life.writes("cpu-3") == ["patch nodes", "delete nodetwins"]
            assert await life.news() == []
            await life.person.label("cpu-3", reserved=None)
            assert set(await life.step()) == {"gpu-1", "cpu-1", "cpu-2", "cpu-3"}
            assert life.writes("cpu-3") == FIRST_CONTACT

    play_out(ground, scenario)


def test_a_cordoned_node_keeps_its_target_while_the_others_are_planned_without_it(ground: Ground) -> None:
    async def scenario(scene: Scene) -> None:
        await _begin(scene)
        async with scene.operator() as play:
            life = Life(scene, play)
            await life.step(exact=True)
            before = (await life.twin("cpu-1"))["spec"]
            await life.person.edit(NODES, "cpu-1", {"spec": {"unschedulable": True}})
            states = await life.step()
            assert states == {"gpu-1": "performance", "cpu-2": "performance", "cpu-3": "eco"}
            assert (await life.twin("cpu-1"))["spec"] == before
            labels = (await life.person.all(NODES))["cpu-1"]["metadata"]["labels"]
            assert labels["joulie.io/power-profile"] == "performance"
            assert [line.split(":")[0] for line in await life.news()] == ["cpu-2 PowerPerformance"]

    play_out(ground, scenario)


def test_what_people_delete_or_change_by_hand_is_put_right(ground: Ground) -> None:
    async def scenario(scene: Scene) -> None:
        await _begin(scene)
        async with scene.operator() as play:
            life = Life(scene, play)
            await life.step(exact=True)

            await life.person.remove(NODE_TWINS, "cpu-1")
            await life.step()
            assert scene.link.writes == ["create nodetwins cpu-1", "patch nodetwins/status cpu-1"]

            await life.person.label("cpu-2", power_profile="performance")
            await life.step()
            assert scene.link.writes == ["patch nodes cpu-2"]

            await life.person.edit(NODE_TWINS, "cpu-3", {"spec": {"cpu": {"packagePowerCapPctOfMax": 5}}})
            await life.step()
            assert scene.link.writes == ["patch nodetwins/status cpu-3", "patch nodetwins cpu-3"]

            await life.person.remove(NODES, "cpu-3")
            states = await life.step()
            assert set(states) == {"gpu-1", "cpu-1", "cpu-2"}
            assert life.writes("cpu-3") == ["delete nodetwins"]
            assert await life.news() == []

    play_out(ground, scenario)


def test_a_restart_with_another_policy_takes_over_what_it_finds(ground: Ground) -> None:
    async def scenario(scene: Scene) -> None:
        await _begin(scene)
        for number in range(3):
            await scene.person.put(PODS, pod(f"waiting-{number}", performance=True))
        async with scene.operator() as play:
            await Life(scene, play).step(exact=True)
        queue = {"POLICY_TYPE": "queue_aware_v1", "QUEUE_HP_BASE_FRAC": "0", "QUEUE_PERF_PER_HP_NODE": "1"}
        async with scene.operator(queue) as play:
            life = Life(scene, play)
            states = await life.step()
            assert sorted(states.values()) == ["eco", "performance", "performance", "performance"]
            policies = {twin["spec"]["policy"]["name"] for twin in (await life.person.all(NODE_TWINS)).values()}
            assert policies == {"queue_aware_v1"}
            assert [line.split(":")[0] for line in await life.news()] == ["cpu-2 PowerPerformance"]
            await life.step()
            assert scene.link.writes == []

    play_out(ground, scenario)


def test_what_the_agent_wrote_stays_also_when_it_comes_between_two_writes(ground: Ground) -> None:
    async def scenario(scene: Scene) -> None:
        await _begin(scene)
        async with scene.operator() as play:
            life = Life(scene, play)

            async def agent(call: str) -> None:
                if call == "patch nodetwins/status cpu-2":
                    status = {"status": {"controlStatus": CONTROL_STATUS}}
                    await life.person.edit(NODE_TWINS, "cpu-2", status, status=True)

            scene.link.before = agent
            await life.step(exact=True)
            assert life.writes("cpu-2") == FIRST_CONTACT
            scene.link.before = None
            await life.person.put(PODS, pod("training", "cpu-2", performance=True))
            await life.step()
            await life.step(after_s=600)  # a refresh
            assert life.writes("cpu-2") == ["patch nodetwins/status"]
            assert (await life.twin("cpu-2"))["status"]["controlStatus"] == CONTROL_STATUS

    play_out(ground, scenario)


def test_a_cap_that_the_agent_cannot_enforce_counts_as_none_and_its_word_stays(ground: Ground) -> None:
    async def scenario(scene: Scene) -> None:
        await _begin(scene)
        async with scene.operator() as play:
            life = Life(scene, play)
            await life.step(exact=True)
            blocked: dict[str, Any] = {"cpu": {"backend": "rapl", "result": "blocked", "message": "locked"}}
            await life.person.edit(NODE_TWINS, "cpu-2", {"status": {"controlStatus": blocked}}, status=True)
            await life.step()
            status = (await life.twin("cpu-2"))["status"]
            assert status["effectiveCapState"] == {"cpuPct": 100}
            assert status["controlStatus"] == blocked

    play_out(ground, scenario)

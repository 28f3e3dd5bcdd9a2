from __future__ import annotations

import asyncio
import json
import math

import aiohttp
import pytest

from joulie.simulator.control import DVFS, RAPL
from tests.simulator.grounds import START_S, Client, Clock, play, pod, simulation


@pytest.mark.parametrize("how", ["blocked", "error"])
def test_a_node_that_blocks_control_says_so_and_changes_nothing(how: str) -> None:
    world = simulation()

    async def story(client: Client) -> None:
        assert (await client.fault("cpu-1", fault="blocked", how=how)).status == 200
        answer = await client.control("cpu-1", RAPL, capWatts=300)
        assert (answer.status, answer.body["result"]) == (200, how)
        assert answer.body["message"]
        assert answer.body["state"]["cpu"]["capWatts"] is None
        assert (await client.control("gpu-1", RAPL, capWatts=300)).body["result"] == "applied"  # the others are well

    play(world, story)


def test_a_write_can_fail_silently() -> None:
    async def story(client: Client) -> None:
        await client.fault("cpu-1", fault="blocked", how="silent")
        assert (await client.control("cpu-1", RAPL, capWatts=300)).body["result"] == "applied"
        assert (await client.get("/telemetry/cpu-1")).body["cpu"]["capWatts"] is None

    play(simulation(), story)


def test_one_action_can_be_blocked_while_another_works() -> None:
    async def story(client: Client) -> None:
        await client.fault("cpu-1", fault="blocked", actions=[RAPL])
        assert (await client.control("cpu-1", RAPL, capWatts=300)).body["result"] == "blocked"
        assert (await client.control("cpu-1", DVFS, throttlePct=20)).body["result"] == "applied"

    play(simulation(), story)


def _powers(told: dict[str, object]) -> list[float]:
    text = json.dumps(told)
    found: list[float] = []

    def collect(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found.extend(float(value) for key, value in pairs if "PowerWatts" in key and isinstance(value, int | float))
        return dict(pairs)

    json.loads(text, object_pairs_hook=collect)
    return found


def test_a_lying_node_lies_about_every_power_and_about_nothing_else() -> None:
    world = simulation()
    world.put_pod("team/a", pod("a", "gpu-1", 64, 2))
    world.step(1.0)

    async def story(client: Client) -> None:
        await client.control("gpu-1", RAPL, capWatts=400)
        truth = (await client.get("/telemetry/gpu-1")).body
        await client.fault("gpu-1", fault="lying", how="factor", factor=10)
        lie = (await client.get("/telemetry/gpu-1")).body
        assert _powers(lie) == pytest.approx([10 * watts for watts in _powers(truth)])
        assert lie["cpu"]["capWatts"] == truth["cpu"]["capWatts"]
        assert lie["cpu"]["temperatureC"] == truth["cpu"]["temperatureC"]
        await client.fault("gpu-1", fault="lying", how="nan")
        lie = (await client.get("/telemetry/gpu-1")).body
        assert math.isnan(lie["packagePowerWatts"])
        assert math.isnan(lie["gpu"]["powerWattsTotal"])
        await client.fault("gpu-1", fault="lying", how="negative")
        assert (await client.get("/telemetry/gpu-1")).body["packagePowerWatts"] == -truth["packagePowerWatts"]
        await client.fault("gpu-1", fault="none")
        assert (await client.get("/telemetry/gpu-1")).body == truth
        metrics = (await client.get("/metrics")).text
        assert "NaN" not in metrics

    play(world, story)


def test_a_frozen_sensor_repeats_itself_time_stamp_included() -> None:
    clock = Clock()
    world = simulation(clock=clock)

    async def story(client: Client) -> None:
        world.step(1.0)
        await client.fault("cpu-1", fault="lying", how="frozen")
        first = (await client.get("/telemetry/cpu-1")).body
        world.put_pod("team/a", pod("a", "cpu-1", 192))
        clock.now_s += 60
        world.step(60.0)
        assert (await client.get("/telemetry/cpu-1")).body == first
        await client.fault("cpu-1", fault="none")
        assert (await client.get("/telemetry/cpu-1")).body["packagePowerWatts"] > first["packagePowerWatts"]

    play(world, story)


def test_a_slow_node_answers_late_and_holds_up_no_other() -> None:
    async def story(client: Client) -> None:
        await client.fault("cpu-1", fault="slow", delaySeconds=30)
        slow = asyncio.create_task(client.get("/telemetry/cpu-1"))
        for _ in range(20):
            assert (await client.get("/telemetry/gpu-1")).status == 200
        assert not slow.done()
        slow.cancel()
        await client.fault("cpu-1", fault="slow", delaySeconds=0.01)
        assert (await client.get("/telemetry/cpu-1")).status == 200

    play(simulation(), story)


def test_a_node_that_is_gone_closes_the_connection_or_answers_503() -> None:
    world = simulation()

    async def story(client: Client) -> None:
        await client.fault("cpu-1", fault="gone")
        with pytest.raises(aiohttp.ClientError):
            await client.get("/telemetry/cpu-1")
        with pytest.raises(aiohttp.ClientError):
            await client.control("cpu-1", RAPL, capWatts=300)
        await client.fault("cpu-1", fault="gone", how="503")
        assert (await client.get("/state/cpu-1")).status == 503
        assert (await client.get("/telemetry/gpu-1")).status == 200
        await client.fault("cpu-1", fault="none")
        assert (await client.get("/state/cpu-1")).body["cpu"]["capWatts"] is None

    play(world, story)


def test_a_reboot_loses_all_limits() -> None:
    world = simulation()

    async def story(client: Client) -> None:
        await client.control("gpu-1", RAPL, capWatts=300)
        await client.control("gpu-1", DVFS, throttlePct=50)
        await client.control("gpu-1", "gpu.set_power_cap_watts", capWattsPerGpu=400)
        await client.fault("gpu-1", fault="reboot")
        state = (await client.get("/state/gpu-1")).body
        assert (state["cpu"]["capWatts"], state["cpu"]["throttlePct"]) == (None, 0)
        assert state["gpu"]["capWattsPerGpuTarget"] is None
        assert state["faults"] == []

    play(world, story)


def test_faults_are_listed_several_at_once_and_end_by_themselves() -> None:
    clock = Clock()
    world = simulation(clock=clock)

    async def story(client: Client) -> None:
        await client.fault("cpu-1", fault="blocked", forSeconds=30)
        await client.fault("cpu-1", fault="lying", how="nan")
        listed = (await client.fault("gpu-1", fault="slow", delaySeconds=1)).body
        assert listed == (await client.get("/debug/faults")).body
        assert [(each["node"], each["fault"]) for each in listed] == [
            ("cpu-1", "blocked"),
            ("cpu-1", "lying"),
            ("gpu-1", "slow"),
        ]
        assert [each["fault"] for each in (await client.get("/state/cpu-1")).body["faults"]] == ["blocked", "lying"]
        clock.now_s = START_S + 31
        assert (await client.control("cpu-1", RAPL, capWatts=300)).body["result"] == "applied"
        assert len((await client.get("/debug/faults")).body) == 2

    play(world, story)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"x", "JSON"),
        ({}, "fault"),
        ({"fault": "tired"}, "tired"),
        ({"fault": "lying", "how": "blocked"}, "'blocked' is none of factor, nan, negative, frozen"),
        ({"fault": "slow", "how": "very"}, "leave it out"),
        ({"fault": "slow", "delaySeconds": -1}, "delaySeconds"),
        ({"fault": "blocked", "actions": ["x"]}, "'x' is none of"),
        ({"fault": "blocked", "unknown": 1}, "unknown"),
        ({"fault": "blocked", "forSeconds": 0}, "forSeconds"),
    ],
)
def test_a_fault_that_is_none_is_refused_in_one_line(body: object, named: str) -> None:
    async def story(client: Client) -> None:
        answer = await client.post("/debug/faults/cpu-1", body)
        assert answer.status == 400
        assert named in answer.body["error"]
        assert "\n" not in answer.body["error"]
        assert (await client.get("/debug/faults")).body == []
        assert (await client.fault("nobody", fault="blocked")).status == 404

    play(simulation(), story)

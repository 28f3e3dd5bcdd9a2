from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.simulator.control import ACTIONS, DVFS, GPU, RAPL, Command, decode_command
from tests.simulator.grounds import Client, node, play, pod, simulation


def test_a_cpu_cap_is_accepted_at_once_settles_and_lowers_power() -> None:
    world = simulation()
    world.put_pod("team/a", pod("a", "cpu-1", 192, performance=True))
    world.step(5.0)
    before_w = float(world.fleet.cpus.power_w[world.index["cpu-1"]])

    async def story(client: Client) -> None:
        answer = await client.control("cpu-1", RAPL, capWatts=400)
        assert answer.status == 200
        assert answer.body["result"] == "applied"
        assert answer.body["state"]["cpu"]["capWatts"] == 400
        assert answer.body["state"]["cpu"]["capWattsApplied"] == 800  # not yet
        for _ in range(5):
            world.step(1.0)
        told = (await client.get("/telemetry/cpu-1")).body
        assert told["cpu"]["capWatts"] == pytest.approx(400)
        assert told["cpu"]["capWattsApplied"] == pytest.approx(400, abs=0.01)
        assert told["packagePowerWatts"] == pytest.approx(400, abs=0.1)
        assert told["cpu"]["freqScale"] < 1

    assert before_w > 600
    play(world, story)


def test_a_throttle_lowers_frequency_and_null_or_zero_takes_it_away() -> None:
    world = simulation()

    async def story(client: Client) -> None:
        for restored in (None, 0):
            assert (await client.control("cpu-1", DVFS, throttlePct=50)).body["state"]["cpu"]["throttlePct"] == 50
            world.step(10.0)
            world.step(1.0)
            assert (await client.get("/telemetry/cpu-1")).body["cpu"]["freqScale"] == pytest.approx(
                1 - 0.5 * (1 - 1.5 / 3.7), abs=1e-3
            )
            answer = await client.control("cpu-1", DVFS, throttlePct=restored)
            assert answer.body["state"]["cpu"]["throttlePct"] == 0
            world.step(10.0)
            world.step(1.0)
            assert (await client.get("/telemetry/cpu-1")).body["cpu"]["freqScale"] == 1

    play(world, story)


@pytest.mark.parametrize("restored", [None, 0])
def test_null_or_zero_takes_a_cap_away_and_the_answer_says_that_there_is_none(restored: int | None) -> None:
    world = simulation()

    async def story(client: Client) -> None:
        await client.control("gpu-1", RAPL, capWatts=400)
        await client.control("gpu-1", GPU, capWattsPerGpu=400)
        world.step(10.0)
        told = (await client.get("/telemetry/gpu-1")).body
        assert (told["cpu"]["capWatts"], told["gpu"]["capWattsPerGpuTarget"]) == (400, 400)
        assert told["gpu"]["capWattsPerGpuApplied"] == pytest.approx(400)
        await client.control("gpu-1", RAPL, capWatts=restored)
        answer = await client.control("gpu-1", GPU, capWattsPerGpu=restored)
        assert answer.body["message"] == "restored"
        world.step(10.0)
        told = (await client.get("/telemetry/gpu-1")).body
        assert told["cpu"]["capWatts"] is told["gpu"]["capWattsPerGpuTarget"] is None
        assert told["cpu"]["capWattsApplied"] == pytest.approx(800)
        assert told["gpu"]["capWattsPerGpuApplied"] == pytest.approx(700)

    play(world, story)


def test_a_cap_at_the_maximum_is_a_cap() -> None:
    world = simulation()

    async def story(client: Client) -> None:
        await client.control("cpu-1", RAPL, capWatts=800)
        assert (await client.get("/telemetry/cpu-1")).body["cpu"]["capWatts"] == 800

    play(world, story)


def test_limits_are_moved_into_the_hardwares_range_and_the_answer_says_so() -> None:
    world = simulation()

    async def story(client: Client) -> None:
        for action, field, asked, taken in (
            (RAPL, "capWatts", 1e-3, 294),
            (RAPL, "capWatts", 1e9, 800),
            (GPU, "capWattsPerGpu", 1, 280),
            (GPU, "capWattsPerGpu", 99_999, 700),
            (DVFS, "throttlePct", 150, 100),
        ):
            answer = await client.control("gpu-1", action, **{field: asked})
            assert answer.body["result"] == "applied"
            assert "nearest in range" in answer.body["message"]
            part = answer.body["state"]["gpu" if action == GPU else "cpu"]
            assert part["capWattsPerGpuTarget" if action == GPU else field] == taken

    play(world, story)


def test_a_gpu_cap_on_a_node_without_a_gpu_is_blocked_with_the_reason() -> None:
    async def story(client: Client) -> None:
        answer = await client.control("cpu-1", GPU, capWattsPerGpu=300)
        assert (answer.status, answer.body["result"]) == (200, "blocked")
        assert answer.body["message"] == "the node has no GPU"

    play(simulation(), story)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"", "truncated"),
        (b"nonsense", "JSON"),
        (b"[1]", "object"),
        (b"\xff\xfe", ""),
        ({}, "action"),
        ({"action": "reboot"}, "'reboot' is none of"),
        ({"action": RAPL}, "capWatts: missing"),
        ({"action": RAPL, "throttlePct": 3}, "capWatts: missing"),
        ({"action": RAPL, "capWatts": "300"}, "capWatts"),
        ({"action": RAPL, "capWatts": -5}, "capWatts: -5 is out of range"),
        ({"action": GPU, "capWattsPerGpu": -1}, "capWattsPerGpu"),
        ({"action": DVFS, "throttlePct": -1}, "throttlePct"),
        (b'{"action": "rapl.set_power_cap_watts", "capWatts": NaN}', "JSON"),
        (b'{"action": "rapl.set_power_cap_watts", "capWatts": 1e999}', ""),
        ({"action": RAPL, "capWatts": 300, "node": "cpu-2"}, "node: 'cpu-2'"),
        (b"[" * 5_000, ""),
    ],
)
def test_a_malformed_command_is_refused_in_one_line_and_changes_nothing(body: object, named: str) -> None:
    world = simulation()

    async def story(client: Client) -> None:
        before = (await client.get("/state/cpu-1")).body
        answer = await client.post("/control/cpu-1", body)
        assert answer.status == 400
        assert answer.body["result"] == "error"
        assert named in answer.body["message"]
        assert "\n" not in answer.body["message"]
        assert (await client.get("/state/cpu-1")).body == before

    play(world, story)


def test_what_is_too_large_unknown_or_asked_the_wrong_way_is_refused() -> None:
    async def story(client: Client) -> None:
        assert (await client.post("/control/cpu-1", b" " * 100_000)).status == 413
        for path in ("/telemetry/nobody", "/state/nobody"):
            answer = await client.get(path)
            assert answer.status == 404
            assert answer.body == {"error": "node 'nobody' is not simulated"}
        assert (await client.control("nobody", RAPL, capWatts=300)).status == 404
        assert (await client.get("/control/cpu-1")).status == 405
        assert (await client.get("/nothing")).status == 404

    play(simulation(), story)


def _decoded(body: bytes) -> tuple[Command | None, str]:
    try:
        return decode_command(body, "n"), ""
    except ValueError as error:
        return None, str(error)


numbers = st.one_of(st.none(), st.floats(), st.integers(), st.text(max_size=3))


@given(st.sampled_from([*ACTIONS, "", "x"]), numbers, numbers, numbers)
def test_any_json_is_either_a_command_within_reason_or_a_one_line_error(
    action: str, cap: object, throttle: object, gpu: object
) -> None:
    body = json.dumps({"action": action, "capWatts": cap, "throttlePct": throttle, "capWattsPerGpu": gpu}).encode()
    world = simulation(node("n", 2))
    command, fault = _decoded(body)
    if command is None:
        assert fault
        assert "\n" not in fault
        return
    assert command.value is None or (math.isfinite(command.value) and command.value > 0)
    assert world.command("n", command).result == "applied"
    world.step(1.0)
    cpus, gpus = world.fleet.cpus, world.fleet.gpus
    assert cpus.min_w[0] <= cpus.cap_target_w[0] <= cpus.cap_max_w[0]
    assert (gpus.min_w <= gpus.cap_target_w).all()
    assert (gpus.cap_target_w <= gpus.max_w).all()
    assert 0 <= cpus.throttle_target_pct[0] <= 100

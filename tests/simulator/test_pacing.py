from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.simulator.process import Pacer
from tests.simulator.grounds import Client, Clock, asking, run, simulation


@given(st.lists(st.floats(0.0, 100.0), max_size=5), st.sampled_from(["1", "60", "0.5"]))
def test_simulated_time_keeps_up_with_the_clock_however_unevenly_it_is_called(gaps: list[float], speed: str) -> None:
    clock = Clock(0.0)
    world = simulation(SIM_SPEED=speed)
    pacer = Pacer(world, clock)
    for gap_s in gaps:
        clock.now_s += gap_s
        pacer.catch_up()
        assert world.elapsed_s <= clock.now_s * float(speed) + 1e-6
        assert pacer.behind_s < 1.0 + 1e-6
        assert pacer.sick() is None


def test_a_long_gap_is_closed_in_a_bounded_number_of_steps() -> None:
    clock = Clock(0.0)
    world = simulation()
    pacer = Pacer(world, clock)
    clock.now_s = 86_400.0
    assert pacer.sick() == "86400 s behind the clock"
    pacer.catch_up()
    assert world.elapsed_s == pytest.approx(86_400.0)
    assert world.steps <= 21
    assert pacer.sick() is None


def test_a_served_simulation_steps_by_itself_as_fast_as_it_is_told() -> None:
    async def main() -> None:
        world = simulation(SIM_SPEED="200", SIM_STEP="1s")
        async with asking(world, paced=True) as client:
            await _stepped(client, 20)
            assert (await client.get("/healthz")).text == "ok\n"
            told = (await client.get("/debug/energy")).body
            assert told["elapsedSeconds"] >= 20
            assert told["itJoules"] > 0

    run(main())


async def _stepped(client: Client, seconds: float) -> None:
    import asyncio

    async with asyncio.timeout(30):
        while (await client.get("/debug/energy")).body["elapsedSeconds"] < seconds:
            await asyncio.sleep(0.02)

"""The DVFS loop against a simulated CPU: it ends inside its margins and acts a few times an hour."""

from __future__ import annotations

from random import Random

import pytest

from joulie.control.dvfs import DvfsState, Observation, step
from joulie.settings import DvfsSettings

TICK_S = 20.0
MAX_W = 400.0
SETTINGS = DvfsSettings()


class Cpu:
    """Full load; power falls with throttle, with a little noise and now and then a reading that is nonsense."""

    def __init__(self, seed: int, noise_w: float, watts_per_pct: float) -> None:
        self.random = Random(seed)
        self.noise_w = noise_w
        self.watts_per_pct = watts_per_pct

    def true_power_w(self, throttle_pct: float) -> float:
        return MAX_W - self.watts_per_pct * throttle_pct

    def reading_w(self, throttle_pct: float) -> float | None:
        if self.random.random() < 0.01:
            return self.random.choice([None, 0.0, 1e6])
        return max(1.0, self.true_power_w(throttle_pct) + self.random.gauss(0.0, self.noise_w))


def hour(cpu: Cpu, state: DvfsState, start_s: float, cap_w: float) -> tuple[DvfsState, int]:
    actions = 0
    for tick in range(int(3600 / TICK_S)):
        seen = Observation(start_s + tick * TICK_S, cpu.reading_w(state.throttle_pct), cap_w, max_w=MAX_W)
        state, commands = step(state, seen, SETTINGS)
        actions += len(commands)
    return state, actions


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("watts_per_pct", [1.5, 2.5, 3.3])
@pytest.mark.parametrize("cap_w", [255.0, 260.0, 300.0])  # at 255 W no multiple of the full step fits the margins
def test_it_settles_inside_its_margins_with_few_actions_an_hour(seed: int, watts_per_pct: float, cap_w: float) -> None:
    cpu = Cpu(seed, noise_w=4.0, watts_per_pct=watts_per_pct)
    state, first = hour(cpu, DvfsState(), 0.0, cap_w)
    state, second = hour(cpu, state, 3600.0, cap_w)
    settled_w = cpu.true_power_w(state.throttle_pct)
    assert cap_w - SETTINGS.low_margin_w <= settled_w <= cap_w + SETTINGS.high_margin_w
    assert first <= 12
    assert second <= 2


def test_a_lower_cap_is_followed_and_a_higher_one_released() -> None:
    cpu = Cpu(1, noise_w=3.0, watts_per_pct=2.5)
    state, _ = hour(cpu, DvfsState(), 0.0, 320.0)
    state, _ = hour(cpu, state, 3600.0, 220.0)
    assert cpu.true_power_w(state.throttle_pct) == pytest.approx(220, abs=20)
    state, _ = hour(cpu, state, 7200.0, 500.0)
    assert state.throttle_pct == 0


def test_a_cap_that_cannot_be_reached_ends_at_full_throttle_and_stays_quiet() -> None:
    cpu = Cpu(2, noise_w=3.0, watts_per_pct=1.0)
    state, _ = hour(cpu, DvfsState(), 0.0, 100.0)
    state, second = hour(cpu, state, 3600.0, 100.0)
    assert (state.throttle_pct, second) == (100, 0)

"""Holding a cap by frequency, one tick at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from joulie.control.dvfs import DvfsState, Observation, SetThrottle, frequency_limit_khz, step
from joulie.settings import DvfsSettings

DEFAULTS = DvfsSettings()
# Everything at once: no smoothing, no counting, no waiting.
EAGER = DvfsSettings(ema_alpha=1.0, trip_count=1, cooldown_s=0.0)


def run(
    powers: Iterable[float | None],
    settings: DvfsSettings = EAGER,
    state: DvfsState | None = None,
    cap_w: float = 200.0,
    max_w: float | None = 400.0,
    start_s: float = 0.0,
) -> tuple[DvfsState, list[SetThrottle]]:
    """Ticks of 20 s at one cap; the commands of all of them."""
    state = state or DvfsState()
    commands: list[SetThrottle] = []
    for tick, power_w in enumerate(powers):
        state, new = step(state, Observation(start_s + 20.0 * tick, power_w, cap_w, max_w=max_w), settings)
        commands += new
    return state, commands


class TestMargins:
    @pytest.mark.parametrize(
        ("power_w", "action"),
        [(211, "throttle_up"), (210, None), (200, None), (185, None), (184, "throttle_down")],
    )
    def test_only_beyond_a_margin_something_happens(self, power_w: float, action: str | None) -> None:
        _, commands = run([power_w], state=DvfsState(throttle_pct=50.0))
        assert [command.action for command in commands] == ([action] if action else [])

    @pytest.mark.parametrize(("throttle_pct", "power_w"), [(100.0, 390), (0.0, 10)])
    def test_at_the_end_of_the_range_nothing_more_is_commanded(self, throttle_pct: float, power_w: float) -> None:
        state, commands = run([power_w] * 5, state=DvfsState(throttle_pct=throttle_pct))
        assert commands == []
        assert state.throttle_pct == throttle_pct

    def test_a_step_stops_at_the_end_of_the_range(self) -> None:
        _, commands = run([390], state=DvfsState(throttle_pct=97.0))
        assert commands[0].throttle_pct == 100
        _, commands = run([10], state=DvfsState(throttle_pct=3.0))
        assert commands[0].throttle_pct == 0

    def test_a_command_says_why(self) -> None:
        _, [command] = run([300])
        assert command == SetThrottle(10, "throttle_up", "300 W on average is above the cap of 200 W and its margin")


class TestSmoothing:
    def test_the_mean_is_fed_with_the_median_of_the_last_three(self) -> None:
        settings = DvfsSettings(ema_alpha=0.3, trip_count=99)
        state, _ = run([200], settings)
        assert state.ema_w == 200
        state, _ = run([200, 260], settings)  # the median of two is their mean
        assert state.ema_w == pytest.approx(0.3 * 230 + 0.7 * 200)
        state, _ = run([200, 260, 390], settings)
        assert state.ema_w == pytest.approx(0.3 * 260 + 0.7 * 209)
        state, _ = run([200, 260, 390, 210], settings)
        assert state.ema_w == pytest.approx(0.3 * 260 + 0.7 * 224.3)
        assert state.readings_w == (260, 390, 210)

    def test_one_spike_moves_nothing(self) -> None:
        _, commands = run([200, 200, 399, 200, 200], EAGER)
        assert commands == []

    def test_after_an_action_counters_mean_and_median_start_anew(self) -> None:
        state, commands = run([300, 300], DvfsSettings(ema_alpha=1.0))
        assert len(commands) == 1
        assert (state.above, state.below, state.ema_w, state.readings_w) == (0, 0, None, ())


class TestPatience:
    def test_it_acts_when_the_count_is_reached_and_not_before(self) -> None:
        settings = DvfsSettings(ema_alpha=1.0, trip_count=3, cooldown_s=0.0)
        assert [len(run([300] * ticks, settings)[1]) for ticks in range(1, 7)] == [0, 0, 1, 1, 1, 2]

    @pytest.mark.parametrize("between", [200, 100])
    def test_the_count_is_of_consecutive_means(self, between: float) -> None:
        settings = DvfsSettings(ema_alpha=1.0, trip_count=2, cooldown_s=0.0)
        state, _ = step(DvfsState(throttle_pct=50, cap_w=200.0, above=1), Observation(0, between, 200.0), settings)
        assert state.above == 0

    def test_between_two_actions_the_cooldown_passes(self) -> None:
        settings = DvfsSettings(ema_alpha=1.0, trip_count=1, cooldown_s=60.0)
        times = []
        state = DvfsState()
        for tick in range(10):
            state, commands = step(state, Observation(20.0 * tick, 390, 200.0), settings)
            times += [20.0 * tick] * len(commands)
        assert times == [0, 60, 120, 180]


class TestStep:
    """Each list: powers in, throttle after each action out."""

    def throttles(self, powers: list[float], start_pct: float = 50.0) -> list[float]:
        return [command.throttle_pct for command in run(powers, state=DvfsState(throttle_pct=start_pct))[1]]

    def test_the_first_is_full_and_repetition_never_exceeds_it(self) -> None:
        assert self.throttles([390, 390, 390]) == [60, 70, 80]

    def test_it_halves_when_the_direction_turns(self) -> None:
        assert self.throttles([390, 10, 390, 10]) == [60, 55, 57.5, 56.25]

    def test_it_grows_by_half_when_the_direction_repeats(self) -> None:
        assert self.throttles([390, 10, 390, 390, 390, 390]) == [60, 55, 57.5, 61.25, 66.875, 75.3125]

    def test_it_grows_back_to_the_full_step_at_most(self) -> None:
        steps = self.throttles([390, 10, *[390] * 6], start_pct=0.0)
        assert steps[-1] - steps[-2] == pytest.approx(10)

    def test_it_is_never_below_one_percent(self) -> None:
        throttles = self.throttles([390, 10] * 6)
        assert abs(throttles[-1] - throttles[-2]) == pytest.approx(1)

    def test_a_new_cap_starts_with_a_full_step(self) -> None:
        state, _ = run([390, 10, 390], state=DvfsState(throttle_pct=50))
        assert state.step_pct == 2.5
        _, [command] = run([390], state=state, cap_w=150.0, start_s=100.0)
        assert command.throttle_pct == pytest.approx(57.5 + 10)

    def test_a_new_cap_forgets_the_count_but_not_the_cooldown(self) -> None:
        settings = DvfsSettings(ema_alpha=1.0, trip_count=2, cooldown_s=1000.0)
        state, _ = run([300], settings)
        assert state.above == 1
        state, commands = run([300], settings, state, cap_w=250.0, start_s=20.0)
        assert (state.above, commands) == (1, [])
        acted, _ = run([300, 300], settings)
        _, commands = run([300] * 5, settings, acted, cap_w=250.0, start_s=40.0)
        assert commands == []


class TestBlind:
    @pytest.mark.parametrize("unbelievable", [None, 0.0, -5.0, math.nan, math.inf, 480.1])
    def test_it_holds_for_three_ticks_and_then_takes_the_percent_path(self, unbelievable: float | None) -> None:
        held, commands = run([unbelievable] * 3, state=DvfsState(throttle_pct=30))
        assert (held.throttle_pct, commands) == (30, [])
        _, commands = run([unbelievable] * 6, state=DvfsState(throttle_pct=30))
        assert [(command.throttle_pct, command.action) for command in commands] == [(50, "open_loop")]
        assert commands[0].reason == "no believable power reading for 4 ticks"

    def test_1_2_times_the_maximum_is_still_believed_and_without_a_maximum_everything_finite(self) -> None:
        assert len(run([480.0])[1]) == 1
        assert len(run([1e9], max_w=None)[1]) == 1

    def test_one_reading_in_between_starts_the_count_again(self) -> None:
        _, commands = run([None, None, None, 200, None, None, None])
        assert commands == []

    def test_a_dropped_reading_moves_nothing(self) -> None:
        heard, _ = run([300], DvfsSettings(trip_count=5))
        state, _ = run([300, None, 0.0], DvfsSettings(trip_count=5))
        assert state == replace(heard, blind_ticks=2)

    def test_a_sensor_that_fails_every_other_time_still_holds_the_cap(self) -> None:
        _, commands = run([300, None] * 4, DvfsSettings(trip_count=2))
        assert commands[0].action == "throttle_up"

    def test_blindness_that_lasts_forgets_what_was_heard_before(self) -> None:
        state, _ = run([300, None, None, None, None], DvfsSettings(trip_count=5))
        assert (state.readings_w, state.ema_w, state.above) == ((), None, 0)

    def test_sight_returns_to_the_closed_loop_from_where_it_is(self) -> None:
        state, _ = run([None] * 4)
        assert state.throttle_pct == 50
        _, [command] = run([100], state=state, start_s=100.0)
        assert (command.action, command.throttle_pct) == ("throttle_down", 40)

    def test_with_neither_maximum_nor_percentage_it_holds(self) -> None:
        state, commands = run([None] * 9, state=DvfsState(throttle_pct=30), max_w=None)
        assert (state.throttle_pct, commands) == (30, [])


class TestPercentPath:
    @pytest.mark.parametrize(("cap_pct", "throttle_pct"), [(100, 0), (60, 40), (0, 100), (150, 0), (-5, 100)])
    def test_throttle_is_what_the_cap_leaves_of_100(self, cap_pct: float, throttle_pct: float) -> None:
        state, commands = step(DvfsState(throttle_pct=55), Observation(0, 300.0, None, cap_pct), DEFAULTS)
        assert commands == (SetThrottle(throttle_pct, "open_loop", "the cap is known in percent alone"),)
        assert state.throttle_pct == throttle_pct

    def test_nothing_is_commanded_twice(self) -> None:
        state, first = step(DvfsState(), Observation(0, None, None, 60), DEFAULTS)
        _, second = step(state, Observation(20, None, None, 60), DEFAULTS)
        assert (len(first), second) == (1, ())

    def test_without_any_cap_it_holds(self) -> None:
        assert step(DvfsState(throttle_pct=7), Observation(0, 300.0, None), DEFAULTS) == (DvfsState(throttle_pct=7), ())

    def test_the_stated_percentage_wins_over_one_computed_from_watts(self) -> None:
        blind = DvfsState(cap_w=200.0, blind_ticks=3)
        _, [command] = step(blind, Observation(0, None, 200.0, 70, 400.0), DEFAULTS)
        assert command.throttle_pct == 30

    def test_it_is_an_action_so_what_was_measured_before_is_forgotten(self) -> None:
        listening, _ = run([300.0, 300.0], DvfsSettings(trip_count=3))
        assert (listening.above, listening.ema_w) == (2, 300)
        opened, [command] = step(listening, Observation(40, 300.0, None, 60), DEFAULTS)
        assert command.throttle_pct == 40
        assert (opened.above, opened.below, opened.ema_w, opened.readings_w) == (0, 0, None, ())
        assert opened.acted_at_s == 40


class TestFrequencyLimit:
    @pytest.mark.parametrize(
        ("throttle_pct", "limit_khz"),
        [(0, 3_700_000), (50, 2_600_000), (100, 1_500_000), (-5, 3_700_000), (200, 1_500_000), (33.3, 2_967_400)],
    )
    def test_runs_from_what_was_found_to_the_floor(self, throttle_pct: float, limit_khz: int) -> None:
        assert frequency_limit_khz(throttle_pct, 3_700_000, 400_000, 400_000, DEFAULTS) == limit_khz

    @pytest.mark.parametrize(
        ("found", "scaling_min", "cpuinfo_min", "floor"),
        [
            pytest.param(3_000_000, 800_000, 400_000, 1_500_000, id="the setting"),
            pytest.param(3_000_000, 1_800_000, 400_000, 1_800_000, id="scaling_min_freq"),
            pytest.param(3_000_000, 800_000, 2_000_000, 2_000_000, id="cpuinfo_min_freq"),
            pytest.param(1_200_000, 800_000, 400_000, 1_200_000, id="never above what was found"),
        ],
    )
    def test_the_floor_is_never_crossed(self, found: int, scaling_min: int, cpuinfo_min: int, floor: int) -> None:
        assert frequency_limit_khz(100, found, scaling_min, cpuinfo_min, DEFAULTS) == floor

    def test_is_rounded_down_to_whole_kilohertz(self) -> None:
        assert frequency_limit_khz(50, 1_500_003, 0, 0, DvfsSettings(min_freq_khz=1_500_000)) == 1_500_001

    @given(st.floats(-10, 110), *[st.integers(1, 10_000_000)] * 3)
    def test_stays_between_floor_and_found(self, pct: float, found: int, scaling: int, cpuinfo: int) -> None:
        limit = frequency_limit_khz(pct, found, scaling, cpuinfo, DEFAULTS)
        assert min(found, max(1_500_000, scaling, cpuinfo)) <= limit <= found


POWERS = st.none() | st.floats(0.1, 500) | st.sampled_from([0.0, -3.0, math.nan, math.inf, 1e9])
TICKS = st.lists(
    st.tuples(
        st.floats(0.1, 60),
        POWERS,
        st.sampled_from([None, 100.0, 200.0, 300.0]),
        st.sampled_from([None, 25.0, 60.0, 100.0]),
        st.sampled_from([None, 400.0]),
    ),
    max_size=80,
)
LOOPS = st.builds(
    DvfsSettings,
    ema_alpha=st.floats(0.01, 1),
    high_margin_w=st.floats(0, 50),
    low_margin_w=st.floats(0, 50),
    step_pct=st.floats(1, 100),
    cooldown_s=st.sampled_from([0.0, 20.0, 60.0]),
    trip_count=st.integers(1, 4),
)


@given(TICKS, LOOPS)
def test_whatever_is_seen_throttle_stays_in_range_and_a_command_is_always_a_change(
    ticks: list[tuple[float, float | None, float | None, float | None, float | None]], settings: DvfsSettings
) -> None:
    state, now_s = DvfsState(), 0.0
    last_closed_s = -math.inf
    for wait_s, power_w, cap_w, cap_pct, max_w in ticks:
        now_s += wait_s
        before = state.throttle_pct
        state, commands = step(state, Observation(now_s, power_w, cap_w, cap_pct, max_w), settings)
        assert 0 <= state.throttle_pct <= 100
        assert len(commands) == (state.throttle_pct != before)
        for command in commands:
            assert command.throttle_pct == state.throttle_pct
            if command.action != "open_loop":
                assert abs(state.throttle_pct - before) <= settings.step_pct + 1e-9
                assert now_s - last_closed_s >= settings.cooldown_s
            last_closed_s = now_s


@given(st.floats(186, 209), st.integers(1, 40))
def test_inside_the_margins_nothing_is_ever_commanded(power_w: float, ticks: int) -> None:
    assert run([power_w] * ticks, state=DvfsState(throttle_pct=40))[1] == []

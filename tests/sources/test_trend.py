"""The rolling windows of node power."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.physics.power import power_trend_w_per_min
from joulie.sources.trend import TrendWindows
from tests.support.small_clusters import NOW


def feed(windows: TrendWindows, *samples: tuple[float, float], node: str = "a", source: str = "kepler") -> None:
    for at_s, power_w in samples:
        windows.record([node], [source], [NOW + at_s], [power_w])


def test_windows_start_empty_and_one_sample_is_no_trend() -> None:
    windows = TrendWindows(max_gap_s=120)
    assert windows.slopes_w_per_min(NOW) == {}
    feed(windows, (0, 300))
    assert windows.slopes_w_per_min(NOW) == {}


def test_a_steady_rise_is_its_slope_in_watts_a_minute() -> None:
    windows = TrendWindows(max_gap_s=120)
    feed(windows, (0, 300), (60, 310), (120, 320))
    assert windows.slopes_w_per_min(NOW + 120) == {"a": pytest.approx(10)}


def test_samples_older_than_five_minutes_no_longer_count() -> None:
    windows = TrendWindows(max_gap_s=120)
    feed(windows, (0, 0), (100, 500), (200, 500), (300, 500), (400, 500))
    assert windows.slopes_w_per_min(NOW + 400) == {}
    assert windows.slopes_w_per_min(NOW + 300)["a"] > 0


def test_a_switch_of_tier_is_not_a_trend() -> None:
    windows = TrendWindows(max_gap_s=120)
    feed(windows, (0, 700), (60, 700))
    feed(windows, (120, 300), source="static")
    assert windows.slopes_w_per_min(NOW + 120) == {}
    feed(windows, (180, 306), source="static")
    assert windows.slopes_w_per_min(NOW + 180) == {"a": pytest.approx(6)}
    feed(windows, (240, 800))
    assert windows.slopes_w_per_min(NOW + 240) == {}


@pytest.mark.parametrize("jump_s", [121, -121])
def test_a_gap_or_a_clock_that_was_set_back_starts_anew(jump_s: float) -> None:
    windows = TrendWindows(max_gap_s=120)
    feed(windows, (0, 300), (60, 310), (60 + jump_s, 900))
    assert windows.slopes_w_per_min(NOW + max(60, 60 + jump_s)) == {}


def test_a_reading_that_is_only_repeated_does_not_flatten_the_trend() -> None:
    windows = TrendWindows(max_gap_s=120)
    feed(windows, (0, 300), (60, 310), (60, 310), (60, 310))
    assert windows.slopes_w_per_min(NOW + 110) == {"a": pytest.approx(10)}


def test_nodes_come_and_go_and_one_that_returns_starts_anew() -> None:
    windows = TrendWindows(max_gap_s=120)
    both = ["kepler"] * 2
    windows.record(["a", "b"], both, [NOW, NOW], [100, 200])
    windows.record(["b", "c"], both, [NOW + 60, NOW + 60], [210, 50])
    assert len(windows) == 2
    windows.record(["a", "b"], both, [NOW + 120, NOW + 120], [999, 220])
    assert windows.slopes_w_per_min(NOW + 120) == {"b": pytest.approx(10)}


def test_rows_are_used_again() -> None:
    windows = TrendWindows(max_gap_s=120)
    for generation in range(50):
        nodes = [f"n{generation}-{i}" for i in range(100)]
        windows.record(nodes, ["static"] * 100, [NOW] * 100, [1.0] * 100)
    assert len(windows) == 100
    assert windows._times_s.shape[1] <= 200


@pytest.mark.parametrize("interval_s", [0.0, 1.0, 60.0, 300.0, 3600.0])
def test_a_flood_of_samples_still_spans_the_whole_window(interval_s: float) -> None:
    windows = TrendWindows(max_gap_s=120, interval_s=interval_s)
    feed(windows, *((second, 300 + second) for second in range(301)))
    assert windows.slopes_w_per_min(NOW + 300) == {"a": pytest.approx(60)}
    assert np.nanmin(windows._times_s) <= NOW + 300 / 8


@given(
    st.lists(
        st.lists(st.tuples(st.floats(6.0, 60.0), st.floats(0, 1e4)), max_size=12),
        min_size=1,
        max_size=5,
    )
)
def test_all_slopes_agree_with_the_one_definition(histories: list[list[tuple[float, float]]]) -> None:
    windows = TrendWindows(max_gap_s=120)
    nodes = [f"n{i}" for i in range(len(histories))]
    clocks = [NOW] * len(histories)
    taken: list[list[tuple[float, float]]] = [[] for _ in histories]
    for step in range(max(map(len, histories))):
        for i, history in enumerate(histories):
            if step < len(history):
                clocks[i] += history[step][0]
                taken[i].append((clocks[i], history[step][1]))
        watts = [samples[-1][1] if samples else 0.0 for samples in taken]
        windows.record(nodes, ["kepler"] * len(nodes), clocks, watts)
    now_s = max(clocks)
    found = windows.slopes_w_per_min(now_s)
    for node, samples in zip(nodes, taken, strict=True):
        if not samples:
            continue
        times, power = np.array([sample for sample in samples if sample[0] >= now_s - 300] or [(0.0, 0.0)]).T
        assert found.get(node, 0.0) == pytest.approx(power_trend_w_per_min(times, power), rel=1e-6, abs=1e-6)

"""Trends inside a run are those of the operator, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from joulie.lab.kernels.trend import Trends
from joulie.sources.trend import TrendWindows, Window


@pytest.mark.parametrize("nodes", [1, 2, 7, 200])
@pytest.mark.parametrize("interval_s", [10.0, 60.0, 400.0])
def test_a_run_finds_the_trends_that_the_operator_finds(nodes: int, interval_s: float) -> None:
    chance = np.random.default_rng([nodes, int(interval_s)])
    names, gap_s = [f"node-{number}" for number in range(nodes)], max(120.0, 2 * interval_s)
    live = TrendWindows(gap_s, interval_s=interval_s)
    ours = Trends(nodes, Window.of(gap_s, interval_s=interval_s))
    now_s, steep = 0.0, 0

    for _ in range(120):
        now_s += interval_s * float(chance.choice([1.0, 1.0, 1.0, 0.3, 5.0]))
        is_static = chance.random(nodes) < 0.1
        at_s = np.where(is_static, now_s, now_s - 15.0 * chance.random(nodes))
        watts = np.where(chance.random(nodes) < 0.02, np.nan, chance.normal(500.0, 200.0, nodes))
        live.record_arrays(names, is_static.astype(np.intp), at_s, watts)
        ours.record(is_static, at_s, watts)
        slopes = ours.slopes_w_per_min(now_s)
        np.testing.assert_array_equal(slopes, live.slopes(now_s))
        steep += int(np.count_nonzero(slopes))

    assert steep > 0

"""What `make bench` measures at 5,000 nodes, at a size that a test can afford."""

from __future__ import annotations

import pytest


@pytest.mark.slow
def test_a_simulator_keeps_real_time_for_little_and_answers_about_as_fast_as_a_bare_page() -> None:
    from bench.simulator_speed import MAX_SHARE_OF_A_CORE, MAX_TIMES_HEALTHZ, measure

    size = measure(500, steady_s=5.0, requests=200)
    assert size.core < MAX_SHARE_OF_A_CORE
    assert size.pace < 2.0
    assert size.telemetry_p99_s < MAX_TIMES_HEALTHZ * size.healthz_p99_s

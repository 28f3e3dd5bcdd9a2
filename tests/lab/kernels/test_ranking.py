"""The best node that is kept for each shape of pods is the one that a look at all nodes finds, at any moment."""

from __future__ import annotations

import numpy as np
import pytest

from joulie.lab.kernels.events import ASKED, FINISHED, advance
from joulie.lab.model.setup import (
    ClusterSetup,
    NodeGroup,
    PlantSetup,
    PolicySetup,
    RunSetup,
    TelemetrySetup,
    TraceSetup,
)
from joulie.lab.simulation.engine import SimulatedRun
from joulie.lab.traces.generator import generate
from tests.lab.kernels.ranking_kernels import first_difference

CLUSTER = ClusterSetup(
    [
        NodeGroup(7),
        NodeGroup(3, cpu="EPYC 9965"),
        NodeGroup(3, gpu="H100 SXM", gpus=8),
        NodeGroup(4, gpu="L40S", gpus=4),
    ],
    nodes_per_rack=4,
    racks_per_zone=2,
)


@pytest.mark.parametrize(
    ("scheduler", "policy", "sleep"),
    [
        ("joulie", "none", False),
        ("joulie", "static_partition", False),
        ("joulie", "queue_aware_v1", True),
        ("joulie", "rule_swap_v1", False),
        ("least", "static_partition", False),
        ("most", "none", True),
    ],
)
def test_what_is_kept_equals_a_full_scan_at_every_moment(scheduler: str, policy: str, sleep: bool) -> None:
    jobs = generate(TraceSetup(hours=3, load=0.9, duration_scale=0.3), 5, CLUSTER)
    setup = RunSetup(
        cluster=CLUSTER,
        scheduler=scheduler,
        policy=PolicySetup(policy),
        plant=PlantSetup(sleep=sleep, sleep_after_s=60.0),
        telemetry=TelemetrySetup(noise_pct=3.0),
    )
    simulation = SimulatedRun(setup, jobs, 5)
    world, looks, now_s = simulation.world, 0, 0.0
    chance = np.random.default_rng(7)
    while True:
        if now_s % 60.0 == 0.0:
            simulation.steering.sensors.take(world, now_s)
            simulation.steering.tick(now_s)
        now_s = float(min(now_s + chance.exponential(20.0), (now_s // 60.0 + 1) * 60.0))
        why = advance(world, now_s)
        assert why != ASKED
        assert first_difference(world) == -1, f"at {now_s} s"
        looks += 1
        if why == FINISHED:
            break
    assert looks > 500
    assert int(world.run["done"]) == len(jobs)
    if scheduler == "joulie":
        assert int(world.run["changes"]) > 2 * len(jobs)


def test_too_many_shapes_to_keep_are_ranked_by_full_scans_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = generate(TraceSetup(hours=2, load=0.8, duration_scale=0.3), 6, CLUSTER)
    setup = RunSetup(cluster=CLUSTER, policy=PolicySetup("static_partition"))
    kept = SimulatedRun(setup, jobs, 6).run()
    monkeypatch.setattr("joulie.lab.simulation.lanes.MAX_KEPT", 0)
    scanned = SimulatedRun(setup, jobs, 6).run()
    np.testing.assert_array_equal(kept.node, scanned.node)
    np.testing.assert_array_equal(kept.end_s, scanned.end_s)

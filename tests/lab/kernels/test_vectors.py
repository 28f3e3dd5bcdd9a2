"""Eight numbers at once, and records in whole lines of the cache."""

from __future__ import annotations

import numpy as np

from joulie.control.scoring import headroom_after, total_score, whole_points
from joulie.lab.kernels.records import NODE, POD
from joulie.lab.kernels.vectors import BYTES
from joulie.lab.kernels.world import LANES
from joulie.lab.model.setup import ClusterSetup, NodeGroup, RunSetup
from joulie.lab.simulation.engine import SimulatedRun
from joulie.physics.marginal import marginal_power_w, share
from tests.lab.kernels.line_kernels import score_line
from tests.lab.random_jobs import mixed


def test_eight_pods_get_the_points_that_each_would_get_alone() -> None:
    draw = np.random.default_rng(4)
    is_new = []
    for _ in range(200):
        cores, gpus = draw.uniform(0, 128, LANES), draw.integers(0, 9, LANES).astype(np.float64)
        node = (1 / 64, 1 / 8, draw.uniform(-50, 100), draw.uniform(0, 0.1), draw.uniform(-30, 60))
        inverse_cores, inverse_gpus, headroom, points_per_w, rest = node
        watts = marginal_power_w(share(cores, inverse_cores), share(gpus, inverse_gpus), 300.0, 5e3)  # type: ignore[arg-type]
        alone = whole_points(total_score(headroom_after(headroom, watts, points_per_w), rest), 100)  # type: ignore[arg-type]
        line = np.full(LANES, -1.0)
        is_new += [score_line(line, cores, gpus, node) for _ in range(2)]
        np.testing.assert_array_equal(line, alone)
    assert is_new == [True, False] * 200


def test_records_of_nodes_and_pods_are_whole_lines_from_the_first_on() -> None:
    world = SimulatedRun(RunSetup(cluster=ClusterSetup([NodeGroup(3)])), mixed(1, 20, 10.0), 1).world
    assert NODE.itemsize % (2 * BYTES) == BYTES, "an odd number of lines"
    assert POD.itemsize % BYTES == 0
    assert world.nodes.ctypes.data % BYTES == world.pods.ctypes.data % BYTES == 0
    firsts = ("warm_at_s", "free_mcores", "inverse_cores", "load", "cpu_plain_w", "cpu_idle_w", "hottest_w")
    assert [NODE.fields[name][1] for name in firsts] == [BYTES * line for line in range(len(firsts))]  # type: ignore[index]

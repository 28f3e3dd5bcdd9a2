"""Whole runs against what is known: calculations by hand, measured sweeps, their lower bound, energy that stays."""

from __future__ import annotations

import numpy as np
import pytest

from joulie.catalogue.lookup import Catalogue
from joulie.lab.analysis.capacity import idle_power, kinds
from joulie.lab.analysis.lower_bound import lower_bound
from joulie.lab.model.jobs import JobTable
from joulie.lab.model.outcome import Outcome
from joulie.lab.model.setup import ClusterSetup, NodeGroup, PlantSetup, PolicySetup, RunSetup, TraceSetup, WeatherSetup
from joulie.lab.simulation.cluster import lab_cluster
from joulie.lab.simulation.engine import simulate
from joulie.lab.traces.generator import generate
from tests.lab.pods import table
from tests.lab.simulation.measured import SWEEPS

pytestmark = pytest.mark.slow

STILL = WeatherSetup(mean_c=20.0, swing_c=0.0, noise_c=0.0)


def _one_job(cores: float, gpus: int, seconds: float) -> JobTable:
    """At full utilisation of its boards, or of its cores where it has none."""
    pod = {"cores": cores, "gpus": float(gpus), "cpu_utilisation": float(not gpus), "gpu_utilisation": 1.0}
    work = {"gpu_units": gpus * seconds} if gpus else {"cpu_units": cores * seconds}
    return table([pod | work])


def test_a_run_of_one_node_against_a_calculation_by_hand() -> None:
    """96 of 192 cores for an hour at 20 °C outside, on a node with an inlet of 24 °C and cooling for 1.1 × its maximum.

    IT: packages 720 W · 410 / 817 = 361.322 W, the rest 0.135 of it: 410.100 W, for 3600 s.
    Zone built for 1.1 · 817.2 W = 898.92 W. Flow 410.100 / 898.92 = 0.456215; fans 26.9676 W · 0.0949532 = 2.56066 W.
    Heat 412.661 W; return air 24 + 12 · 412.661 / 410.100 = 36.0749 °C; free 0.7 · 34.1750 · 16.0749 = 384.552 W.
    Chiller 28.109 W at ΔT = (20 − 35) / 2.778 = −5.39957: capacity 0.9448 + 0.307775 + 0.0540837 = 1.306659;
    power 2.333 − 2.580651 + 1.045078 = 0.797427; x = 28.109 / (1.306659 · 898.92) = 0.0239312;
    part load 0.0330 + 0.0163977 + 0.000161 = 0.0495590; 299.64 W · 1.306659 · 0.797427 · 0.0495590 = 15.4730 W.
    PUE = (410.100 + 2.56066 + 15.4730) / 410.100 = 1.04397.
    """
    setup = RunSetup(cluster=ClusterSetup([NodeGroup(1)]), scheduler="least", weather=STILL)
    counted = simulate(setup, _one_job(96.0, 0, 3600.0), 1).counted
    assert counted.makespan_s == pytest.approx(3600.0)
    assert counted.it_energy_j == pytest.approx(410.100 * 3600, rel=1e-5)
    assert counted.fan_energy_j == pytest.approx(2.56066 * 3600, rel=1e-4)
    assert counted.compressor_energy_j == pytest.approx(15.4730 * 3600, rel=1e-4)
    facility_j = counted.it_energy_j + counted.fan_energy_j + counted.compressor_energy_j
    assert facility_j / counted.it_energy_j == pytest.approx(1.04397, rel=1e-5)


def test_what_empty_nodes_take_until_they_sleep_is_what_a_longer_run_meters() -> None:
    """Three nodes: one works for an hour, one for half of it, one never. A job of a second five hours later shows."""
    plant = PlantSetup(sleep=True, sleep_after_s=2400.0)
    setup = RunSetup(cluster=ClusterSetup([NodeGroup(3)]), scheduler="least", weather=STILL, plant=plant, record_s=600)
    works = [{"cores": 192.0, "cpu_units": 192.0 * seconds, "cpu_utilisation": 0.5} for seconds in (3600.0, 1800.0)]
    late = {"cores": 1.0, "cpu_units": 1.0, "submit_s": 5 * 3600.0}
    short, long = simulate(setup, table(works), 1), simulate(setup, table([*works, late]), 1)
    assert short.awake_s == pytest.approx([2400.0, 600.0, 0.0], abs=plant.step_s)
    assert short.awake_s[2] == 0.0
    settled = idle_power(kinds(setup.cluster, Catalogue()), setup, short.awake_s)
    time_s = long.series["time_s"][long.series["time_s"] <= 5 * 3600.0]
    metered_j = float(np.sum(np.diff(time_s, prepend=0.0) * long.series["it_w"][: len(time_s)]))
    rest_s = time_s[-1] - short.counted.metered_s
    assert short.counted.it_energy_j + settled.settling_j + settled.all_w * rest_s == pytest.approx(metered_j, rel=1e-9)


def test_a_node_draws_its_published_specpower_watts_at_each_load() -> None:
    setup = RunSetup(cluster=ClusterSetup([NodeGroup(1)]), scheduler="least", weather=STILL)
    for tenths, published_w in enumerate((128, 257, 300, 340, 378, 410, 442, 498, 577, 697, 817)):
        pod = {"cores": 192.0, "cpu_units": 192.0 * 600, "cpu_utilisation": tenths / 10}
        counted = simulate(setup, table([pod]), 1).counted
        assert counted.it_energy_j / 600 == pytest.approx(published_w, rel=0.001), tenths


def test_runs_under_gpu_caps_slow_down_and_save_as_measured() -> None:
    """Boards without a sweep of their own follow the V100's. What boards take is what is above the rest of the node."""
    other_w = 720 * 128 / 817 * 1.135 + 8 * 0.5 * 630  # idle CPUs with their rest, and the rest of eight busy boards
    node = ClusterSetup([NodeGroup(1, gpu="H100 SXM", gpus=8)])
    done = {}
    for cap_pct in (100.0, 90.0, 80.0, 70.0, 60.0, 50.0):
        policy = PolicySetup("uniform", gpu_cap_pct=cap_pct)
        setup = RunSetup(cluster=node, scheduler="least", policy=policy, weather=STILL)
        counted = simulate(setup, _one_job(8.0, 8, 3000.0), 1).counted
        done[cap_pct] = counted.makespan_s, counted.it_energy_j - other_w * counted.metered_s
    assert done[100.0] == pytest.approx((3000.0, 8 * 630 * 3000.0), rel=1e-6)
    measured = [
        (100 * limit_w / top_w, slow, energy) for board, top_w, limit_w, slow, energy in SWEEPS if board == "V100"
    ]
    for cap_pct, slowdown, energy in measured:
        assert done[cap_pct][0] / 3000.0 == pytest.approx(slowdown, rel=0.1)
        assert done[cap_pct][1] / done[100.0][1] == pytest.approx(energy, rel=0.1)


POLICIES = ("none", "uniform", "static_partition", "queue_aware_v1", "rule_swap_v1")
GROUPS = [
    NodeGroup(2),
    NodeGroup(1, cpu="EPYC 9965"),
    NodeGroup(2, gpu="H100 SXM", gpus=4),
    NodeGroup(1, gpu="L40S", gpus=4),
]


def _checked(setup: RunSetup, seed: int, jobs: int = 150) -> Outcome:
    """A run of generated work that ended, lies above its bound and lost no energy."""
    work = generate(TraceSetup(jobs=jobs, hours=3.0), seed, setup.cluster)
    outcome, cluster = simulate(setup, work, seed), lab_cluster(setup.cluster)
    counted = outcome.counted
    assert np.all(np.isfinite(outcome.end_s))
    bound = lower_bound(setup, cluster.machines, cluster.core_speed, cluster.gpu_speed, work)
    assert bound.it_energy_j <= counted.it_energy_j
    assert bound.makespan_s <= counted.makespan_s * (1 + 1e-9)
    heat_j = counted.it_energy_j + counted.fan_energy_j
    assert counted.heat_removed_j + counted.heat_stored_j == pytest.approx(heat_j, rel=1e-9)
    return outcome


@pytest.mark.parametrize("seed", range(10))
def test_every_run_lies_above_its_bound_and_loses_no_energy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    caps = rng.uniform(40, 100, 2)
    setup = RunSetup(
        cluster=ClusterSetup(GROUPS, nodes_per_rack=2, racks_per_zone=1, cpu_work_on_gpu_nodes=seed % 4 == 3),
        scheduler=("joulie", "least", "most", "random")[seed % 4],
        policy=PolicySetup(POLICIES[seed % 5], cpu_cap_pct=float(caps[0]), gpu_cap_pct=float(caps[1])),
        weather=WeatherSetup(mean_c=float(rng.uniform(-5, 40)), noise_c=2.0),
        plant=PlantSetup(sleep=bool(seed % 2)),
    )
    assert bool(_checked(setup, seed).counted.wakes) <= setup.plant.sleep


@pytest.mark.parametrize("sleep", [False, True])
def test_a_run_with_far_too_little_cooling_throttles_its_jobs_and_lies_above_its_bound(sleep: bool) -> None:
    hot, enough = (
        RunSetup(
            cluster=ClusterSetup([NodeGroup(2), NodeGroup(2, gpu="H100 SXM", gpus=4)]),  # as fast wherever a job goes
            scheduler="most",
            weather=WeatherSetup(mean_c=44.0),
            plant=PlantSetup(sleep=sleep, cooling_spare=spare),
        )
        for spare in (0.15, 1.1)
    )
    throttled, cool = _checked(hot, 1, jobs=400), _checked(enough, 1, jobs=400)
    assert cool.counted.throttled_s == 0 < throttled.counted.throttled_s
    slowdown = (throttled.end_s - throttled.start_s) / (cool.end_s - cool.start_s)
    assert slowdown.min() >= 1 - 1e-9
    assert slowdown.max() > 1.2

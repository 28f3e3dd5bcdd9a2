from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from joulie.catalogue.lookup import Catalogue
from joulie.lab.analysis.capacity import fastest_s, idle_power, kinds, loads
from joulie.lab.analysis.measures import KNOWN, Idle, Measures, measure
from joulie.lab.experiment.digests import outcome_digest
from joulie.lab.model.outcome import BudgetsCounted, Outcome
from joulie.lab.model.refusals import LabError, assert_above_bound, refuse_unfinished, refuse_unstable
from joulie.lab.model.setup import ClusterSetup, NodeGroup, PlantSetup, RunSetup
from tests.lab.made import HOUR_S, jobs_table, made_outcome

IDLE = Idle(500.0, 200.0)


def measured(outcome: Outcome, **more: Any) -> Measures:
    return measure(outcome, fastest_s=outcome.jobs.reference_s, idle=IDLE, **more)


def test_every_measure_says_how_it_is_shown() -> None:
    assert set(KNOWN) == set(Measures.__struct_fields__)


def test_energy_and_work_add_up_as_by_hand() -> None:
    jobs = jobs_table([0, 0], [1, 2])
    outcome = made_outcome(jobs, [0, 0], [HOUR_S, 2 * HOUR_S])

    made = measured(outcome, bound_j=1.8e6)

    assert made.it_kwh == pytest.approx(1.0)
    assert made.facility_kwh == pytest.approx(1.0 + 0.1 + 0.2)
    assert made.pue == pytest.approx(1.3)
    assert made.cpu_device_hours == pytest.approx(8 * 3)
    assert made.kwh_per_1000_device_hours == pytest.approx(1000 * 1.3 / 24)
    assert made.bound_kwh == pytest.approx(0.5)
    assert made.over_bound_pct == pytest.approx(100.0)
    assert made.idle_kw == pytest.approx(0.5 * 1.3)


def test_energy_while_jobs_arrive_leaves_the_tail_out() -> None:
    jobs = jobs_table([0, 5400], [1, 1])
    outcome = made_outcome(jobs, [0, 5400], [HOUR_S, 9000])
    hourly = {"time_s": [3600, 7200, 9000], "it_w": [1000, 2000, 9000], "cooling_w": [100, 200, 900]}
    series = {**outcome.series, **{name: np.array(values, float) for name, values in hourly.items()}}

    made = measured(replace(outcome, series=series))

    assert made.arriving_kwh == pytest.approx(1.1 + 2.2 / 2), "the last comes in the midst of the second hour"
    at_once = made_outcome(jobs_table([0, 0], [1, 1]), [0, 0], [HOUR_S, HOUR_S])
    assert measured(at_once).arriving_kwh is None


def test_bounded_slowdown_forgives_short_jobs_their_wait() -> None:
    jobs = jobs_table([0, 0], [1 / 3600, 1])  # a second, and an hour
    outcome = made_outcome(jobs, [19, 1800], [20, 1800 + HOUR_S])

    made = measured(outcome)

    assert made.slowdown_mean == pytest.approx((20 / 1 + 1.5) / 2)
    assert made.bounded_slowdown_mean == pytest.approx((20 / 10 + 1.5) / 2)
    assert made.bounded_slowdown_p99 == pytest.approx(1.5 + 0.5 * 0.99)


def test_load_is_stated_for_cpus_and_gpus_apart() -> None:
    jobs = jobs_table([0, 100], [1, 1])
    outcome = made_outcome(jobs, [0, 100], [HOUR_S, HOUR_S])

    made = measured(outcome, offered={"CPUs": 0.25, "GPUs": 0.6, "cores of GPU nodes": 0.7})
    assert (made.cpu_load_pct, made.gpu_load_pct) == (25.0, 60.0)
    alone = measured(outcome, offered={"CPUs": 0.25, "GPUs": 0.0})
    assert (alone.cpu_load_pct, alone.gpu_load_pct) == (25.0, None)


def test_energy_of_cpu_and_gpu_nodes_is_told_apart_only_where_a_meter_can() -> None:
    jobs = jobs_table([0, 0], [1, 1])
    both = made_outcome(jobs, [0, 0], [HOUR_S, HOUR_S], gpu_nodes_energy_j=0.9e6)

    apart = measured(both)

    assert apart.kwh_per_1000_cpu_hours == pytest.approx(1000 * 1.3 * 0.75 / 16)
    assert apart.kwh_per_1000_gpu_hours is None, "there is no GPU work to divide by"
    assert measured(both, kinds_apart=False).kwh_per_1000_cpu_hours is None


def test_wait_slowdown_and_lateness_follow_their_definitions() -> None:
    jobs = jobs_table([0, 100, 200], [1, 1, 1], performance=(1,), deadline_s={2: 9000.0})
    outcome = made_outcome(jobs, [0, 3700, 200], [3600, 7300, 8000])

    made = measured(outcome)

    assert made.wait_p50_s == 0.0
    assert made.wait_mean_s == pytest.approx(1200.0)
    assert made.slowdown_p50 == pytest.approx(2.0)
    assert made.performance_slowdown_p99 == pytest.approx(2.0)
    assert made.late_jobs == 0, "2.0 is not above 2, and the third job has a deadline that it keeps"
    later = made_outcome(jobs, [0, 3701, 200], [3600, 7301, 9001])
    assert measured(later).late_jobs == 2


def test_ramp_is_the_change_of_facility_power_between_recorded_intervals() -> None:
    jobs = jobs_table([0], [1])
    outcome = made_outcome(jobs, [0], [3600], it_w=[1000, 3000, 2000, 2000], cooling_w=[100, 300, 200, 200])

    made = measured(outcome)

    assert made.peak_kw == pytest.approx(3.3)
    assert made.ramp_p99_kw_per_min == pytest.approx(np.quantile([2.2, 1.1, 0.0], 0.99))


def test_an_interval_in_the_midst_of_which_the_run_ends_makes_no_ramp() -> None:
    outcome = made_outcome(jobs_table([0], [1]), [0], [3600], it_w=[1000, 3000, 2000, 9000])
    outcome.series["time_s"][-1] = outcome.series["time_s"][-2] + 0.5

    made = measured(outcome)

    assert made.peak_kw == pytest.approx(3.0)
    assert made.ramp_p99_kw_per_min == pytest.approx(np.quantile([2.0, 1.0], 0.99))


CLUSTER = ClusterSetup([NodeGroup(3), NodeGroup(1, gpu="L40S", gpus=4), NodeGroup(1, gpu="H100 SXM", gpus=8)])


def test_the_fastest_a_job_can_be_is_on_the_fastest_node_that_may_hold_it() -> None:
    groups = kinds(CLUSTER, Catalogue())

    assert fastest_s(jobs_table([0], [1]), groups, Catalogue()) == pytest.approx([3600.0])
    assert fastest_s(jobs_table([0], [1], gpus=1), groups, Catalogue()) == pytest.approx([3600.0]), "on an H100 SXM"
    no_h100 = kinds(ClusterSetup(CLUSTER.nodes[:2]), Catalogue())
    assert fastest_s(jobs_table([0], [1], gpus=1), no_h100, Catalogue())[0] > 2 * 3600.0
    assert fastest_s(jobs_table([0], [1], gpus=8), no_h100, Catalogue())[0] == np.inf


def test_idle_power_is_that_of_empty_nodes_or_of_sleeping_ones() -> None:
    groups = kinds(ClusterSetup([NodeGroup(10)]), Catalogue())
    up_s = np.array([60.0] + [0.0] * 9)

    awake = idle_power(groups, RunSetup(), up_s)
    asleep = idle_power(groups, RunSetup(plant=PlantSetup(sleep=True, sleep_w=12.0)), up_s)

    assert awake.all_w == pytest.approx(10 * 128, rel=0.01), "the idle point of SPECpower, ten times"
    assert asleep.all_w == pytest.approx(120.0)
    assert (awake.settling_j, asleep.settling_j) == pytest.approx((0.0, 60 * (awake.all_w / 10 - 12.0)))
    assert awake.gpu_nodes_w == 0.0


def test_a_queue_that_gets_more_than_the_nodes_can_do_is_refused_before_it_runs() -> None:
    groups = kinds(CLUSTER, Catalogue())
    fair = jobs_table([0, HOUR_S], [1, 1], cores=192)
    greedy = jobs_table([0.0] * 4 + [HOUR_S], [1.0] * 5, cores=192)

    offered = loads(fair, CLUSTER, groups, Catalogue())
    refuse_unstable(offered, "none, seed 1")

    assert max(offered.values()) == pytest.approx(2 / 3)
    with pytest.raises(LabError, match="none, seed 1: unstable queue: the jobs ask for 167 % of what all CPUs can do"):
        refuse_unstable(loads(greedy, CLUSTER, groups, Catalogue()), "none, seed 1")


def test_a_batch_that_comes_at_once_has_no_load() -> None:
    assert loads(jobs_table([5, 5], [9, 9]), CLUSTER, kinds(CLUSTER, Catalogue()), Catalogue()) == {}


def test_a_run_with_a_job_that_did_not_end_is_refused() -> None:
    jobs = jobs_table([0, 0, 0], [1, 1, 1])
    outcome = made_outcome(
        jobs, [0, 0, float("nan")], [3600, float("nan"), float("nan")], makespan_s=1.0, metered_s=1.0
    )

    with pytest.raises(
        LabError, match="eco, seed 3: unfinished queue: 2 of 3 jobs did not end, the first is job-0000001"
    ):
        refuse_unfinished(outcome, "eco, seed 3")


def test_a_run_below_its_bound_is_a_fault_and_stops_everything() -> None:
    assert_above_bound(3.6e6, 3.6e6, "eco, seed 3")
    with pytest.raises(
        AssertionError, match=r"eco, seed 3: 0\.900000 kWh of IT energy is below the lower bound of 1\.000000"
    ):
        assert_above_bound(0.9 * 3.6e6, 3.6e6, "eco, seed 3")


def test_stretch_counts_from_the_start_of_a_job_and_throughput_until_the_last_arrival() -> None:
    jobs = jobs_table([0, 0, 2 * HOUR_S], [1, 2, 1])
    outcome = made_outcome(jobs, [HOUR_S, 0, 2 * HOUR_S], [2.5 * HOUR_S, 3 * HOUR_S, 3 * HOUR_S])

    made = measured(outcome)

    assert made.stretch_mean == pytest.approx((1.5 + 1.5 + 1.0) / 3)
    assert made.cpu_throughput == pytest.approx((8 * 1 * (1 / 1.5) + 8 * 2 * (2 / 3)) / 2)
    assert made.gpu_throughput is None


def test_limits_are_judged_only_where_there_are_budgets() -> None:
    outcome = made_outcome(jobs_table([0], [1]), [0], [HOUR_S])
    limited = replace(outcome, budgets=BudgetsCounted(12.0, 300.0, 2.5))

    assert (measured(outcome).above_limit_s, measured(outcome).worst_excess_pct) == (None, None)
    assert (measured(limited).above_limit_s, measured(limited).worst_excess_pct) == (12.0, 2.5)
    assert outcome_digest(limited) != outcome_digest(outcome)

"""A queue of thousands is searched quickly, and no job is overlooked for that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from joulie.lab.experiment.digests import outcome_digest
from joulie.lab.kernels.events import advance
from joulie.lab.kernels.world import LOAD
from joulie.lab.model.jobs import JobTable
from joulie.lab.model.setup import ClusterSetup, NodeGroup, PolicySetup, QueueSetup, RunSetup
from joulie.lab.simulation.engine import Observer, SimulatedRun
from joulie.lab.simulation.initial_state import PAGE_JOBS
from tests.lab.random_jobs import mixed, table

MODELS = ("H100 SXM", "L40S")
CLUSTER = ClusterSetup([NodeGroup(12), NodeGroup(4, gpu="H100 SXM", gpus=8), NodeGroup(4, gpu="L40S", gpus=4)])


@pytest.mark.parametrize(
    ("scheduler", "policy", "estimate_factor"),
    [("least", "none", 1.0), ("most", "none", 0.4), ("joulie", "none", 1.0), ("most", "static_partition", 2.0)],
)
def test_a_look_that_leaves_out_the_hopeless_starts_the_same_jobs(
    scheduler: str, policy: str, estimate_factor: float
) -> None:
    """Explaining a job turns the shortcuts off: every job is tried."""
    setup = RunSetup(
        cluster=CLUSTER,
        scheduler=scheduler,
        policy=PolicySetup(policy),
        queue=QueueSetup(estimate_factor=estimate_factor),
    )
    jobs = mixed(4, 1500, 6.0, MODELS)

    ahead = SimulatedRun(setup, jobs, 2).run()
    tried = SimulatedRun(setup, jobs, 2, observer=Observer(probe_job=0, probe_from_s=np.inf)).run()

    assert int(ahead.backfilled.sum()) > 200
    assert outcome_digest(ahead) == outcome_digest(tried)


def test_a_small_job_passes_thousands_that_wait_for_whole_nodes() -> None:
    """Each time that something ends there is a look at the queue, far deeper than one goes but for their one kind."""
    wide, small, span_s, wide_s = 2_500, 40, 20_000.0, 300.0
    jobs = _wide_and_small(wide, small, span_s, wide_s)

    outcome = SimulatedRun(RunSetup(cluster=ClusterSetup([NodeGroup(3)]), scheduler="least"), jobs, 1).run()

    is_small = jobs.cores < 100
    waited_s = outcome.start_s - jobs.submit_s
    assert float(waited_s[is_small].max()) <= wide_s
    assert int(outcome.backfilled[is_small].sum()) == small
    assert float(np.median(waited_s[~is_small])) > span_s


def _wide_and_small(wide: int, small: int, span_s: float, wide_s: float) -> JobTable:
    """All wide ones come at once and take a node but for a few cores each; small ones come later, one by one."""
    submit_s = np.concatenate([np.full(wide, 1.0), np.linspace(100.0, span_s, small)])
    lasts_s = np.concatenate([np.full(wide, wide_s), np.full(small, 5.0)])
    cores = np.concatenate([np.full(wide, 180.0), np.full(small, 2.0)])
    return table(submit_s, lasts_s, cores)


def test_records_hold_what_the_trace_says() -> None:
    jobs = mixed(3, 200, 10.0, MODELS)
    jobs = replace(jobs, submit_s=np.ones(len(jobs)))

    world = SimulatedRun(RunSetup(cluster=CLUSTER), jobs, 1).world
    advance(world, 1.0 + 1e-9)

    assert int(world.run["next_arrival"]) == len(jobs)
    pods, records = world.pods[: jobs.pods], world.jobs[: len(jobs)]
    np.testing.assert_array_equal(records["number"], np.arange(len(jobs)))
    np.testing.assert_array_equal(pods["number"], np.arange(jobs.pods))
    np.testing.assert_array_equal(pods["job"], jobs.job_of_pod)
    np.testing.assert_array_equal(world.shapes["mcores"][pods["shape"]], jobs.cores * 1000)
    np.testing.assert_array_equal(world.shapes["gpus"][pods["shape"]], jobs.gpus)
    np.testing.assert_array_equal(world.shapes["gpu_model"][pods["shape"]], jobs.gpu_model)
    np.testing.assert_array_equal(world.shapes["performance"][pods["shape"]], jobs.performance)
    np.testing.assert_array_equal(pods["load"], np.rint(jobs.cores * 1000 * jobs.cpu_utilisation * LOAD))
    for name in ("gpu_utilisation", "memory_intensity", "io_intensity", "feed_intensity"):
        np.testing.assert_array_equal(pods[name], getattr(jobs, name))
    no_work = np.full(jobs.pods, np.inf)
    gpu_rate = np.divide(jobs.gpus, jobs.gpu_units, out=no_work, where=jobs.gpu_units > 0)
    np.testing.assert_array_equal(pods["gpu_rate"], gpu_rate)
    np.testing.assert_array_equal(records["reference_s"], jobs.reference_s)
    np.testing.assert_array_equal(records["last_pod"], jobs.first_pod[1:])
    kinds = world.kinds[records["kind"]]
    np.testing.assert_array_equal(kinds["alike"], np.diff(jobs.first_pod))
    np.testing.assert_array_equal(
        kinds["performance"], np.add.reduceat(jobs.performance, jobs.first_pod[:-1], dtype=int)
    )
    assert set(np.unique(world.shapes["in_gangs"][pods["shape"][records["first_pod"][kinds["alike"] > 1]]])) == {True}


def test_records_of_jobs_that_have_left_are_used_again() -> None:
    """Few at a time: gangs and single pods, of which one stays from the first day to the last."""
    count = 6 * PAGE_JOBS
    lasts_s = np.full(count, 5.0)
    lasts_s[10] = 2.0 * count
    jobs = table(np.arange(count, dtype=np.float64), lasts_s, 1.0, pods=1 + np.arange(count) % 3)

    simulation = SimulatedRun(RunSetup(cluster=ClusterSetup([NodeGroup(3)]), scheduler="least"), jobs, 1)
    outcome = simulation.run()

    assert 2 <= int(simulation.world.run["pages"]) <= 3
    np.testing.assert_allclose(outcome.end_s - outcome.start_s, lasts_s)
    np.testing.assert_array_equal(outcome.start_s, jobs.submit_s)
    assert np.all(outcome.node >= 0)

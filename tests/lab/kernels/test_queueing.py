"""The queue against what is known of queues: Erlang's formula, the order of arrival, and EASY's promise."""

from __future__ import annotations

import heapq
import math
from itertools import pairwise

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray

from joulie.lab.model.jobs import JobTable
from joulie.lab.model.outcome import Outcome
from joulie.lab.model.setup import ClusterSetup, NodeGroup, PlantSetup, QueueSetup, RunSetup, TelemetrySetup
from joulie.lab.simulation.engine import simulate
from tests.lab.queue_truth import Placed, capacity_exceeded, earliest_start_s, placed
from tests.lab.random_jobs import mixed, table

Numbers = NDArray[np.float64]

CORES = 96.0  # of one EPYC 9654, on which a job takes exactly as long as its units say
MEAN_S = 1000.0
T_9995_19 = 3.883  # Student's t for 20 batches: 99.9 % of intervals hold the truth, and there are thirty here


def one_socket(count: int) -> list[NodeGroup]:
    return [NodeGroup(count, sockets=1)]


def setup(
    nodes: list[NodeGroup], *, backfill: bool = False, scheduler: str = "least", **more: float | str | bool
) -> RunSetup:
    return RunSetup(
        cluster=ClusterSetup(nodes=nodes),
        scheduler=scheduler,
        queue=QueueSetup(backfill=backfill, depth=100_000),
        telemetry=TelemetrySetup("static"),
        settings=dict(more),
    )


# --- Erlang ------------------------------------------------------------------------------------------------------


def erlang_c(servers: int, load: float) -> float:
    """The share of those who have to wait: load is offered work over service time, below the number of servers."""
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


def exponential_jobs(servers: int, busy: float, cores: float, count: int, seed: int) -> JobTable:
    chance = np.random.default_rng([seed, servers])
    gaps_s = chance.exponential(MEAN_S / (servers * busy), count)
    return table(np.cumsum(gaps_s), chance.exponential(MEAN_S, count), cores)


def waits_s(jobs: JobTable, servers: int) -> Numbers:
    """Job by job, by the recursion of Kiefer and Wolfowitz: each takes the server that is free first."""
    free_s = [0.0] * servers
    waits = []
    for submit_s, lasts_s in zip(jobs.submit_s.tolist(), jobs.reference_s.tolist(), strict=True):
        start_s = max(submit_s, free_s[0])
        heapq.heapreplace(free_s, start_s + lasts_s)
        waits.append(start_s - submit_s)
    return np.array(waits)


def batch_interval(values: Numbers, batches: int = 20) -> tuple[float, float]:
    """Mean and half width, from the means of long batches: neighbours in a queue are alike, batches hardly are."""
    kept = values[len(values) // 10 :]  # the beginning found an empty cluster
    means = np.array([part.mean() for part in np.array_split(kept, batches)])
    return float(means.mean()), T_9995_19 * float(means.std(ddof=1)) / math.sqrt(batches)


@pytest.mark.slow
@pytest.mark.parametrize("busy", [0.6, 0.8, 0.9])
@pytest.mark.parametrize(
    ("servers", "nodes", "cores"),
    [
        pytest.param(1, 1, CORES, id="one server"),
        pytest.param(4, 1, CORES / 4, id="four slots of one node"),
        pytest.param(4, 4, CORES, id="four nodes of one slot"),
        pytest.param(8, 1, CORES / 8, id="eight slots of one node"),
        pytest.param(6, 3, CORES / 2, id="three nodes of two slots"),
    ],
)
def test_the_mean_wait_is_erlangs(servers: int, nodes: int, cores: float, busy: float) -> None:
    # Queues that are nearly full forget slowly.
    jobs = exponential_jobs(servers, busy, cores, 300_000 if busy > 0.8 else 120_000, seed=8)
    coarse = structs.replace(setup(one_socket(nodes)), plant=PlantSetup(step_s=MEAN_S), record_s=1e6)  # years go by
    outcome = simulate(coarse, jobs, seed=8)
    wait_s = outcome.start_s - jobs.submit_s
    assert np.abs(wait_s - waits_s(jobs, servers)).max() < 1e-3
    waiting = erlang_c(servers, servers * busy)
    expected_s = waiting * MEAN_S / (servers * (1 - busy))
    mean_s, half_s = batch_interval(wait_s)
    assert abs(mean_s - expected_s) <= half_s
    assert half_s < 0.4 * expected_s  # it would tell a wrong formula from the right one
    share, half = batch_interval((wait_s > 1e-6).astype(np.float64))
    assert abs(share - waiting) <= half


def test_erlangs_formula_is_the_textbooks() -> None:
    assert erlang_c(1, 0.7) == pytest.approx(0.7)  # M/M/1: who waits is who finds it busy
    assert erlang_c(2, 1.0) == pytest.approx(1 / 3)
    assert erlang_c(10, 8.0) == pytest.approx(0.409, abs=5e-4)


# --- Order, room and promises --------------------------------------------------------------------------------------

MODELS = ("H100 SXM", "L40S")
NODES = [NodeGroup(3, sockets=1), NodeGroup(2, gpu="H100 SXM", gpus=8), NodeGroup(3, gpu="L40S", gpus=4)]
SCHEDULERS = ["least", "most", "random", "joulie", "tests.lab.random_jobs:Fullest"]


def crowded(seed: int, gpus: bool = True) -> JobTable:
    return mixed(seed, 250, 90.0 if gpus else 250.0, MODELS if gpus else ())


def run(seed: int, *, backfill: bool, scheduler: str = "joulie") -> tuple[Outcome, list[Placed]]:
    jobs = crowded(seed)
    wanted = setup(NODES, backfill=backfill, scheduler=scheduler)
    outcome = simulate(wanted, jobs, seed)
    return outcome, placed(wanted.cluster, outcome)


@pytest.mark.parametrize("backfill", [False, True])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_job_runs_once_where_it_may_and_there_is_room(scheduler: str, backfill: bool) -> None:
    for seed in (1, 2):
        outcome, everything = run(seed, backfill=backfill, scheduler=scheduler)
        jobs = outcome.jobs
        assert np.isfinite(outcome.end_s).all()
        assert (outcome.start_s >= jobs.submit_s).all()
        assert (outcome.end_s > outcome.start_s).all()
        assert outcome.counted.makespan_s == pytest.approx(outcome.end_s.max() - jobs.submit_s[0])
        assert (outcome.node >= 0).all()  # gangs as a whole, for a job has but one start
        assert all(job.allowed for job in everything)
        assert capacity_exceeded(everything) == []


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_without_backfill_each_starts_in_its_turn_as_soon_as_it_fits(scheduler: str) -> None:
    outcome, everything = run(3, backfill=False, scheduler=scheduler)
    assert all(before <= after for before, after in pairwise(outcome.start_s))
    assert not outcome.backfilled.any()
    waited = 0
    for number, job in enumerate(everything):
        turn_s = max(job.submit_s, outcome.start_s[:number].max(initial=0.0))
        due_s = earliest_start_s(job, everything[:number], turn_s)
        assert job.start_s == pytest.approx(due_s, abs=1e-6)
        waited += due_s > turn_s
    assert waited > 20  # the test had something to see


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_backfill_never_delays_the_first_in_the_queue(scheduler: str) -> None:
    passed = promised = 0
    for seed in (4, 5):
        outcome, everything = run(seed, backfill=True, scheduler=scheduler)
        for number, job in enumerate(everything):
            head_s = max(job.submit_s, outcome.start_s[:number].max(initial=0.0))
            if job.start_s <= head_s:
                continue
            # What ran when it became the first; who began later must not be in its way.
            others = [other for at, other in enumerate(everything) if other.start_s < head_s or (at < number)]
            assert job.start_s <= earliest_start_s(job, others, head_s) + 1e-6
            promised += 1
        expected = [
            any(earlier.start_s > job.start_s + 1e-9 for earlier in everything[:number])
            for number, job in enumerate(everything)
        ]
        assert outcome.backfilled.tolist() == expected
        passed += sum(expected)
    assert promised > 20
    assert passed > 20


def test_backfill_uses_room_that_would_stand_empty() -> None:
    """Two of three slots are taken for long; the first in the queue needs all three, the next ones only the third."""
    slot = CORES / 3
    jobs = table([0, 1, 2, 3, 4], [1000, 1000, 100, 900, 5000], [slot, slot, CORES, slot, slot])
    strict = simulate(setup(one_socket(1)), jobs, 1)
    filled = simulate(setup(one_socket(1), backfill=True), jobs, 1)
    assert strict.start_s == pytest.approx([0, 1, 1001, 1101, 1101])
    assert filled.start_s == pytest.approx([0, 1, 1001, 3, 1101])  # the last would have delayed the first
    assert filled.backfilled.tolist() == [False, False, False, True, False]


def test_a_gang_of_unequal_pods_is_not_starved_by_those_who_pass_it() -> None:
    """It needs all of one node and three quarters of the other, which is never free unless it is kept."""
    small = 40
    jobs = table(
        [*range(5), 10, *range(20, 20 + small)],
        [1000, 3000, 4000, 5000, 6000, 500, *[5000] * small],
        [CORES, *[CORES / 4] * 4, CORES, *[CORES / 4] * small],
        pods=[1] * 5 + [2] + [1] * small,
    )
    second = int(jobs.first_pod[5]) + 1
    jobs.cores[second] *= 0.75
    jobs.cpu_units[second] *= 0.75
    outcome = simulate(setup(one_socket(2), backfill=True, scheduler="most"), jobs, 1)
    assert outcome.start_s[5] == pytest.approx(5003.0)  # the third of the small ones has ended


def test_a_gang_waits_for_room_for_all_of_it() -> None:
    jobs = table([0, 1, 2], [1000, 100, 10], [CORES, CORES, CORES], pods=[1, 2, 1])
    outcome = simulate(setup(one_socket(2)), jobs, 1)
    assert outcome.start_s == pytest.approx([0, 1000, 1100])
    assert set(outcome.node[1:3].tolist()) == {0, 1}


# --- Same seed, same bits ------------------------------------------------------------------------------------------


def bits(outcome: Outcome) -> list[bytes]:
    arrays = [outcome.start_s, outcome.end_s, outcome.backfilled, outcome.node, *outcome.series.values()]
    counted = outcome.counted
    numbers = [getattr(counted, name) for name in counted.__slots__ if name not in ("decision_cpu_s", "wall_s")]
    return [array.tobytes() for array in arrays] + [np.float64(number).tobytes() for number in numbers]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_same_seed_gives_the_same_bits_and_another_seed_other_dice(scheduler: str) -> None:
    wanted, jobs = setup(NODES, backfill=True, scheduler=scheduler), crowded(6)
    first, again = simulate(wanted, jobs, 6), simulate(wanted, jobs, 6)
    assert bits(first) == bits(again)
    if scheduler == "random":
        assert bits(simulate(wanted, jobs, 7)) != bits(first)

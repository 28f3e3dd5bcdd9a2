"""Generated work that is constant, goes up and down, serves requests, or runs for days."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulie.errors import InputError
from joulie.lab.experiment.digests import jobs_digest
from joulie.lab.model.refusals import refuse_unfinished
from joulie.lab.model.setup import ClusterSetup, NodeGroup, RunSetup, TraceSetup
from joulie.lab.simulation.engine import simulate
from joulie.lab.traces.generator import generate
from joulie.lab.traces.room import offered_load

CLUSTER = ClusterSetup(nodes=[NodeGroup(8), NodeGroup(4, gpu="H100 SXM", gpus=8)])
DAY_S = 86_400.0


def by_hour(jobs: Any, hours: int) -> np.ndarray:
    return np.bincount(np.minimum(jobs.submit_s // 3600, hours - 1).astype(int), minlength=hours)


def held(jobs: Any, time_s: float) -> int:
    """Boards that jobs would hold then, were each started at once."""
    return int(jobs.gpus[(jobs.submit_s <= time_s) & (jobs.submit_s + jobs.reference_s > time_s)].sum())


def test_constant_arrivals_are_as_many_in_every_hour() -> None:
    counts = by_hour(generate(TraceSetup(jobs=24_000, arrivals="constant"), 1, CLUSTER), 24)

    assert counts.min() > 800
    assert counts.max() < 1200


def test_periodic_arrivals_peak_in_the_middle_of_every_period() -> None:
    jobs = generate(TraceSetup(jobs=48_000, hours=24, arrivals="periodic", period_hours=6), 1, CLUSTER)

    waves = by_hour(jobs, 24).reshape(4, 6)
    assert np.all(waves.argmax(axis=1) >= 2)
    assert np.all(waves.argmax(axis=1) <= 3)
    assert np.all(waves.max(axis=1) > 2.5 * waves.min(axis=1))


def test_the_day_is_the_same_as_ever() -> None:
    assert jobs_digest(generate(TraceSetup(jobs=500), 3, CLUSTER)).startswith("fded61e2835cc669")


def test_jobs_may_run_for_days_and_a_run_waits_for_them() -> None:
    trace = TraceSetup(hours=24, load=0.4, longest_hours=100, duration_scale=20)
    jobs = generate(trace, 1, CLUSTER)

    assert 2 * DAY_S < jobs.reference_s.max() <= 100 * 3600
    assert generate(TraceSetup(hours=24, load=0.4), 1, CLUSTER).reference_s.max() <= DAY_S / 3
    outcome = simulate(RunSetup(cluster=CLUSTER, scheduler="least"), jobs, 1)
    refuse_unfinished(outcome, "long")
    assert outcome.end_s.max() > 2 * DAY_S


def test_a_shorter_limit_holds_too() -> None:
    assert generate(TraceSetup(jobs=500, longest_hours=0.01), 1, CLUSTER).reference_s.max() == pytest.approx(36.0)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    load=st.floats(0.1, 0.9),
    shape=st.sampled_from([{"arrivals": "constant"}, {"arrivals": "periodic", "period_hours": 6}, {}]),
)
def test_inference_holds_the_boards_that_its_load_says(seed: int, load: float, shape: dict[str, Any]) -> None:
    jobs = generate(TraceSetup(hours=24, load=load, work="inference", **shape), seed, CLUSTER)

    assert offered_load(jobs, CLUSTER, hours=24)["GPUs"] == pytest.approx(load, rel=0.05)
    assert jobs.performance.all()
    assert jobs.families == ("inference",)
    assert jobs.gpu_utilisation.max() <= 0.7 + 1e-9
    assert jobs.reference_s.min() >= 300 or jobs.submit_s[jobs.reference_s.argmin()] > DAY_S - 600
    assert jobs_digest(jobs) == jobs_digest(
        generate(TraceSetup(hours=24, load=load, work="inference", **shape), seed, CLUSTER)
    )


def test_periodic_inference_needs_more_replicas_at_its_peak_and_a_constant_one_about_as_many() -> None:
    wave = generate(TraceSetup(load=0.5, work="inference", arrivals="periodic", period_hours=12), 1, CLUSTER)
    flat = generate(TraceSetup(load=0.5, work="inference", arrivals="constant"), 1, CLUSTER)

    assert held(wave, 6 * 3600) > 2.5 * held(wave, 12 * 3600)
    assert abs(held(flat, 6 * 3600) - held(flat, 12 * 3600)) <= 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"burstiness": 2, "arrivals": "constant"}, 'belong to arrivals = "day", and these are constant'),
        ({"start_hour": 3, "arrivals": "periodic"}, 'belong to arrivals = "day", and these are periodic'),
        ({"period_hours": 3}, 'period_hours belongs to arrivals = "periodic", and these are day'),
        ({"work": "inference", "jobs": 3}, "belong to mixed work: of inference the load decides"),
        ({"work": "inference", "duration_scale": 3}, "belong to mixed work: of inference the load decides"),
        ({"file": "a.swf", "arrivals": "constant"}, "belong to generated traces, not to a file"),
        ({"file": "a.swf", "longest_hours": 30}, "belong to generated traces, not to a file"),
    ],
)
def test_what_does_not_go_together_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TraceSetup(**given)


def test_inference_without_boards_or_without_a_replica_is_refused() -> None:
    with pytest.raises(InputError, match=r"^trace\.work: inference needs GPUs, and no node of the cluster has one$"):
        generate(TraceSetup(work="inference"), 1, ClusterSetup(nodes=[NodeGroup(4)]))
    with pytest.raises(InputError, match=r"^trace\.load: 1e-07 of 32 GPUs is not a single replica$"):
        generate(TraceSetup(work="inference", load=1e-7), 1, CLUSTER)

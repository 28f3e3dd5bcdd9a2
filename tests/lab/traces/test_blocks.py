"""A seed of a file is drawn from it block by block."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulie.errors import InputError
from joulie.lab.experiment.digests import jobs_digest
from joulie.lab.model.setup import ClusterSetup, NodeGroup, TraceSetup
from joulie.lab.traces.blocks import Blocks
from joulie.lab.traces.generator import generate
from joulie.lab.traces.reading import jobs_of, read_trace
from joulie.lab.traces.remarks import Remarks
from joulie.lab.traces.room import offered_load
from joulie.lab.traces.writing import write_trace

CLUSTER = ClusterSetup(nodes=[NodeGroup(8), NodeGroup(4, gpu="H100 SXM", gpus=8)])
DAY_S = 86_400.0


@settings(max_examples=200, deadline=None)
@given(
    gaps_s=st.lists(st.floats(0.001, 5 * DAY_S), min_size=2, max_size=60),
    seed=st.integers(0, 1000),
    hours=st.none() | st.floats(0.1, 300),
)
def test_blocks_keep_order_and_gaps_and_every_seed_draws_its_own(
    gaps_s: list[float], seed: int, hours: float | None
) -> None:
    times_s = 1e5 + np.cumsum(gaps_s)
    remarks = Remarks()

    drawn = Blocks(seed, hours=hours).draw(times_s, "a.swf", remarks)

    assert drawn is not None
    again = Blocks(seed, hours=hours).draw(times_s, "a.swf", Remarks())
    assert again is not None
    np.testing.assert_array_equal(drawn.time_s, again.time_s)
    assert np.all(np.diff(drawn.time_s) >= 0)
    within = np.diff(drawn.place) == 0
    np.testing.assert_allclose(np.diff(drawn.time_s)[within], np.diff(times_s[drawn.row])[within], atol=1e-6)
    assert np.all(np.diff(drawn.row)[within] == 1)
    assert "block bootstrap" in remarks.notes[0]


def test_every_job_is_as_likely_to_be_drawn_as_any_other() -> None:
    times_s = np.arange(0.0, 10 * DAY_S, 3600.0)
    counts = np.zeros(len(times_s))
    for seed in range(400):
        drawn = Blocks(seed).draw(times_s, "a.swf", Remarks())
        assert drawn is not None
        counts += np.bincount(drawn.row, minlength=len(times_s))

    whole = counts[: 9 * 24]  # the tenth day ends with the last job: an hour short of a block
    assert whole.mean() == pytest.approx(400, rel=0.01)
    assert whole.std() < 40
    assert not counts[9 * 24 :].any()


def test_blocks_of_a_day_keep_the_time_of_day() -> None:
    times_s = np.sort(np.random.default_rng(1).uniform(0, 30 * DAY_S, 5000))

    drawn = Blocks(3).draw(times_s, "a.swf", Remarks())

    assert drawn is not None
    np.testing.assert_allclose((drawn.time_s + times_s[0]) % DAY_S, times_s[drawn.row] % DAY_S, atol=1e-4)


def test_jobs_keep_their_pods_and_deadlines_and_get_names_of_their_own(tmp_path: Path) -> None:
    jobs = generate(TraceSetup(jobs=300, deadlines=True), 1, CLUSTER)
    write_trace(jobs, tmp_path / "t.jsonl")
    file = str(tmp_path / "t.jsonl")
    asked = TraceSetup(file=file, block_hours="auto")

    drawn = jobs_of(asked, 7, CLUSTER)

    assert len(set(drawn.ids)) == len(drawn)
    assert jobs_digest(drawn) == jobs_digest(jobs_of(asked, 7, CLUSTER)) != jobs_digest(jobs_of(asked, 8, CLUSTER))
    names = list(jobs.ids)
    for job in range(len(drawn)):
        was = names.index(drawn.ids[job].partition("-")[2])
        ours = slice(drawn.first_pod[job], drawn.first_pod[job + 1])
        then = slice(jobs.first_pod[was], jobs.first_pod[was + 1])
        np.testing.assert_array_equal(drawn.gpu_units[ours], jobs.gpu_units[then])
        np.testing.assert_array_equal(drawn.cores[ours], jobs.cores[then])
        left_s = jobs.deadline_s[was] - jobs.submit_s[was]
        assert drawn.deadline_s[job] - drawn.submit_s[job] == pytest.approx(left_s)
    assert jobs_digest(jobs_of(TraceSetup(file=file), 7, CLUSTER)) == jobs_digest(read_trace(file))


def test_a_load_is_met_by_every_draw(tmp_path: Path) -> None:
    write_trace(generate(TraceSetup(hours=48), 1, CLUSTER), tmp_path / "t.jsonl")
    asked = TraceSetup(file=str(tmp_path / "t.jsonl"), block_hours=6, load=0.5)

    for seed in range(5):
        assert max(offered_load(jobs_of(asked, seed, CLUSTER), CLUSTER).values()) == pytest.approx(0.5)


def test_of_requests_blocks_are_drawn_before_they_become_replicas(tmp_path: Path) -> None:
    """The replica that runs all the time would belong to the first block alone."""
    path = tmp_path / "azure.csv"
    rows = [f"2023-11-16 18:{second // 60:02d}:{second % 60:02d},8000,400" for second in range(0, 3600, 2)]
    path.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows]))

    for seed in range(5):
        jobs = jobs_of(TraceSetup(file=str(path), block_hours="auto"), seed, CLUSTER)
        assert jobs.gpu_units.sum() == pytest.approx(read_trace(str(path)).gpu_units.sum(), rel=0.05)


def test_what_cannot_be_drawn_is_refused_in_one_line_and_all_at_once_is_replayed(tmp_path: Path) -> None:
    jobs = generate(TraceSetup(jobs=50, hours=2), 1, CLUSTER)
    write_trace(jobs, tmp_path / "t.jsonl")
    file = str(tmp_path / "t.jsonl")

    with pytest.raises(
        InputError, match=r"t\.jsonl: trace\.block_hours: 1\.5 h of a file that spans 2 h: at least two"
    ):
        jobs_of(TraceSetup(file=file, block_hours=1.5), 1, CLUSTER)
    with pytest.raises(InputError, match=r"trace\.block_hours: 1e-06 h makes more than 1,000,000 blocks$"):
        jobs_of(TraceSetup(file=file, block_hours=1e-6), 1, CLUSTER)
    with pytest.raises(ValueError, match="block_hours belong to a file"):
        TraceSetup(block_hours=6)
    assert Blocks(1).draw(np.zeros(4), "a.swf", Remarks()) is None

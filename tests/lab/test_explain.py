"""`joulie lab explain`: why a job ran where and when."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from joulie.lab.engine import simulate
from joulie.lab.experiment import Case
from joulie.lab.explaining import explain
from joulie.lab.setup import ClusterSetup, NodeGroup, QueueSetup, RunSetup
from joulie.lab.trace_reading import jobs_of
from joulie.lab.trace_setup import TraceSetup
from tests.cli_runner import joulie

FILE = """
question = "Who waits?"
seeds = 2
[cluster]
nodes = [{ count = 4 }, { count = 2, gpu = "H100 SXM", gpus = 8 }]
[trace]
hours = 4
load = 0.9
[variants]
none = {}
static = { policy.name = "static_partition" }
packed = { scheduler = "most", plant.sleep = true }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "waits.toml"
    path.write_text(FILE)
    return path


def _told(file: Path, job: str, variant: str) -> dict[str, object]:
    done = joulie("lab", "explain", str(file), job, "--variant", variant, "-o", "json")
    assert done.code == 0, done.err
    told: dict[str, object] = json.loads(done.out)
    return told


def test_the_chosen_node_is_the_best_of_those_that_had_room(file: Path) -> None:
    told = _told(file, "w0000003", "static")
    placed = told["whenItWasPlaced"]
    assert isinstance(placed, dict)
    chosen = [candidate for candidate in placed["best"] if candidate["chosen"]]
    assert [candidate["node"] for candidate in chosen] == told["nodes"]
    assert chosen[0]["points"] == max(candidate["points"] for candidate in placed["best"])
    assert sum(placed["reasons"].values()) == 6
    assert told["startS"] == placed["timeS"]


def test_to_look_at_a_job_does_not_change_when_it_ran() -> None:
    cluster = ClusterSetup([NodeGroup(8), NodeGroup(3, gpu="H100 SXM", gpus=8)])
    case = Case("", "", RunSetup(cluster=cluster, queue=QueueSetup(depth=3)), TraceSetup(hours=4, load=1.2))
    jobs = jobs_of(case.trace, 2, cluster)
    outcome = simulate(case.setup, jobs, 2)
    passing = np.flatnonzero(outcome.backfilled)

    for job in passing[:: len(passing) // 4].tolist():
        told = explain(case, 2, jobs.id_of(job))
        assert (told.start_s, told.end_s) == (outcome.start_s[job], outcome.end_s[job])


@pytest.mark.parametrize("variant", ["none", "static", "packed"])
def test_people_get_a_story_for_any_job(file: Path, variant: str) -> None:
    done = joulie("lab", "explain", str(file), "w0000002", "--variant", variant)
    assert done.code == 0, done.err
    assert "when it was placed" in done.out
    assert "chosen" in done.out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("nobody",), "there is no job 'nobody'"),
        (("w0000001", "--variant", "other"), "there is no variant 'other': there are none, static, packed"),
        (("w0000001", "--facet", "other"), "there is no facet 'other'"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(file: Path, arguments: tuple[str, ...], line: str) -> None:
    done = joulie("lab", "explain", str(file), *arguments)
    assert done.code == 2
    assert line in done.complaint

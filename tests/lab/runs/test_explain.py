"""`joulie lab explain`: why a job ran where and when."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from joulie.lab.experiment.definition import Case
from joulie.lab.kernels.world import World
from joulie.lab.model.setup import ClusterSetup, NodeGroup, QueueSetup, RunSetup, TraceSetup
from joulie.lab.runs.explain import explain
from joulie.lab.simulation.engine import Observer, SimulatedRun, simulate
from joulie.lab.simulation.moments import Moment, moment_of
from joulie.lab.traces.reading import jobs_of
from tests.lab.pods import table
from tests.support.cli_runner import joulie

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


def _by_hand(tmp_path: Path, jobs: list[dict[str, object]], rest: str) -> Path:
    (tmp_path / "jobs.jsonl").write_text("".join(json.dumps(job) + "\n" for job in jobs))
    file = tmp_path / "by_hand.toml"
    file.write_text(f'seeds = 1\nscheduler = "most"\n[trace]\nfile = "jobs.jsonl"\n{rest}')
    return file


def _job(name: str, at_s: float, cores: int, seconds: float, sensitivity: float = 1.0) -> dict[str, object]:
    return {
        "type": "job",
        "jobId": name,
        "submitTimeOffsetSec": at_s,
        "podTemplate": {"requests": {"cpu": str(cores)}},
        "work": {"cpuUnits": cores * seconds},
        "sensitivity": {"cpu": sensitivity},
    }


def test_what_caps_cost_is_said_and_a_backfilled_job_is_not_promised_to_delay_no_other(tmp_path: Path) -> None:
    """Under a cap the small one runs on for longer than expected, and the first in the queue waits."""
    jobs = [_job("big", 0, 150, 4000, sensitivity=0.0), _job("head", 10, 192, 500), _job("small", 20, 42, 3900)]
    capped = '[cluster]\nnodes = [{ count = 1 }]\n[policy]\nname = "uniform"\ncpu_cap_pct = 50\n'
    file = _by_hand(tmp_path, jobs, capped)
    done = joulie("lab", "explain", str(file), "small")
    assert done.code == 0, done.err
    told = _told(file, "small", "as given")
    longer_s = told["endS"] - told["startS"] - told["hereS"]  # type: ignore[operator]
    assert told["hereS"] == pytest.approx(3900)
    assert longer_s > 600
    assert f"caps or heat made it run {longer_s / 60:.1f} min longer" in done.out
    assert "it was backfilled" in done.out


def test_a_node_that_was_woken_for_it_is_shown(tmp_path: Path) -> None:
    jobs = [_job("first", 0, 192, 60), _job("late", 20_000, 10, 60)]
    file = _by_hand(tmp_path, jobs, "[cluster]\nnodes = [{ count = 2 }]\n[plant]\nsleep = true\n")
    done = joulie("lab", "explain", str(file), "late")
    assert "2 are switched off" in done.out
    assert "woken for it" in done.out


def test_where_nodes_may_sleep_a_job_that_waited_for_another_was_placed_when_it_started(tmp_path: Path) -> None:
    jobs = [_job("first", 0, 192, 1000), _job("next", 10, 192, 60)]
    file = _by_hand(tmp_path, jobs, "[cluster]\nnodes = [{ count = 1 }]\n[plant]\nsleep = true\n")
    told = _told(file, "next", "as given")
    placed = told["whenItWasPlaced"]
    assert isinstance(placed, dict)
    assert placed["timeS"] == told["startS"] == pytest.approx(1000, abs=1)


def test_a_job_on_a_node_that_another_woke_was_placed_while_it_woke(tmp_path: Path) -> None:
    """Looked at first when there was nothing to wake, and again when half of the waking was over."""
    jobs = [_job("early", 0, 192, 60), _job("waker", 5000, 100, 600), _job("rider", 5090, 92, 60)]
    file = _by_hand(tmp_path, jobs, "[cluster]\nnodes = [{ count = 1 }]\n[plant]\nsleep = true\n")
    told = _told(file, "rider", "as given")
    placed = told["whenItWasPlaced"]
    assert isinstance(placed, dict)
    assert placed["timeS"] == pytest.approx(5090, abs=10)
    assert told["startS"] == pytest.approx(5180, abs=10)


def test_all_nodes_of_a_gang_are_chosen() -> None:
    case = Case("", "", RunSetup(cluster=ClusterSetup([NodeGroup(2)])), TraceSetup(hours=4))
    pod = {"cores": 150.0, "cpu_units": 150.0 * 60, "cpu_utilisation": 1.0}
    jobs = table([pod, pod], gang=True)
    outcome = SimulatedRun(case.setup, jobs, 1).run()
    seen = list[Moment]()

    def see(now_s: float, world: World) -> None:
        seen.append(moment_of(now_s, world, 0, outcome.nodes, outcome.node))

    SimulatedRun(case.setup, jobs, 1, observer=Observer(placed=see, probe_job=0)).run()
    assert [candidate.chosen for candidate in seen[0].best] == [True, True]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("nobody",), "there is no job 'nobody'"),
        (("w0000001", "--variant", "other"), "no variant 'other'; available: none, static, packed"),
        (("w0000001", "--facet", "other"), "no facet 'other'; available: none"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(file: Path, arguments: tuple[str, ...], line: str) -> None:
    done = joulie("lab", "explain", str(file), *arguments)
    assert done.code == 2
    assert line in done.complaint

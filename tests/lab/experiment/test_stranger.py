"""Mistakes of users who do not know the lab, and what the lab should say."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from joulie.errors import InputError
from joulie.lab.experiment.definition import parse_experiment
from joulie.lab.model.setup import ClusterSetup, NodeGroup, TraceSetup
from joulie.lab.traces.generator import generate
from joulie.lab.traces.writing import write_trace
from tests.lab.made import jobs_table
from tests.lab.small import SMALL, small_file
from tests.support.cli_runner import joulie

OWN = """
import numpy as np
from joulie.control.policies import Choice


class Nameless:
    def plan(self, view):
        return 42


class Talks:
    name = "talks"

    def plan(self, view):
        print("hello")
        return {node.name: Choice("performance", "always") for node in view.nodes}


class AllEco:
    name = "all_eco"

    def plan(self, view):
        return {node.name: Choice("eco", "always") for node in view.nodes}


class Exits:
    name = "exits"

    def plan(self, view):
        raise SystemExit(0)


class One:
    def rank(self, view):
        return np.zeros(1)


class Many:
    def rank(self, view):
        return np.zeros(len(view.node_cores) + 1)
"""


def with_own_code(folder: Path, *, policy: str = "uniform", scheduler: str = "joulie") -> Path:
    (folder / "strangers.py").write_text(OWN)
    text = (
        SMALL.replace('baseline = "full"', "").replace('name = "uniform"', f'name = "{policy}"').split("[variants]")[0]
    )
    return small_file(folder, f'scheduler = "{scheduler}"\n{text}')


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("weather.mean_c = nan", "weather.mean_c: nan is not a finite number"),
        ("weather.mean_c = 500", "weather.mean_c: 500 is not from -90 to 60"),
        ("plant.step_s = inf", "plant.step_s: inf is not a finite number"),
        ("plant.step_s = 1e-9", "plant.step_s: 1e-09 is not from 0.01 to 3600"),
        ("plant.sleep_w = inf", "plant.sleep_w: inf is not a finite number"),
        ("telemetry.lag_s = inf", "telemetry.lag_s: inf is not a finite number"),
        ("queue.depth = 100000000000000000", "queue.depth: 1e\\+17 is not from 1 to 1e\\+06"),
        ("cluster.nodes_per_rack = 1000000000", "cluster.nodes_per_rack: 1e\\+09 is not from 1 to 10000"),
        ("record_s = 1e-6", "record_s: 1e-06 is not from 0.1 to"),
        ("cluster.nodes = [{ count = 1000001 }]", "cluster.nodes: 1000001 nodes"),
    ],
)
def test_numbers_that_make_no_run_are_refused_with_file_and_key(line: str, said: str) -> None:
    with pytest.raises(InputError, match=f"^a.toml: {said}"):
        parse_experiment(line, "a.toml", Path())


def test_a_load_of_endlessly_many_jobs_is_refused_at_once() -> None:
    trace = TraceSetup(hours=1, load=0.5, duration_scale=1e-12)
    with pytest.raises(InputError, match=r"trace\.load: more than 50,000,000 jobs"):
        generate(trace, 1, ClusterSetup(nodes=[NodeGroup(4)]))


def test_a_trace_is_written_to_a_pipe_and_does_not_replace_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_trace(jobs_table([0], [1]), pipe)
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert json.loads(os.read(reader, 65_536).splitlines()[0])["type"] == "workload"
    finally:
        os.close(reader)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"policy": "strangers:Nameless"}, "policy strangers:Nameless has no `name`"),
        ({"policy": "strangers:Exits"}, "a policy or scheduler ended the program with exit code 0"),
        ({"scheduler": "strangers:One"}, "scheduler strangers:One gave ranks of shape (1,) for 5 nodes"),
        ({"scheduler": "strangers:Many"}, "scheduler strangers:Many gave ranks of shape (6,) for 5 nodes"),
    ],
)
def test_code_from_outside_that_breaks_its_contract_is_named_in_one_line(
    tmp_path: Path, own: dict[str, str], said: str
) -> None:
    done = joulie("lab", "run", str(with_own_code(tmp_path, **own)))
    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.slow
def test_what_a_policy_prints_is_kept_out_of_the_result(tmp_path: Path) -> None:
    done = joulie("lab", "run", str(with_own_code(tmp_path, policy="strangers:Talks")), "-o", "json")
    assert done.code == 0, done.err
    assert json.loads(done.out)[0]["measures"]["jobs"] > 0
    assert "hello" in done.err


@pytest.mark.slow
def test_a_run_says_which_bad_lines_of_its_trace_it_left_out(tmp_path: Path) -> None:
    pod = {"podTemplate": {"requests": {"cpu": "8"}}, "work": {"cpuUnits": 80}}
    good = json.dumps({"type": "job", "jobId": "a", "submitTimeOffsetSec": 0, **pod})
    (tmp_path / "two.jsonl").write_text(f"{good}\nrubbish\n")
    file = small_file(tmp_path, 'cluster.nodes = [{ count = 1 }]\ntrace = { file = "two.jsonl", skip_bad = true }\n')
    done = joulie("lab", "run", str(file), "-o", "json")
    assert json.loads(done.out)[0]["measures"]["jobs"] == 1
    assert "1 bad line left out:" in done.err
    assert "two.jsonl:2: " in done.err


@pytest.mark.slow
def test_a_job_that_never_started_is_explained(tmp_path: Path) -> None:
    file = str(with_own_code(tmp_path, policy="strangers:AllEco"))
    refused = joulie("lab", "run", file)
    assert "unfinished queue" in refused.err
    first = refused.err.partition("the first is ")[2].partition(";")[0]
    told = joulie("lab", "explain", file, first)
    assert told.code == 0, told.err
    assert "never started" in told.out
    assert "are eco, and the pod's class is performance" in told.out
    assert "when it was placed" not in told.out
    assert json.loads(joulie("lab", "explain", file, first, "-o", "json").out)["whenItWasPlaced"] is None


@pytest.mark.slow
def test_few_jobs_that_never_wait_have_a_report_and_a_device_is_written_to(tmp_path: Path) -> None:
    file = small_file(
        tmp_path,
        "seeds = 1\ncluster.nodes = [{ count = 3 }]\ntrace = { hours = 1, load = 0.3, duration_scale = 0.1 }\n",
    )
    kept, page = tmp_path / "kept", tmp_path / "page.html"
    assert joulie("lab", "run", str(file), "--keep", str(kept)).code == 0
    told = joulie("lab", "report", str(kept), "-o", str(page))
    assert told.code == 0, told.err
    assert page.read_text().startswith("<!doctype html>")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as others:
        read = others.submit(pipe.read_bytes)
        assert joulie("lab", "report", str(kept), "-o", str(pipe)).code == 0
        assert read.result() == page.read_bytes()
    assert pipe.is_fifo()

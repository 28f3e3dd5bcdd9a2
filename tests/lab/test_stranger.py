"""What somebody who does not know the lab did to it, and what the lab should say."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from joulie.errors import InputError
from joulie.lab.experiment import parse_experiment
from joulie.lab.generating import generate
from joulie.lab.setup import ClusterSetup, NodeGroup
from joulie.lab.trace_setup import TraceSetup
from joulie.lab.trace_writing import write_trace
from tests.cli_runner import joulie
from tests.lab.made import jobs_table
from tests.lab.small import SMALL, small_file

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
        ("weather.mean_c = nan", "weather.mean_c: nan is no finite number"),
        ("weather.mean_c = 500", "weather.mean_c: 500 is not from -90 to 60"),
        ("plant.step_s = inf", "plant.step_s: inf is no finite number"),
        ("plant.step_s = 1e-9", "plant.step_s: 1e-09 is not from 0.01 to 3600"),
        ("plant.sleep_w = inf", "plant.sleep_w: inf is no finite number"),
        ("telemetry.lag_s = inf", "telemetry.lag_s: inf is no finite number"),
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
    good = '{"type":"job","jobId":"a","submitTimeOffsetSec":0,"podTemplate":{"requests":{"cpu":"8"}},"work":{"cpuUnits":80}}'
    (tmp_path / "two.jsonl").write_text(f"{good}\nrubbish\n")
    file = small_file(tmp_path, 'cluster.nodes = [{ count = 1 }]\ntrace = { file = "two.jsonl", skip_bad = true }\n')
    done = joulie("lab", "run", str(file), "-o", "json")
    assert json.loads(done.out)[0]["measures"]["jobs"] == 1
    assert "1 bad line left out:" in done.err
    assert "two.jsonl:2: " in done.err

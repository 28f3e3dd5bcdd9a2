"""Sweeps whose processes are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from joulie.lab.model.refusals import LabError
from joulie.lab.runs.store import RUNS
from joulie.lab.runs.sweep import sweep
from joulie.lab.runs.workers import Children, Dask
from tests.lab.small import SMALL, Watched, dask_cluster, digests, small_experiment, small_file

PATIENCE_S = 120.0
LONG = SMALL.replace("seeds = [3, 4]", "seeds = 200")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("lab_sweep")]


def started(folder: Path) -> subprocess.Popen[str]:
    file = small_file(folder, LONG)
    command = [sys.executable, "-m", "joulie", "lab", "sweep", str(file), "-r", str(folder / "r"), "--workers", "2"]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def begun(folder: Path) -> subprocess.Popen[str]:
    """A long sweep on two processes, of which some runs are done."""
    process = started(folder)
    until_s = time.monotonic() + 600
    while len(kept(folder)) < 3:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until_s
        time.sleep(0.02)
    return process


def kept(folder: Path) -> list[Path]:
    return list(folder.glob(f"r/{RUNS}/[!.]*"))


def workers_of(process: subprocess.Popen[str]) -> list[Any]:
    workers: list[Any] = import_module("psutil").Process(process.pid).children(recursive=True)
    return workers


def wait_until_no_process_is_left(workers: list[Any]) -> None:
    assert workers
    _, alive = import_module("psutil").wait_procs(workers, timeout=PATIENCE_S)
    assert alive == []


def test_a_worker_that_is_killed_ends_the_sweep_with_one_line_and_no_process_is_left(tmp_path: Path) -> None:
    process = begun(tmp_path)
    workers = workers_of(process)

    workers[0].kill()
    out, said = process.communicate(timeout=PATIENCE_S)

    assert (process.returncode, out) == (1, "")
    assert len(said.splitlines()) == 1, said
    assert "a worker process ended by itself at " in said
    assert "(SIGKILL), perhaps for lack of memory" in said
    assert len(kept(tmp_path)) >= 3
    assert not list(tmp_path.glob(f"r/{RUNS}/.unfinished-*"))
    wait_until_no_process_is_left(workers)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_killing_the_sweep_prints_no_complaint_and_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    process = begun(tmp_path)
    workers = workers_of(process)

    process.send_signal(number)
    out, said = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == -number
    assert (out, said) == ("", "")
    wait_until_no_process_is_left(workers)


def test_ctrl_c_at_a_terminal_ends_all_in_order_even_while_workers_begin(tmp_path: Path) -> None:
    process = started(tmp_path)
    until_s = time.monotonic() + PATIENCE_S
    while not (workers := workers_of(process)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until_s
        time.sleep(0.001)

    os.killpg(process.pid, signal.SIGINT)
    out, said = process.communicate(timeout=PATIENCE_S)

    assert (process.returncode, out) == (130, "")
    assert said == "joulie: stopped; finished runs are stored, and the same command resumes with the rest\n"
    wait_until_no_process_is_left(workers)


def test_a_run_that_kills_its_own_process_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text(
        "import os, signal\n"
        "class Deadly:\n"
        "    name = 'deadly'\n"
        "    def plan(self, view):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    text = SMALL + "last = { policy.name = 'deadly:Deadly' }\n"

    with pytest.raises(LabError, match=r"^a worker process ended by itself at last, seed [34] \(SIGKILL\)"):
        sweep(small_experiment(text, tmp_path), tmp_path / "r", Children(1), Watched())

    assert len(digests(tmp_path / "r")) == 4


def test_a_dask_cluster_without_workers_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    with (
        dask_cluster(0) as cluster,
        pytest.raises(LabError, match="there is no Dask worker"),
    ):
        sweep(small_experiment(), tmp_path, Dask(cluster.scheduler_address, patience_s=2.0), Watched())

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

from joulie.lab.children import Children
from joulie.lab.refusals import LabError
from joulie.lab.store import RUNS
from joulie.lab.sweep import sweep
from joulie.lab.working import Dask
from tests.lab.small import SMALL, Watched, digests, small_experiment, small_file

PATIENCE_S = 120.0
LONG = SMALL.replace("seeds = [3, 4]", "seeds = 200")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("lab_sweep")]


def begun(folder: Path) -> subprocess.Popen[str]:
    """A long sweep on two processes, of which some runs are done."""
    file = small_file(folder, LONG)
    command = [sys.executable, "-m", "joulie", "lab", "sweep", str(file), "-r", str(folder / "r"), "--workers", "2"]
    process = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until_s = time.monotonic() + 600
    while len(kept(folder)) < 3:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until_s
        time.sleep(0.02)
    return process


def kept(folder: Path) -> list[Path]:
    return list(folder.glob(f"r/{RUNS}/[!.]*"))


def wait_until_nobody_is_left(group: int) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        assert time.monotonic() < until_s, "a process lives on"
        time.sleep(0.05)


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    psutil: Any = import_module("psutil")
    return [child.pid for child in psutil.Process(process.pid).children() if "spawn_main" in " ".join(child.cmdline())]


def test_a_worker_that_is_killed_ends_the_sweep_with_one_line_and_nobody_is_left(tmp_path: Path) -> None:
    process = begun(tmp_path)

    os.kill(workers_of(process)[0], signal.SIGKILL)
    out, said = process.communicate(timeout=PATIENCE_S)

    assert (process.returncode, out) == (1, "")
    assert len(said.splitlines()) == 1, said
    assert "a worker process ended by itself at " in said
    assert "(SIGKILL), perhaps for lack of memory" in said
    assert len(kept(tmp_path)) >= 3
    assert not list(tmp_path.glob(f"r/{RUNS}/.unfinished-*"))
    wait_until_nobody_is_left(process.pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_who_kills_the_sweep_hears_no_complaint_and_nobody_is_left(tmp_path: Path, number: signal.Signals) -> None:
    process = begun(tmp_path)

    process.send_signal(number)
    out, said = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == -number
    assert (out, said) == ("", "")
    wait_until_nobody_is_left(process.pid)


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
    distributed: Any = import_module("distributed")
    with (
        distributed.LocalCluster(n_workers=0, processes=True, dashboard_address=None) as cluster,
        pytest.raises(LabError, match="there is no Dask worker"),
    ):
        sweep(small_experiment(), tmp_path, Dask(cluster.scheduler_address, patience_s=2.0), Watched())

"""Nothing is left behind: not after a stop, not after Ctrl-C, not after the death of the process that started it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed.control_plane import ControlPlane
from testbed.processes import Processes, ProcessFailed

pytestmark = pytest.mark.usefixtures("control_plane_binaries")

ROOT = Path(__file__).resolve().parents[2]
HOLDER = """
import sys, threading
from testbed.control_plane import ControlPlane
plane = ControlPlane()
plane.scheduler()
print(plane.folder, flush=True)
threading.Event().wait()
"""


def running(folder: Path) -> list[str]:
    """Command lines that mention the folder of a control plane."""
    listing = subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listing.splitlines() if str(folder) in line]


@contextmanager
def session(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A process that does not outlive the test, whatever the test finds."""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def eventually(holds: Callable[[], bool], timeout_s: float = 20) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline_s, "it never came true"
        time.sleep(0.05)


def test_a_stop_ends_every_process_and_removes_the_folder() -> None:
    with ControlPlane() as plane:
        plane.scheduler()
        pids = plane.pids
        assert len(pids) == 3
        assert running(plane.folder)
    assert running(plane.folder) == []
    assert not plane.folder.exists()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_second_stop_does_nothing() -> None:
    plane = ControlPlane()
    plane.stop()
    plane.stop()


def test_a_killed_test_process_takes_its_control_plane_along() -> None:
    with session([sys.executable, "-c", HOLDER]) as holder:
        folder = Path(holder.stdout.readline().strip()) if holder.stdout else Path()
        assert len(running(folder)) == 4, "etcd, kube-apiserver, kube-scheduler and the watchdog"
        holder.kill()
    eventually(lambda: not running(folder) and not folder.exists())


def test_a_server_that_cannot_start_says_why_and_leaves_nothing() -> None:
    with pytest.raises(ProcessFailed, match="unknown flag: --no-such-flag") as failure:
        ControlPlane(["--no-such-flag"])
    assert "kube-apiserver ended with code" in str(failure.value)


def test_a_process_that_never_gets_ready_is_ended(tmp_path: Path) -> None:
    processes = Processes(tmp_path / "folder")
    processes.folder.mkdir()
    child = processes.start("sleeper", [sys.executable, "-c", "import time; print('busy', flush=True); time.sleep(60)"])
    with pytest.raises(ProcessFailed, match=r"sleeper was not ready after 1 s:\nbusy"):
        child.wait_until(lambda: False, timeout_s=1)
    assert not child.running
    processes.close()


def test_make_cluster_fills_a_cluster_until_it_is_interrupted(kubectl: Path) -> None:
    command = [sys.executable, "-m", "testbed", "--nodes", "20", "--pods-per-node", "2"]
    with session(command) as cluster:
        assert cluster.stdout
        said = ""
        while "Ctrl-C" not in said:
            line = cluster.stdout.readline()
            assert line, said
            said += line
        kubeconfig = Path(re.findall(r"KUBECONFIG=(\S+)", said)[0])
        assert f"alias kubectl={kubectl}" in said
        environment = {"KUBECONFIG": str(kubeconfig), "HOME": str(kubeconfig.parent)}
        nodes = subprocess.run([kubectl, "get", "nodes"], env=environment, capture_output=True, text=True, check=True)
        assert len(re.findall(r"(?m)^node-\d+ +Ready ", nodes.stdout)) == 20
        assert len(running(kubeconfig.parent)) == 3
        cluster.send_signal(signal.SIGINT)
        assert cluster.wait(30) == 0
        assert "stopped" in cluster.stdout.read()
    assert running(kubeconfig.parent) == []
    assert not kubeconfig.exists()

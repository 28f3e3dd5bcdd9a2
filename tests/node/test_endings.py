"""Nothing is left behind: not after Ctrl-C, not when the owner is killed, and not when its keeper is."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from testbed.node import cgroups
from testbed.node.mounts import KERNEL_SETTINGS
from tests.chart.kubelet import until

pytestmark = pytest.mark.usefixtures("node_parts")

ROOT = Path(__file__).resolve().parents[2]


class Machine(NamedTuple):
    """What a node could leave changed."""

    mounts: tuple[str, ...]
    links: tuple[str, ...]
    settings: tuple[str, ...]
    state: tuple[str, ...]


def machine() -> Machine:
    return Machine(
        tuple(sorted(Path("/proc/self/mounts").read_text().splitlines())),
        tuple(sorted(path.name for path in Path("/sys/class/net").iterdir())),
        tuple(Path("/proc/sys", name).read_text() for name in KERNEL_SETTINGS),
        tuple(sorted(path.name for path in Path("/var/lib").iterdir())),
    )


class Playing(NamedTuple):
    """`make node` as a process, with a node that runs."""

    process: subprocess.Popen[str]
    folder: Path

    @property
    def keeper(self) -> int:
        (only,) = children(self.process.pid)
        return only

    @property
    def processes(self) -> set[int]:
        """All in the node's network."""
        (unshare,) = children(self.keeper)
        (init,) = children(unshare)
        return in_network(Path(f"/proc/{init}/ns/net").readlink())

    def is_gone(self) -> bool:
        return not self.folder.exists() and not cgroups.groups(self.folder.name)


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found]


def in_network(network: Path) -> set[int]:
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "ns/net").readlink() == network:
                found.add(int(process.name))
        except OSError:  # ended meanwhile, or ending
            continue
    return found


@contextmanager
def playing() -> Iterator[Playing]:
    command = [sys.executable, "-m", "testbed.node"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            said = ""
            while "Ctrl-C" not in said:
                line = process.stdout.readline()
                assert line, "it ended"
                said += line
            found = re.search(r"KUBECONFIG=(.+)/kubeconfig", said)
            assert found
            yield Playing(process, Path(found[1]))
        finally:
            process.kill()


def test_ctrl_c_leaves_the_machine_as_it_was() -> None:
    before = machine()
    with playing() as node:
        within = node.processes
        assert len(within) > 8
        assert machine() == before
        node.process.send_signal(signal.SIGINT)
        assert node.process.wait(30) == 0
        assert node.is_gone()
        assert not {pid for pid in within if Path(f"/proc/{pid}").exists()}
    assert machine() == before


def test_a_killed_keeper_takes_its_node_along_and_a_killed_owner_too() -> None:
    with playing() as first:
        within = first.processes
        os.kill(first.keeper, signal.SIGKILL)
        until(lambda: not any(Path(f"/proc/{pid}/ns/net").exists() for pid in within), "all processes have ended")
        assert not first.is_gone(), "who could have removed its control groups?"
    with playing() as second:
        assert first.is_gone()  # the next keeper did
        within = second.processes
        os.kill(second.process.pid, signal.SIGKILL)
        until(second.is_gone, "its keeper has cleared up")
        assert not any(Path(f"/proc/{pid}/ns/net").exists() for pid in within)

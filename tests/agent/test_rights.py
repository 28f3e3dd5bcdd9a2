"""What the agent needs of the machine: it runs as UID 0 with every capability dropped, and says what that costs it.

Files of a fake /sys stand for the host's: they belong to root and are writable by it, as the kernel's own are.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.agent.agent_processes import AgentProcess
from tests.agent.test_process import TWINS, applied, limits, put
from tests.agent.world import node, twin
from tests.devices.sysfs_pieces import Tree
from tests.devices.sysfs_trees import build

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

SETPRIV = shutil.which("setpriv")
DROPPED = ("--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs")
NOBODY = 65534

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SETPRIV is None or os.geteuid() != 0, reason="needs setpriv and UID 0 to drop rights from"),
]


def _started(plane: ControlPlane, folder: Path, tree: Tree, *more: str, **settings: str) -> AgentProcess:
    put(plane, node("a"), twin("a", 60))
    return AgentProcess(
        plane,
        folder,
        before=(str(SETPRIV), *DROPPED, *more),
        **{"NODE_NAME": "a", "HOST_SYS_PATH": str(tree.sys), "RECONCILE_INTERVAL": "500ms", **settings},
    )


def _control(plane: ControlPlane, kind: str = "cpu") -> dict[str, Any]:
    status = plane.api.get(f"{TWINS}/a").get("status", {})
    told: dict[str, Any] = status.get("controlStatus", {}).get(kind, {})
    return told


def _capabilities(agent: AgentProcess) -> set[str]:
    lines = Path(f"/proc/{agent.process.pid}/status").read_text().splitlines()
    return {line.split()[1] for line in lines if line.startswith(("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"))}


@pytest.mark.parametrize("machine", ["intel-xeon-6148-dual", "amd-epyc-9654-hsmp", "arm-altra-dual"])
def test_as_root_without_any_capability_cpu_caps_work_and_are_put_back(
    fresh_cluster: ControlPlane, tmp_path: Path, machine: str
) -> None:
    tree = build(machine, tmp_path)
    before = _contents(tree.sys)
    with _started(fresh_cluster, tmp_path, tree) as agent:
        agent.wait_until(lambda: applied(fresh_cluster), 30, "it is capped")
        assert _capabilities(agent) == {"0000000000000000"}
        assert _contents(tree.sys) != before
        assert agent.stop() == 0
    assert _contents(tree.sys) == before


def _hardware(plane: ControlPlane, agent: AgentProcess) -> dict[str, Any]:
    """What is published of the node's hardware; twins may be told first."""
    path = "/apis/joulie.io/v1alpha1/nodehardwares/a"
    agent.wait_until(lambda: "status" in plane.api.get(path), 30, "hardware is published")
    status: dict[str, Any] = plane.api.get(path)["status"]
    return status


def _contents(folder: Path) -> dict[str, str]:
    """What stands in every file that can be written; counters that only the hardware moves are left out."""
    return {
        str(path): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and path.stat().st_mode & stat.S_IWUSR
    }


def test_a_limit_that_root_may_not_write_is_blocked_and_frequency_stands_in(
    fresh_cluster: ControlPlane, tmp_path: Path
) -> None:
    """Without CAP_DAC_OVERRIDE the mode of a file counts for root, too; with it, it would not."""
    tree = build("intel-xeon-6148-dual", tmp_path)
    for path in (tree.sys / "devices").rglob("constraint_*_power_limit_uw"):
        path.chmod(0o444)
    found = limits(tree)
    with _started(fresh_cluster, tmp_path, tree) as agent:
        agent.wait_until(lambda: applied(fresh_cluster), 30, "it is throttled")
        assert _control(fresh_cluster)["backend"] == "dvfs"
        assert limits(tree) == found
        hardware = _hardware(fresh_cluster, agent)
        assert hardware["cpu"]["controlAvailable"] is True
        assert agent.stop() == 0


def test_another_user_is_told_that_uid_0_is_needed(fresh_cluster: ControlPlane, tmp_path: Path) -> None:
    tree = build("intel-xeon-6148-dual", tmp_path)
    for folder in (tmp_path, *tmp_path.parents):  # to be able to walk there at all
        if folder.stat().st_uid == 0 and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH | stat.S_IROTH)
    state = tmp_path / "state"
    state.mkdir()
    os.chown(state, NOBODY, NOBODY)
    found = limits(tree)
    user = ("--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")
    with _started(fresh_cluster, tmp_path, tree, *user, STATE_DIR=str(state)) as agent:
        agent.wait_until(lambda: _control(fresh_cluster).get("result") == "blocked", 30, "it is blocked")
        assert "UID 0" in _control(fresh_cluster)["message"]
        assert limits(tree) == found
        hardware = _hardware(fresh_cluster, agent)
        assert hardware["capabilities"]["cpuControl"] is False
        assert agent.stop() == 0


def test_without_a_place_for_the_journal_nothing_is_capped(fresh_cluster: ControlPlane, tmp_path: Path) -> None:
    """What could not be put back after a crash is not done."""
    tree = build("intel-xeon-6148-dual", tmp_path)
    blocked = tmp_path / "a-file"
    blocked.write_text("")
    found = limits(tree)
    with _started(fresh_cluster, tmp_path, tree, STATE_DIR=str(blocked / "state")) as agent:
        agent.wait_until(lambda: _control(fresh_cluster).get("result") == "blocked", 30, "it is blocked")
        assert "a-file" in _control(fresh_cluster)["message"]
        assert limits(tree) == found
        assert agent.stop() in (0, 1)


def test_gpus_that_cannot_be_reached_are_blocked_with_the_reason(fresh_cluster: ControlPlane, tmp_path: Path) -> None:
    """No driver in sight, or no SYS_ADMIN for NVML: the CPU is capped all the same."""
    tree = build("intel-xeon-6148-dual", tmp_path)
    put(fresh_cluster, node("a", gpus=2))
    put(fresh_cluster, twin("a", 60, gpu_pct=60))
    agent = AgentProcess(
        fresh_cluster,
        tmp_path,
        before=(str(SETPRIV), *DROPPED),
        NODE_NAME="a",
        HOST_SYS_PATH=str(tree.sys),
        RECONCILE_INTERVAL="500ms",
    )
    with agent:
        agent.wait_until(lambda: applied(fresh_cluster), 30, "the CPU is capped")
        agent.wait_until(lambda: _control(fresh_cluster, "gpu").get("result") == "blocked", 30, "GPUs are blocked")
        assert _control(fresh_cluster, "gpu")["message"]
        hardware = _hardware(fresh_cluster, agent)
        assert (hardware["gpu"]["present"], hardware["gpu"]["controlAvailable"]) == (True, False)
        assert agent.stop() == 0

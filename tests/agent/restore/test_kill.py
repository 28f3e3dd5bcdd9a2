"""kill -9 at every line of a write sequence: the next agent knows what was found."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from joulie.agent.outcome import CapLimits, Enforced
from joulie.agent.restore.cap_lease import CapLease
from joulie.agent.restore.journal import read_boot_id
from joulie.agent.targets import CapTarget
from joulie.devices.amd.boards import AmdBoards
from joulie.devices.cpufreq.capper import Cpufreq
from joulie.devices.gpu.capper import GpuCapper
from joulie.devices.hsmp.capper import Hsmp
from joulie.devices.interface import Capper, DeviceError, Knob
from joulie.devices.rapl.capper import Rapl
from joulie.settings import DvfsSettings
from tests.agent.held_nodes import TICK_S, Held, WholeWrites, entries_on_disk, run, target
from tests.agent.restore.killing import kill_at, moments
from tests.devices.amd.hwmon_tree import AmdgpuTree
from tests.devices.enforcing import Clock
from tests.devices.sysfs_trees import build
from tests.support.cli_runner import Outcome, joulie


class Machine(NamedTuple):
    """A machine, what its agent is told one after the other, and what a later agent is told."""

    sys: Callable[[Path], Path]
    cappers: Callable[[WholeWrites], Sequence[Capper]]
    limits: CapLimits
    targets: tuple[CapTarget, ...]
    later: CapTarget


def of(name: str) -> Callable[[Path], Path]:
    return lambda folder: build(name, folder).sys


def with_amd_gpus(folder: Path) -> Path:
    tree = AmdgpuTree(folder)
    for address in ("0000:83:00.0", "0000:c3:00.0"):
        tree.board(address, cap=280, cap_min=100, cap_max=300, cap_default=300, average=42)
    return tree.sys


MACHINES = {
    "rapl": Machine(
        of("intel-xeon-6530-dual"),  # limits far too high and switched off, so that each knob matters
        lambda sysfs: [Rapl(sysfs, Clock(), catalogue_max_w=270.0)],
        CapLimits(cpu_max_w=540.0),
        (target(cpu_pct=60), target(cpu_w=250), target(cpu_pct=100), target(cpu_w=300)),
        target(cpu_w=200),
    ),
    "hsmp": Machine(
        of("amd-epyc-9654-hsmp"),
        lambda sysfs: [Hsmp(sysfs)],
        CapLimits(cpu_max_w=800.0),
        (target(cpu_pct=60), target(cpu_w=500)),
        target(cpu_w=400),
    ),
    "dvfs": Machine(
        of("arm-cm4"),
        lambda sysfs: [Rapl(sysfs, Clock()), Cpufreq(sysfs, DvfsSettings(min_freq_khz=600_000))],
        CapLimits(),
        (target(cpu_pct=60), target(cpu_pct=30)),
        target(cpu_pct=50),
    ),
    "gpus": Machine(
        with_amd_gpus,
        lambda sysfs: [GpuCapper(AmdBoards(sysfs))],
        CapLimits(gpu_max_w_each=300.0),
        (target(gpu_pct=60), target(gpu_w=150)),
        target(gpu_w=200),
    ),
}


class Remains(NamedTuple):
    """What a killed agent leaves behind: the device and the disk."""

    values: tuple[int, ...]
    files: tuple[tuple[str, bytes], ...]


class Scene:
    """One machine that an agent is killed on, again and again, always starting from the same state."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self.machine = machine
        self.sys = machine.sys(folder)
        self.state_dir = folder / "state"
        knobs = [knob for capper in self.cappers() for knob in _knobs(capper)]
        self.files = {knob: _file(self.sys, knob) for knob in knobs}
        self.found = self.values

    def cappers(self) -> Sequence[Capper]:
        """Of a new process."""
        return self.machine.cappers(WholeWrites(self.sys))

    def begin(self, remains: Remains | None = None) -> None:
        """As the machine was before Joulie, or as a killed agent left it."""
        shutil.rmtree(self.state_dir, ignore_errors=True)
        for file, value in zip(self.files.values(), remains.values if remains else self.found.values(), strict=True):
            file.write_text(f"{value}\n")
        for name, content in remains.files if remains else ():
            self.state_dir.mkdir(exist_ok=True)
            (self.state_dir / name).write_bytes(content)

    def remains(self) -> Remains:
        files = sorted(self.state_dir.iterdir()) if self.state_dir.exists() else []
        return Remains(tuple(self.values.values()), tuple((path.name, path.read_bytes()) for path in files))

    @property
    def values(self) -> dict[Knob, int]:
        return {knob: int(file.read_text()) for knob, file in self.files.items()}

    def agent(self) -> Held:
        return Held(self.state_dir, self.cappers(), limits=self.machine.limits, boot_id=read_boot_id())

    def live(self) -> None:
        """What the agent does until it is killed: cap, cap anew, and put back."""
        held = self.agent()
        for wanted in self.machine.targets:
            assert _applied(held.enforce(wanted))
        assert held.restore().left == ()


@pytest.fixture(params=MACHINES)
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    return Scene(MACHINES[request.param], tmp_path)


@pytest.mark.slow
def test_killed_at_any_line_the_next_agent_enforces_its_target_and_still_knows_what_it_found(scene: Scene) -> None:
    scene.agent().enforce(scene.machine.later)
    as_wanted = scene.values
    scene.begin()
    lines, killing_lines = moments(scene.live, scene.remains)
    for line in killing_lines:
        scene.begin()
        kill_at(line, scene.live)
        where = f"killed at line {line} of {lines}"
        remains = scene.remains()
        entries = entries_on_disk(scene.state_dir)
        for knob, value in scene.values.items():
            assert value == scene.found[knob] or entries[knob.device, knob.attribute]["found"] == scene.found[knob], (
                where
            )

        held = scene.agent()
        assert _applied(held.enforce(scene.machine.later)), where
        assert (held.journal.found, scene.values) == (scene.found, as_wanted), where
        assert held.restore().left == (), where
        assert scene.values == scene.found, where

        scene.begin(remains)
        _nothing_is_wanted(scene)
        assert scene.values == scene.found, where
        assert entries_on_disk(scene.state_dir) == {}, where

        scene.begin(remains)
        assert restore_command(scene).code == 0, where
        assert scene.values == scene.found, where
        assert entries_on_disk(scene.state_dir) == {}, where
    assert lines > 500
    assert len(killing_lines) >= 20


def restore_command(scene: Scene) -> Outcome:
    """`joulie agent restore`, as a hook runs it."""
    variables = {"STATE_DIR": str(scene.state_dir), "HOST_SYS_PATH": str(scene.sys)}
    return joulie("agent", "restore", env=variables)


def _nothing_is_wanted(scene: Scene) -> None:
    """A new agent that never hears of a target."""
    held = scene.agent()
    lease = CapLease("node-1", lease_s=600.0, action="restore", interval_s=TICK_S, started_at_s=0.0)
    for tick in range(1, 5):
        verdict = lease.judge(now_s=tick * TICK_S, last_contact_s=tick * TICK_S, target=None, twin_age_s=None)
        if verdict.act == "restore":
            assert held.restore().left == ()
        else:
            assert held.hold().wrote == 0


def _applied(enforced: Enforced) -> bool:
    return {enforced.cpu.result, enforced.gpu.result} == {"applied", "none"}


def _file(sys: Path, knob: Knob) -> Path:
    if knob.device.startswith("/sys/"):
        return sys / knob.device.removeprefix("/sys/") / knob.attribute
    return next(sys.glob(f"devices/pci*/{knob.device}/hwmon/hwmon*/power1_cap"))


def _knobs(capper: Capper) -> Sequence[Knob]:
    try:
        return run(capper.knobs())
    except DeviceError:  # what is not there has none
        return []

"""One node under control, for tests: targets, journals, devices and the ticks of an agent."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from joulie.agent.enforcement.dvfs_loop import PowerReader
from joulie.agent.enforcement.node_control import NodeControl
from joulie.agent.outcome import CapLimits, Enforced
from joulie.agent.restore.journal import Journal, journal_path
from joulie.agent.targets import CapTarget
from joulie.devices.interface import Capper
from joulie.devices.sysfs import SysFs
from joulie.settings import DvfsSettings
from tests.devices.fake_capper import FakeCapper

NODE = "node-1"
BOOT = "boot-1"
TICK_S = 20.0
T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def target(
    cpu_w: float | None = None,
    cpu_pct: float | None = None,
    gpu_w: float | None = None,
    gpu_pct: float | None = None,
) -> CapTarget:
    return CapTarget(
        profile="eco",
        chosen_by="static_partition",
        origin="twin",
        cpu_w_each=cpu_w,
        cpu_pct=cpu_pct,
        gpu_w_each=gpu_w,
        gpu_pct=gpu_pct,
    )


def journal(state_dir: Path, boot_id: str = BOOT) -> Journal:
    return Journal.open(journal_path(state_dir), node=NODE, boot_id=boot_id)


def entries_on_disk(state_dir: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """By device and attribute; nothing where there is no journal."""
    try:
        contents = json.loads(journal_path(state_dir).read_bytes())
    except FileNotFoundError:
        return {}
    return {(entry["device"], entry["attribute"]): entry for entry in contents["entries"]}


def rapl() -> FakeCapper:
    return FakeCapper("cpu", "watts", name="rapl")


def dvfs() -> FakeCapper:
    return FakeCapper("cpu", "throttle_pct", name="dvfs")


def gpus(found: float | None = None) -> FakeCapper:
    return FakeCapper("gpu", "watts_each", name="nvidia", min_w=100.0, max_w=400.0, found=found)


class Held:
    """A node with these devices; each call is one tick of an agent. `restart` forgets all but the disk."""

    def __init__(
        self,
        state_dir: Path,
        cappers: Sequence[Capper],
        *,
        limits: CapLimits | None = None,
        power: Callable[[], float | None] | None = None,
        sensor: PowerReader | None = None,
        dvfs: DvfsSettings | None = None,
        simulate_only: bool = False,
        boot_id: str = BOOT,
    ) -> None:
        self.state_dir = state_dir
        self.cappers = cappers
        self.limits = limits or CapLimits(cpu_max_w=400.0, gpu_max_w_each=400.0)
        self.now_s = 1000.0
        self.power = power
        self._sensor = sensor or (None if power is None else self._read_power)
        self._dvfs = dvfs or DvfsSettings()
        self._simulate_only = simulate_only
        self._boot_id = boot_id
        self.restart()

    def restart(self, boot_id: str | None = None) -> None:
        self.journal = journal(self.state_dir, boot_id or self._boot_id)
        self.control = NodeControl(
            NODE,
            self.cappers,
            self.journal,
            dvfs=self._dvfs,
            cpu_power=self._sensor,
            simulate_only=self._simulate_only,
        )

    def enforce(self, wanted: CapTarget) -> Enforced:
        self.now_s += TICK_S
        return run(self.control.enforce(wanted, self.limits, self.now_s))

    def hold(self) -> Enforced:
        self.now_s += TICK_S
        return run(self.control.hold(self.now_s))

    def restore(self) -> Enforced:
        return run(self.control.restore())

    async def _read_power(self) -> float | None:
        assert self.power is not None
        return self.power()


class WholeWrites(SysFs):
    """Files that, like a kernel's, take a value in one piece: a process killed in between leaves the old or the new."""

    def _open(self, file: str, flags: int) -> int:
        if flags & os.O_WRONLY:
            flags = flags & ~(os.O_TRUNC | os.O_WRONLY) | os.O_RDWR
        return super()._open(file, flags)

    def _put(self, handle: int, path: str, content: bytes) -> None:
        os.pwrite(handle, content.ljust(os.fstat(handle).st_size, b"\n"), 0)

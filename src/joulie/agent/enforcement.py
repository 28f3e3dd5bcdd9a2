"""What one node is held to, and how it is let go: the only door to its devices (SPEC 7 and 14)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from joulie.agent.actuator import Actuator
from joulie.agent.cpu import CpuControl
from joulie.agent.dvfs_loop import DvfsView, PowerReader
from joulie.agent.gpu import GpuControl
from joulie.agent.journal import Entry, Journal
from joulie.agent.outcome import Enforced, Limits, Notice, Outcome
from joulie.agent.targets import Target
from joulie.devices.interface import Capper
from joulie.settings import DvfsSettings

_WAITING = Outcome("none", message="no target has been seen yet")
_RELEASED = Outcome("none")


class NodeControl:
    """Enforces the target of one node through its backends, which are given in the order of preference.

    Calls exclude each other. What goes wrong with a device or with the journal is in the answer, never raised.
    """

    def __init__(
        self,
        node: str,
        cappers: Sequence[Capper],
        journal: Journal,
        *,
        dvfs: DvfsSettings,
        cpu_power: PowerReader | None = None,
        simulate_only: bool = False,
        offload_journal: bool = False,
    ) -> None:
        self.node = node
        self._journal = journal
        self._actuators = [
            Actuator(capper, journal, offload_journal=offload_journal, simulate=simulate_only) for capper in cappers
        ]
        self._cpu = CpuControl([a for a in self._actuators if a.capper.kind == "cpu"], dvfs, cpu_power)
        self._gpu = GpuControl([a for a in self._actuators if a.capper.kind == "gpu"])
        self.simulate_only = simulate_only
        self._last: tuple[Target, Limits] | None = None
        self._said_left: tuple[str, ...] = ()
        self._one_at_a_time = asyncio.Lock()

    @property
    def cpu_mode(self) -> Literal["none", "rapl", "dvfs"]:
        """How the CPU cap is held."""
        return self._cpu.mode

    @property
    def dvfs(self) -> DvfsView:
        return self._cpu.dvfs

    @property
    def corrections_total(self) -> int:
        """How often somebody else's change was put back."""
        return sum(actuator.corrections.total for actuator in self._actuators)

    @property
    def foreign(self) -> tuple[Entry, ...]:
        """Entries of backends that this node is not routed to (any more)."""
        owners = {actuator.owner for actuator in self._actuators}
        return tuple(entry for entry in self._journal.entries if entry.backend not in owners)

    async def enforce(self, target: Target, limits: Limits, now_s: float) -> Enforced:
        """Bring the target into force, or find that it still is."""
        async with self._one_at_a_time:
            self._last = target, limits
            return await self._tick(target, limits, now_s)

    async def hold(self, now_s: float) -> Enforced:
        """Go on with the last target that this process was given; without one, touch nothing."""
        async with self._one_at_a_time:
            if self._last is None:
                return Enforced(_WAITING, _WAITING, self._notices())
            return await self._tick(*self._last, now_s)

    async def restore(self) -> Enforced:
        """Everything as found. To be called again while something is `left`; once complete it costs nothing."""
        async with self._one_at_a_time:
            self._last = None
            before = self._counts()
            had_entries = bool(self._journal.entries)
            left = [str(item) for part in (self._cpu, self._gpu) for item in await part.release()]
            left += [
                f"{entry.device} {entry.attribute} is not restored: {entry.backend or 'its backend'} is not routed here"
                for entry in self.foreign
            ]
            if self._journal.lost:
                left.append(self._journal.lost)
            if had_entries and not left and not self.simulate_only:
                self._cpu.notices.append(Notice("CapsRestored", "every device is as it was found"))
            self._say_left(tuple(left))
            return self._enforced(_RELEASED, _RELEASED, before, tuple(left))

    async def close(self) -> None:
        """Let go of the devices as they are; writes nothing."""
        async with self._one_at_a_time:
            for actuator in self._actuators:
                await actuator.capper.close()

    async def _tick(self, target: Target, limits: Limits, now_s: float) -> Enforced:
        before = self._counts()
        cpu = await self._cpu.enforce(target, limits, now_s)
        gpu = await self._gpu.enforce(target, limits, now_s)
        if self.simulate_only:
            cpu, gpu = _only_simulated(cpu), _only_simulated(gpu)
        return self._enforced(cpu, gpu, before, ())

    def _enforced(self, cpu: Outcome, gpu: Outcome, before: tuple[int, int], left: tuple[str, ...]) -> Enforced:
        wrote, corrected = self._counts()
        return Enforced(cpu, gpu, self._notices(), wrote - before[0], corrected - before[1], left)

    def _counts(self) -> tuple[int, int]:
        return sum(actuator.wrote for actuator in self._actuators), self.corrections_total

    def _say_left(self, left: tuple[str, ...]) -> None:
        if left and left != self._said_left:
            message = f"not everything could be restored; it stays in the journal: {'; '.join(left)}"
            self._cpu.notices.append(Notice("RestoreIncomplete", message, "warning", event=True))
        self._said_left = left

    def _notices(self) -> tuple[Notice, ...]:
        sources = (self._journal.notices, self._cpu.notices, self._gpu.notices)
        notices = tuple(notice for source in sources for notice in source)
        for source in sources:
            source.clear()
        return notices


def _only_simulated(outcome: Outcome) -> Outcome:
    """A cap that was only thought of is not in force, and must not count as if it were."""
    if outcome.result != "applied":
        return outcome
    return replace(outcome, result="blocked", message=f"SIMULATE_ONLY, nothing is written: {outcome.message}")

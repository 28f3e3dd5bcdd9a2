"""What one node is held to, and how it is released: the only way to its devices."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from joulie.agent.enforcement.actuator import Actuator
from joulie.agent.enforcement.cpu import CpuControl
from joulie.agent.enforcement.dvfs_loop import DvfsView, PowerReader
from joulie.agent.enforcement.gpu import GpuControl
from joulie.agent.outcome import CapLimits, CapOutcome, Enforced, Notice, ReportedCap
from joulie.agent.restore.journal import Journal, JournalEntry
from joulie.agent.targets import CapTarget
from joulie.devices.interface import BurstCapper, Capper, Knob
from joulie.settings import DvfsSettings

_WAITING = CapOutcome("none", message="no target has been seen yet")
_RELEASED = CapOutcome("none")


class NodeControl:
    """Enforces the target of one node through its backends, which are given in the order of preference.

    Calls exclude each other. Faults of a device or of the journal are in the answer, never raised.
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
        self.elsewhere: dict[Knob, str] = {}  # why what other routes capped is not put back (yet)
        self._last: tuple[CapTarget, CapLimits] | None = None
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
        """How often a change from outside was put back."""
        return sum(actuator.corrections.total for actuator in self._actuators)

    @property
    def foreign(self) -> tuple[JournalEntry, ...]:
        """Entries of backends that this node is not routed to (any more)."""
        return tuple(
            entry for entry in self._journal.entries if not any(actuator.owns(entry) for actuator in self._actuators)
        )

    def consider(self, cpu: ReportedCap | None, gpu: ReportedCap | None) -> None:
        """What an earlier agent is reported to have left on the devices; for their first reading."""
        for actuator in self._actuators:
            actuator.baseline.claim = cpu if actuator.capper.kind == "cpu" else gpu

    async def enforce(self, target: CapTarget, limits: CapLimits, now_s: float) -> Enforced:
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
                f"{entry.device} {entry.attribute} is not restored: {self._why_left(entry)}" for entry in self._rest()
            ]
            if self._journal.lost:
                left.append(self._journal.lost)
            if had_entries and not left and not self.simulate_only:
                self._cpu.notices.append(Notice("CapsRestored", "every device is as it was found"))
            self._say_left(tuple(left))
            return self._enforced(_RELEASED, _RELEASED, before, tuple(left))

    def _rest(self) -> tuple[JournalEntry, ...]:
        """What is not reported yet: entries of other routes, and in a dry run all that an earlier process left."""
        return self._journal.entries if self.simulate_only else self.foreign

    def _why_left(self, entry: JournalEntry) -> str:
        if self.simulate_only:
            return "SIMULATE_ONLY writes nothing, and an agent before this one capped it"
        return self.elsewhere.get(entry.knob) or f"{entry.backend or 'its backend'} is not routed here"

    async def close(self) -> None:
        """Close the devices as they are; writes nothing."""
        async with self._one_at_a_time:
            for actuator in self._actuators:
                await actuator.capper.close()

    async def _tick(self, target: CapTarget, limits: CapLimits, now_s: float) -> Enforced:
        before = self._counts()
        for actuator in self._actuators:
            if isinstance(actuator.capper, BurstCapper):
                actuator.capper.allows_bursts = not target.under_budget
        cpu = await self._cpu.enforce(target, limits, now_s)
        gpu = await self._gpu.enforce(target, limits, now_s)
        if self.simulate_only:
            cpu, gpu = _only_simulated(cpu), _only_simulated(gpu)
        return self._enforced(cpu, gpu, before, ())

    def _enforced(self, cpu: CapOutcome, gpu: CapOutcome, before: tuple[int, int], left: tuple[str, ...]) -> Enforced:
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


def _only_simulated(outcome: CapOutcome) -> CapOutcome:
    """A cap that was only simulated is not in force, and must not count as if it were."""
    if outcome.result != "applied":
        return outcome
    message = f"SIMULATE_ONLY, nothing is written: {outcome.message}"
    return replace(outcome, result="blocked", message=message, held_w=None)

"""One backend of one node and the journal: record what was found, write, read back, notice drift, restore.

The order is what makes it safe. Nothing is written to a device before what was found there is on disk, and nothing
leaves the journal before the restored value has been read back; so the process may die at any moment.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from joulie.agent.enforcement.baseline import Baseline, UnknownBaselineError
from joulie.agent.enforcement.corrections import Corrections
from joulie.agent.restore.journal import Journal, JournalEntry, JournalError
from joulie.devices.interface import (
    BadReadingError,
    Capper,
    DeviceError,
    DeviceFaultError,
    Knob,
    NotSupportedError,
    RemoteCapper,
    Setting,
    Value,
    WriteIgnoredError,
)


def owner_of(capper: Capper) -> str:
    """What the journal calls a backend; distinct for all backends of a node."""
    return f"{capper.kind}:{capper.name}:{capper.unit}"


class CapPlan(NamedTuple):
    """What a target means for the device as it is now."""

    seen: Mapping[Knob, Value]
    found: Mapping[Knob, Value]
    settings: tuple[Setting, ...]
    pending: tuple[Setting, ...]  # what differs from what is in force
    as_found: bool  # the target asks for no more than what was there before


class NotRestored(NamedTuple):
    """A value that could not be put back, and why. Its entry stays in the journal."""

    knob: Knob
    error: DeviceError

    def __str__(self) -> str:
        return f"{self.knob.device} {self.knob.attribute} is not restored: {self.error}"


class Actuator:
    """Applies targets through one backend and restores what was found."""

    def __init__(
        self, capper: Capper, journal: Journal, *, offload_journal: bool = False, simulate: bool = False
    ) -> None:
        self.capper = capper
        self.owner = owner_of(capper)
        self.corrections = Corrections()
        self.tried = 0  # writes, with or without success
        self.wrote = 0
        self.vanished: tuple[Knob, ...] = ()  # in the journal, but not among the knobs that are there
        self._journal = journal
        self._offload = offload_journal
        self._simulate = simulate
        self.baseline = Baseline(capper, journal)
        self._in_force: dict[Knob, Setting] = {}  # written or confirmed by this process
        self._seen: dict[Knob, Value] = {}  # as last read
        self._found: Mapping[Knob, Value] = {}

    @property
    def entries(self) -> list[JournalEntry]:
        return [entry for entry in self._journal.entries if self.owns(entry)]

    def owns(self, entry: JournalEntry) -> bool:
        """Whether this backend wrote it, and to this very device: another endpoint's entry is not ours to restore."""
        if entry.backend != self.owner:
            return False
        return not isinstance(self.capper, RemoteCapper) or entry.device == self.capper.address.device

    @property
    def held(self) -> float | None:
        """What the device holds, as last read, in the backend's unit; a device may round what it is given."""
        return self.capper.held(self._seen, self._found)

    async def held_now(self) -> float | None:
        """What the device holds at this moment; a DeviceError where it cannot be read."""
        await self.plan(None)
        return self.held

    async def plan(self, target: float | None) -> CapPlan:
        """Read and compute; writes nothing. No target means: as found."""
        self._journal.refresh()
        if self._journal.lost:
            raise JournalError(self._journal.lost)
        seen = {knob: await self._read(knob) for knob in await self.capper.knobs()}
        self.vanished = tuple(entry.knob for entry in self.entries if entry.knob not in seen)
        found = self.baseline.of(seen, is_first=not self.entries)
        self._seen, self._found = dict(seen), found
        restoring = tuple(self.capper.restoring(found))
        restored = {setting.knob: setting.value for setting in restoring}
        settings = restoring if target is None else tuple(self.capper.settings(target, found))
        return CapPlan(
            seen,
            found,
            settings,
            tuple(setting for setting in settings if self._is_pending(setting, seen[setting.knob])),
            as_found=all(setting.value == restored.get(setting.knob) for setting in settings),
        )

    async def apply(self, target: float | None, now_s: float) -> bool:
        """Bring the target into force; True where a change from outside was put back. A DeviceError says why not."""
        plan = await self.plan(target)
        if self._simulate:  # what the device would hold
            self._seen.update((setting.knob, setting.value) for setting in plan.settings)
            return False
        if plan.as_found and not self.entries and not plan.pending:
            await self._prove(plan)  # nothing of ours is in force, and nothing needs to be
            return False
        corrected = self._correct(plan, now_s)
        await self._note(plan)
        for setting in plan.pending:
            self._in_force.pop(setting.knob, None)  # until it is confirmed, a difference is no drift
            await self._write(setting)
        for setting in plan.pending:
            await self._confirm(setting)
        await self._prove(plan)
        self._in_force = {setting.knob: setting for setting in plan.settings}
        if plan.as_found:
            for left in await self.release():
                if left.knob in plan.seen:  # what has vanished is reported separately
                    raise left.error
        return corrected

    async def check(self) -> None:
        """A DeviceError where this backend could not take a cap if one were wanted; changes nothing."""
        await self.capper.knobs()
        if isinstance(self.capper, RemoteCapper) and not self._simulate:
            await self._prove(await self.plan(None))

    async def release(self, *, journal_only: bool = False) -> list[NotRestored]:
        """Restore everything; returns what could not be restored, with the reason. May be repeated.

        With `journal_only` a limit that is in no journal stays.
        """
        self._in_force = {}
        if self._simulate:
            return []
        self._journal.refresh()
        await self._adopt()
        found = {entry.knob: entry.found for entry in self.entries}
        if found:
            await self.capper.discover()  # a fresh process may not know the hardware's own limits yet
        elif not journal_only:
            try:
                found = await self._left_by_another()
            except UnknownBaselineError as error:
                return [NotRestored(error.knob, error)]
        refused = {knob: reason for knob, value in found.items() if (reason := self.capper.refuses(knob, value))}
        left = [NotRestored(knob, NotSupportedError(reason)) for knob, reason in refused.items()]
        found = {knob: value for knob, value in found.items() if knob not in refused}
        done: list[Knob] = []
        restoring = {setting.knob: setting for setting in self.capper.restoring(found)}
        for setting in restoring.values():
            try:
                if not await self._stands(setting):
                    await self._write(setting)
                    await self._confirm(setting)
                done.append(setting.knob)
            except DeviceError as error:
                left.append(NotRestored(setting.knob, error))
            except Exception as error:  # noqa: BLE001 - a broken backend must not keep the other caps in force
                left.append(NotRestored(setting.knob, DeviceFaultError(f"{type(error).__name__}: {error}")))
        not_said = NotSupportedError(f"{self.capper.name} does not say how")
        left += [NotRestored(knob, not_said) for knob in found if knob not in restoring]
        try:
            await self._keep(lambda: self._journal.forget(done))
        except JournalError as error:
            left += [NotRestored(knob, error) for knob in done]
        self.baseline.forget(done)
        return left

    async def _adopt(self) -> None:
        """Entries that name no backend (a journal written by hand) belong to the one that has the knob."""
        if all(entry.backend for entry in self._journal.entries):
            return
        with suppress(DeviceError):
            knobs = set(await self.capper.knobs())
            mine = [entry for entry in self._journal.entries if not entry.backend and entry.knob in knobs]
            self._journal.record([replace(entry, backend=self.owner) for entry in mine])

    async def _left_by_another(self) -> dict[Knob, Value]:
        """The cap of an agent that is gone, where the backend can lift limits whatever was found (nodes of a pool)."""
        if self._journal.lost:
            return {}
        try:
            seen = {knob: await self._read(knob) for knob in await self.capper.knobs()}
            found = self.baseline.of(seen, is_first=not self.entries)
            lifting = [
                setting
                for setting in self.capper.restoring(found)
                if setting.value != seen[setting.knob]
                and (
                    setting.value is None
                    or isinstance(self.capper, RemoteCapper)
                    or setting.knob in self.baseline.replaced
                )
            ]
            if lifting:
                wanted = {setting.knob: setting.value for setting in lifting}
                await self._keep(lambda: self._journal.record(self._entries(found, wanted)))
        except UnknownBaselineError:
            raise
        except DeviceError:
            return {}  # this process has nothing to restore
        return {setting.knob: found[setting.knob] for setting in lifting}

    async def _prove(self, plan: CapPlan) -> None:
        """A remote that has never taken a command does not count as working: send one that changes nothing."""
        if isinstance(self.capper, RemoteCapper) and not self.capper.acknowledged:
            for setting in plan.settings:
                await self._write(setting)

    def _is_pending(self, setting: Setting, seen: Value) -> bool:
        """Whether to write: another value is in force, or another is wanted, even if by less than the tolerance."""
        before = self._in_force.get(setting.knob)
        if before is None or before.value != setting.value:
            return before is not None or not _same(seen, setting)
        return _has_drifted(seen, setting)

    def _correct(self, plan: CapPlan, now_s: float) -> bool:
        """Whether a change from outside is about to be put back; counted, and refused when it happens too often."""
        drifted = [
            f"{knob.device} {knob.attribute}"
            for knob, setting in self._in_force.items()
            if knob in plan.seen and _has_drifted(plan.seen[knob], setting)
        ]
        if not drifted or not plan.pending:
            return False
        if not plan.as_found:  # an unwanted cap is removed however contested it is
            self.corrections.correct(now_s, drifted[0])
        return True

    async def _note(self, plan: CapPlan) -> None:
        """Record on disk, before the first write, what was found, if a second reading shows the same."""
        for knob in plan.seen:
            if self._journal.entry(knob) is None and await self._read(knob) != plan.seen[knob]:
                raise BadReadingError(f"{knob.device} {knob.attribute} changes from one reading to the next")
        wanted = {setting.knob: setting.value for setting in plan.settings}
        entries = self._entries(plan.found, wanted)
        known = all(self._journal.entry(entry.knob) is not None for entry in entries)
        try:
            await self._keep(lambda: self._journal.record(entries))
        except JournalError:
            # What was found is safe already, and a cap must not stay because a disk is full.
            if not known:
                raise

    def _entries(self, found: Mapping[Knob, Value], wanted: Mapping[Knob, Value]) -> Iterable[JournalEntry]:
        where = self.capper.address[1:] if isinstance(self.capper, RemoteCapper) else ("", "")
        return [
            JournalEntry(knob.device, knob.attribute, value, wanted.get(knob, value), self.owner, *where)
            for knob, value in found.items()
        ]

    async def _keep(self, change: Callable[[], None]) -> None:
        if not self._offload:
            change()
            return
        writing = asyncio.ensure_future(asyncio.to_thread(change))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:  # the journal has one writer at a time, even now
            await asyncio.wait([writing])
            raise

    async def _read(self, knob: Knob) -> Value:
        value = await self.capper.read(knob)
        if value is not None and not math.isfinite(value):
            raise BadReadingError(f"{knob.device} {knob.attribute} is {value}")
        return value

    async def _stands(self, setting: Setting) -> bool:
        """Whether exactly this is in force; what cannot be read may still be written."""
        if isinstance(self.capper, RemoteCapper) and not self.capper.acknowledged:
            return False  # it may show nothing of what it holds
        try:
            return await self._read(setting.knob) == setting.value
        except BadReadingError:
            return False

    async def _write(self, setting: Setting) -> None:
        if setting.value is not None and not math.isfinite(setting.value):
            raise NotSupportedError(f"{setting.knob.device} {setting.knob.attribute} cannot be {setting.value}")
        self.tried += 1
        await self.capper.write(setting.knob, setting.value)
        self.wrote += 1

    async def _confirm(self, setting: Setting) -> None:
        self._seen[setting.knob] = seen = await self._read(setting.knob)
        if not _same(seen, setting):
            raise WriteIgnoredError(
                f"{setting.knob.device} {setting.knob.attribute} was set to {_shown(setting.value)} without complaint,"
                f" but {_shown(seen)} is in force"
            )


def not_read_back(actuators: Iterable[Actuator]) -> str:
    """For people: that what is applied was only acknowledged; empty where it was read back."""
    silent = (isinstance(one.capper, RemoteCapper) and not one.capper.reads_back for one in actuators)
    return "; the endpoint acknowledged it and does not show what it holds" if any(silent) else ""


async def lowest(cap_w: float, actuators: Iterable[Actuator]) -> float:
    """The cap, or what devices hold already where that is lower; what cannot be read does not count."""
    for actuator in actuators:
        with suppress(DeviceError):
            held_w = await actuator.held_now()
            cap_w = cap_w if held_w is None else min(cap_w, held_w)
    return cap_w


def _same(seen: Value, setting: Setting) -> bool:
    if seen is None or setting.value is None:
        return seen is None and setting.value is None
    return abs(seen - setting.value) <= setting.tolerance


def _has_drifted(seen: Value, setting: Setting) -> bool:
    """Whether something changed what was confirmed to be in force."""
    held_lower = seen is not None and setting.value is not None and seen < setting.value
    return not _same(seen, setting) and not (setting.lower_is_fine and held_lower)


def _shown(value: Value) -> str:
    return "no limit" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

"""One backend of one node and the journal: note what was found, write, read back, notice drift, put back.

The order is what makes it safe. Nothing is written to a device before what was found there is on disk, and nothing
leaves the journal before the restored value has been read back; so whenever the process dies, its successor knows.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from joulie.agent.drift import Corrections
from joulie.agent.journal import Entry, Journal, JournalError
from joulie.devices.interface import (
    BadReadingError,
    Capper,
    DeviceError,
    DeviceFaultError,
    Knob,
    NotSupportedError,
    Setting,
    Value,
    WriteIgnoredError,
)


def owner_of(capper: Capper) -> str:
    """What the journal calls a backend; distinct for all backends of a node."""
    return f"{capper.kind}:{capper.name}:{capper.unit}"


class Plan(NamedTuple):
    """What a target means for the device as it is now."""

    seen: Mapping[Knob, Value]
    found: Mapping[Knob, Value]
    settings: tuple[Setting, ...]
    pending: tuple[Setting, ...]  # what differs from what is in force
    as_found: bool  # the target asks for no more than what was there before


class Left(NamedTuple):
    """A value that could not be put back, and why. Its entry stays in the journal."""

    knob: Knob
    error: DeviceError

    def __str__(self) -> str:
        return f"{self.knob.device} {self.knob.attribute} is not restored: {self.error}"


class Actuator:
    """Applies targets through one backend and takes them back."""

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
        self._in_force: dict[Knob, Setting] = {}  # written or confirmed by this process

    @property
    def entries(self) -> list[Entry]:
        return [entry for entry in self._journal.entries if entry.backend == self.owner]

    async def plan(self, target: float | None) -> Plan:
        """Look and compute; writes nothing. No target means: as found."""
        self._journal.refresh()
        if self._journal.lost:
            raise JournalError(self._journal.lost)
        seen = {knob: await self._read(knob) for knob in await self.capper.knobs()}
        self.vanished = tuple(entry.knob for entry in self.entries if entry.knob not in seen)
        found = {knob: self._journal.found.get(knob, value) for knob, value in seen.items()}
        restoring = tuple(self.capper.restoring(found))
        restored = {setting.knob: setting.value for setting in restoring}
        settings = restoring if target is None else tuple(self.capper.settings(target, found))
        return Plan(
            seen,
            found,
            settings,
            tuple(setting for setting in settings if self._is_pending(setting, seen[setting.knob])),
            as_found=all(setting.value == restored.get(setting.knob) for setting in settings),
        )

    async def apply(self, target: float | None, now_s: float) -> bool:
        """Bring the target into force; whether somebody else's change was put back. A DeviceError says why not."""
        plan = await self.plan(target)
        if self._simulate:
            return False
        if plan.as_found and not self.entries and not plan.pending:
            return False  # nothing of ours is there, and nothing needs to be
        corrected = self._correct(plan, now_s)
        await self._note(plan)
        for setting in plan.pending:
            self._in_force.pop(setting.knob, None)  # until it is confirmed, a difference is no drift
            await self._write(setting)
        for setting in plan.pending:
            await self._confirm(setting)
        self._in_force = {setting.knob: setting for setting in plan.settings}
        if plan.as_found:
            for left in await self.release():
                if left.knob in plan.seen:  # what has vanished is said apart
                    raise left.error
        return corrected

    async def release(self) -> list[Left]:
        """Everything as found; what could not be put back, with the reason. Done and undone alike are repeatable."""
        self._in_force = {}
        if self._simulate:
            return []
        self._journal.refresh()
        await self._adopt()
        found = {entry.knob: entry.found for entry in self.entries}
        if found:
            await self.capper.discover()  # a fresh process may not know the hardware's own limits yet
        else:
            found = await self._left_by_another()
        left: list[Left] = []
        done: list[Knob] = []
        restoring = {setting.knob: setting for setting in self.capper.restoring(found)}
        for setting in restoring.values():
            try:
                if not await self._stands(setting):
                    await self._write(setting)
                    await self._confirm(setting)
                done.append(setting.knob)
            except DeviceError as error:
                left.append(Left(setting.knob, error))
            except Exception as error:  # noqa: BLE001 - a broken backend must not keep the other caps in force
                left.append(Left(setting.knob, DeviceFaultError(f"{type(error).__name__}: {error}")))
        not_said = NotSupportedError(f"{self.capper.name} does not say how")
        left += [Left(knob, not_said) for knob in found if knob not in restoring]
        try:
            await self._keep(lambda: self._journal.forget(done))
        except JournalError as error:
            left += [Left(knob, error) for knob in done]
        return left

    async def _adopt(self) -> None:
        """Entries that name no backend (a journal by another hand) belong to the one that has the knob."""
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
            lifting = [
                setting
                for setting in self.capper.restoring(seen)
                if setting.value != seen[setting.knob] and (setting.value is None or self.capper.unit == "throttle_pct")
            ]
            if lifting:
                wanted = {setting.knob: setting.value for setting in lifting}
                await self._keep(lambda: self._journal.record(self._entries(seen, wanted)))
        except DeviceError:
            return {}  # nothing of this process is there to be taken back
        return {setting.knob: seen[setting.knob] for setting in lifting}

    def _is_pending(self, setting: Setting, seen: Value) -> bool:
        """Whether to write: another value is in force, or another one is wanted, be it by less than the tolerance."""
        before = self._in_force.get(setting.knob)
        if before is None or before.value != setting.value:
            return before is not None or not _same(seen, setting)
        return _has_drifted(seen, setting)

    def _correct(self, plan: Plan, now_s: float) -> bool:
        """Whether somebody else's change is about to be put back; counted, and refused when it happens too often."""
        drifted = [
            f"{knob.device} {knob.attribute}"
            for knob, setting in self._in_force.items()
            if knob in plan.seen and _has_drifted(plan.seen[knob], setting)
        ]
        if not drifted or not plan.pending:
            return False
        if not plan.as_found:  # what nobody wants any more is taken back however contested it is
            self.corrections.correct(now_s, drifted[0])
        return True

    async def _note(self, plan: Plan) -> None:
        """On disk before the first write: what was found, believed only when a second look shows the same."""
        for knob in plan.seen:
            if self._journal.entry(knob) is None and await self._read(knob) != plan.seen[knob]:
                raise BadReadingError(f"{knob.device} {knob.attribute} changes from one look to the next")
        wanted = {setting.knob: setting.value for setting in plan.settings}
        entries = self._entries(plan.found, wanted)
        known = all(self._journal.entry(entry.knob) is not None for entry in entries)
        try:
            await self._keep(lambda: self._journal.record(entries))
        except JournalError:
            # What was found is safe already, and a cap must not stay because a disk is full.
            if not known:
                raise

    def _entries(self, found: Mapping[Knob, Value], wanted: Mapping[Knob, Value]) -> Iterable[Entry]:
        return [
            Entry(knob.device, knob.attribute, value, wanted.get(knob, value), self.owner)
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
        """Exactly; what cannot be read sensibly may still be written."""
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
        seen = await self._read(setting.knob)
        if not _same(seen, setting):
            raise WriteIgnoredError(
                f"{setting.knob.device} {setting.knob.attribute} was set to {_shown(setting.value)} without complaint,"
                f" but {_shown(seen)} is in force"
            )


def _same(seen: Value, setting: Setting) -> bool:
    if seen is None or setting.value is None:
        return seen is None and setting.value is None
    return abs(seen - setting.value) <= setting.tolerance


def _has_drifted(seen: Value, setting: Setting) -> bool:
    """Whether somebody else changed what was confirmed to be in force."""
    held_lower = seen is not None and setting.value is not None and seen < setting.value
    return not _same(seen, setting) and not (setting.lower_is_fine and held_lower)


def _shown(value: Value) -> str:
    return "no limit" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

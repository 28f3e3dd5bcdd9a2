"""What was found on a node's devices before Joulie first wrote to them, kept where a crash cannot reach it.

The file is replaced whole: a temporary file, fsync, rename, fsync of the folder. So at any moment it is either the old
journal or the new one. It is small and local; everything here is synchronous.

A journal that cannot be read is copied aside, and the loss itself is recorded: until the machine reboots, or a person
removes the file, no value on a device is taken for what was found, since it may well be a cap of ours. Meanwhile no cap
is set: it could not be restored.

The rules: docs/reference/behaviour.md, 'Journal'.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec
from msgspec import Struct

from joulie.agent.outcome import Notice
from joulie.agent.restore.durable import read_whole, remove_durably, write_durably
from joulie.devices.interface import DeviceError, Knob, Value
from joulie.errors import InputError
from joulie.model.addresses import device_name

VERSION = 1
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
POOL_BOOT_ID = "pool"  # a machine behind HTTP has boots of its own, which are not reported
FILE_NAME = "restore.json"
POOL_FOLDER = "restore"
MAX_FILE_NAME_LENGTH = 200  # file systems take 255 bytes, and the temporary file needs a few more


class JournalError(DeviceError):
    """The journal cannot be written, so nothing may be written to a device either."""

    result = "blocked"


class JournalEntry(Struct, frozen=True, omit_defaults=True):
    """One value on one device: before Joulie, and as Joulie last wanted it."""

    device: str
    attribute: str
    found: int | float | None
    wanted: int | float | None
    backend: str = ""  # whose knob it is, see `actuator.owner_of`
    endpoint: str = ""  # of a device behind HTTP: where its commands go, credentials included; never shown
    telemetry: str = ""  # and where it is read back from

    @property
    def knob(self) -> Knob:
        return Knob(self.device, self.attribute)


class _Header(Struct, rename="camel"):
    """What a journal of any version begins with."""

    version: int
    boot_id: str


class _Contents(Struct, rename="camel", omit_defaults=True):
    version: int
    boot_id: str
    node: str
    entries: list[JournalEntry]
    lost: str = ""


def read_boot_id(path: Path = BOOT_ID) -> str:
    """Changes with every boot of the machine, and a container sees the machine's."""
    try:
        boot_id = path.read_text().strip()
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read, so a reboot could not be told from a crash: {error}") from None
    if not boot_id:
        raise InputError(f"{path} is empty, so a reboot could not be told from a crash")
    return boot_id


def journal_path(state_dir: Path, node: str | None = None) -> Path:
    """Of the machine's own node, or (pool mode) of one of many."""
    if node is None:
        return state_dir / FILE_NAME
    name = node if len(node) <= MAX_FILE_NAME_LENGTH else hashlib.sha256(node.encode()).hexdigest()
    return state_dir / POOL_FOLDER / f"{name}.json"


class Journal:
    """The journal of one node. What it holds in memory is on disk, or the method that should have written it raised."""

    def __init__(self, path: Path, node: str, boot_id: str) -> None:
        self.path = path
        self.node = node
        self.boot_id = boot_id
        self.discarded = False  # it was of an earlier boot: what is on the devices is not ours
        self.lost = ""  # why what was found is not known; empty: it is
        self.notices: list[Notice] = []
        self._entries: dict[Knob, JournalEntry] = {}
        self._found: dict[Knob, Value] = {}
        self.found: Mapping[Knob, Value] = MappingProxyType(self._found)  # live: it changes as the journal does
        self._unread = True
        self._on_disk: tuple[int, int, int] | None = None

    @classmethod
    def open(cls, path: Path, *, node: str | None, boot_id: str) -> Journal:
        """Never raises for a bad file: `lost` says what is wrong with it. Without a node it is the file's."""
        journal = cls(path, node or "", boot_id)
        journal.refresh()
        return journal

    @property
    def entries(self) -> tuple[JournalEntry, ...]:
        return tuple(self._entries.values())

    def entry(self, knob: Knob) -> JournalEntry | None:
        return self._entries.get(knob)

    def refresh(self) -> None:
        """Take in what another process wrote: `joulie agent restore`, or the agent that this one replaces."""
        if not self._unread and self._identity() == self._on_disk:
            return
        try:
            identity, data = self._identity(), read_whole(self.path)
        except FileNotFoundError:
            self._unread, self._on_disk, self.lost = False, None, ""
            return
        except OSError as error:
            self.lost = f"{self.path} cannot be read: {error.strerror}; no cap is set without it"
            return
        self._unread, self._on_disk = False, identity
        self._take(data)

    def record(self, entries: Iterable[JournalEntry]) -> None:
        """Durable when this returns. What was found is never replaced while it is known."""
        merged = dict(self._entries)
        for entry in entries:
            known = merged.get(entry.knob)
            merged[entry.knob] = entry if known is None else msgspec.structs.replace(entry, found=known.found)
        if merged != self._entries or self._on_disk is None or self._identity() != self._on_disk:
            self._keep(merged)

    def forget(self, knobs: Iterable[Knob]) -> None:
        """For knobs whose restored value has been read back."""
        gone = set(knobs)
        rest = {knob: entry for knob, entry in self._entries.items() if knob not in gone}
        if len(rest) != len(self._entries):
            self._keep(rest)

    def _take(self, data: bytes) -> None:
        try:
            header = msgspec.json.decode(data, type=_Header)
            contents = msgspec.json.decode(data, type=_Contents) if header.version == VERSION else None
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            self._lose(data, f"{self.path} cannot be used: {error}")
            return
        if header.boot_id != self.boot_id:
            if contents is None or contents.entries or contents.lost:
                message = f"{self.path} is of an earlier boot; limits do not outlive a boot, so it is discarded"
                self.notices.append(Notice("JournalDiscarded", message))
                self.discarded = True
            self._try_to_keep(self._entries)
            return
        if contents is None:
            self._leave_to_its_version(header.version)
            return
        if not self.node:
            self.node = contents.node
        elif contents.node != self.node:
            message = f"{self.path} was written for node {contents.node}; it is of this boot, so it counts"
            self.notices.append(Notice("JournalRenamed", message, "warning"))
        self.lost = contents.lost
        for entry in map(_named, contents.entries):
            self._entries.setdefault(entry.knob, entry)
            self._found.setdefault(entry.knob, entry.found)
        if list(self._entries.values()) != contents.entries:
            self._on_disk = None  # more is known here: the next record writes it

    def _leave_to_its_version(self, version: int) -> None:
        """Another version of the agent can still restore by its file, which therefore stays as it is."""
        if self._entries:  # what was found is known here, too
            self._try_to_keep(self._entries)
            return
        self.lost = (
            f"{self.path} is of version {version}, and this agent knows version {VERSION} only. No cap is set or taken"
            " back until the agent that wrote it, or its `joulie agent restore`, has restored the devices, or the"
            " machine boots again"
        )
        self.notices.append(Notice("JournalLost", self.lost, "warning", event=True))

    def _lose(self, data: bytes, reason: str) -> None:
        """Keep the unreadable file aside and record that there was one, so that a restart does not forget it."""
        if self._entries:  # another process broke the file; what was found is still known here
            self._try_to_keep(self._entries)
            return
        aside = self.path.with_name(f"{self.path.name}.unreadable-{hashlib.sha256(data).hexdigest()[:8]}")
        self.lost = (
            f"{reason}. What was found before the first cap is not known, so no cap is set or taken back until the"
            f" machine boots again; or check the devices by hand and remove {self.path} (a copy is {aside.name})"
        )
        try:
            write_durably(aside, data)
        except OSError:
            self.lost = self.lost.replace(f" (a copy is {aside.name})", "")
        else:
            self._try_to_keep({})
        self.notices.append(Notice("JournalLost", self.lost, "warning", event=True))

    def _try_to_keep(self, entries: dict[Knob, JournalEntry]) -> None:
        """Where that fails the old file stays, and is read again later."""
        try:
            self._keep(entries)
        except JournalError as error:
            self.notices.append(Notice("JournalNotWritten", str(error), "warning"))

    def _keep(self, entries: dict[Knob, JournalEntry]) -> None:
        try:
            if entries or self.lost:
                contents = _Contents(VERSION, self.boot_id, self.node, list(entries.values()), self.lost)
                write_durably(self.path, msgspec.json.format(msgspec.json.encode(contents)))
            else:
                remove_durably(self.path)
        except OSError as error:
            raise JournalError(f"{self.path} cannot be written: {error.strerror}; no cap is set without it") from error
        self._on_disk = self._identity()
        self._entries = entries
        self._found.clear()
        self._found.update({knob: entry.found for knob, entry in entries.items()})

    def _identity(self) -> tuple[int, int, int] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size


def _named(entry: JournalEntry) -> JournalEntry:
    """An entry of an older version names a device behind HTTP by its address as it stands, credentials and all."""
    if entry.endpoint or not entry.device.startswith(("http://", "https://")):
        return entry
    return msgspec.structs.replace(entry, device=device_name(entry.device), endpoint=entry.device)

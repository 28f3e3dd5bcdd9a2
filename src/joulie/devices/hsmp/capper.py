"""Power limits of AMD EPYC sockets through HSMP, by hwmon or by its mailbox.

The rules: docs/reference/behaviour.md, 'AMD CPUs'.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from joulie.devices.host import Host
from joulie.devices.hsmp.sockets import (
    MAILBOX_ATTRIBUTE,
    HwmonSocket,
    MailboxCall,
    MailboxSocket,
    Socket,
    hwmon_sockets,
    mailbox_sockets,
    open_mailbox,
)
from joulie.devices.interface import (
    NOTHING_FOUND,
    DeviceError,
    Discovered,
    Kind,
    Knob,
    NoDeviceError,
    NotSupportedError,
    Setting,
    Unit,
    Value,
)
from joulie.devices.package_watts import (
    BELIEVABLE_LIMIT_W,
    MAX_LIMIT_W,
    PackageMax,
    drift_tolerance,
    known_max_w,
    limit,
    package_max,
    shares_w,
)
from joulie.devices.sysfs import SysFs, why_not

_NO_SOCKET = (
    "no AMD HSMP socket: the CPU has none, HSMP is off in the BIOS, or amd_hsmp is not loaded; before Linux 6.16 it"
    " needs /dev/hsmp and a privileged agent"
)


def open_hsmp(host: Host) -> Hsmp:
    """This machine's AMD sockets."""
    return Hsmp(host.sysfs, host.cpu_max_w, host.found, open_mailbox())


class Hsmp:
    """The node's AMD sockets; `found` and `catalogue_max_w` as with Rapl, `mailbox` is asked where hwmon has none."""

    kind: Kind = "cpu"
    name = "hsmp"
    unit: Unit = "watts"

    def __init__(
        self,
        sysfs: SysFs,
        catalogue_max_w: float | None = None,
        found: Mapping[Knob, Value] = NOTHING_FOUND,
        mailbox: MailboxCall | None = None,
    ) -> None:
        self._sysfs = sysfs
        self._catalogue_max_w = catalogue_max_w
        self._found = found
        self._mailbox = mailbox

    async def discover(self) -> Discovered:
        """What the sockets can do."""
        try:
            sockets = self._sockets()
        except DeviceError as error:
            return self._unusable(present=True, reason=str(error))
        if not sockets:
            return self._unusable(present=False, reason=_NO_SOCKET)
        maxima = [self._max(socket, self._found) for socket in sockets]
        known = [maximum for maximum in maxima if maximum is not None]
        limits_w = [limit / socket.per_w for socket in sockets if (limit := _or_none(socket.limit)) is not None]
        return Discovered(
            kind="cpu",
            backend=self.name,
            present=True,
            count=len(sockets),
            max_w=math.fsum(m.watts for m in known) / len(maxima) if len(known) == len(maxima) else None,
            current_w=math.fsum(limits_w) / len(limits_w) if limits_w else None,
            no_control=why_not(lambda: self._check_control(sockets, self._found)),
            no_telemetry=why_not(lambda: [socket.power() for socket in sockets]),
            quality="exact" if all(m is not None and m.origin == "hardware" for m in maxima) else "heuristic",
        )

    async def knobs(self) -> Sequence[Knob]:
        """Each socket's power limit."""
        sockets = self._sockets()
        self._check_control(sockets, self._found)
        return [socket.knob for socket in sockets]

    def settings(self, target: float, found: Mapping[Knob, Value]) -> Sequence[Setting]:
        """The node's watts split over the sockets that are there; at their maximum and above, all as found."""
        there = [socket for socket in self._sockets() if socket.knob in found]
        if not there:
            raise NoDeviceError(f"none of the capped sockets is there any more; {_NO_SOCKET}")
        maxima_w = [self._known_max_w(socket, found) for socket in there]
        shares = shares_w(target, maxima_w)
        if shares is None:
            return self.restoring({socket.knob: found[socket.knob] for socket in there})
        return [
            _setting(socket.knob, limit(share_w, max_w, found[socket.knob], socket.per_w))
            for socket, max_w, share_w in zip(there, maxima_w, shares, strict=True)
        ]

    def restoring(self, found: Mapping[Knob, Value]) -> Sequence[Setting]:
        """What was found."""
        return [_setting(knob, value) for knob, value in found.items() if value is not None]

    def refuses(self, knob: Knob, found: Value) -> str | None:
        try:
            socket = self._socket(knob)
        except DeviceError as error:
            return str(error)
        maximum = self._max(socket, NOTHING_FOUND)
        highest = (maximum.watts if maximum and maximum.origin == "hardware" else MAX_LIMIT_W) * socket.per_w
        return None if found is not None and 0 <= found <= highest else f"{found} is out of this socket's range"

    def unlimited(self, knob: Knob) -> int:
        """The maximum that the hardware or the catalogue states; never what is in force now."""
        socket = self._socket(knob)
        maximum = self._max(socket, NOTHING_FOUND)
        if maximum is None or maximum.origin == "found":
            raise NotSupportedError(f"{knob.device}: neither the hardware nor the catalogue says its maximum")
        return math.floor(maximum.watts * socket.per_w)

    def held(self, values: Mapping[Knob, Value], found: Mapping[Knob, Value]) -> float | None:
        """The limits of all sockets together."""
        limits_w = [value / _per_w(knob) for knob, value in values.items() if value is not None]
        return math.fsum(limits_w) if limits_w else None

    async def read(self, knob: Knob) -> int:
        return self._socket(knob).limit()

    async def write(self, knob: Knob, value: Value) -> None:
        if value is None:
            raise NotSupportedError(f"{knob.device}: HSMP cannot remove a limit, only set one")
        self._socket(knob).set_limit(int(value))

    async def power_w(self) -> float | None:
        """All sockets together, as their firmware averages it."""
        try:
            powers_w = [socket.power() / socket.per_w for socket in self._sockets()]
        except DeviceError:  # `discover` says why
            return None
        return math.fsum(powers_w) if powers_w else None

    async def close(self) -> None:
        """Nothing is held open."""

    def _unusable(self, present: bool, reason: str) -> Discovered:
        return Discovered("cpu", self.name, present, no_control=reason, no_telemetry=reason, quality="unavailable")

    def _sockets(self) -> Sequence[Socket]:
        sockets: Sequence[Socket] = hwmon_sockets(self._sysfs)
        if not sockets and self._mailbox is not None:
            sockets = mailbox_sockets(self._mailbox)
        return sockets

    def _socket(self, knob: Knob) -> Socket:
        for socket in self._sockets():
            if socket.knob == knob:
                return socket
        raise NoDeviceError(f"{knob.device} is not there any more")

    def _max(self, socket: Socket, found: Mapping[Knob, Value]) -> PackageMax | None:
        hardware = _or_none(socket.maximum)
        hardware_w = None if hardware is None else hardware / socket.per_w
        if hardware_w is not None and hardware_w >= BELIEVABLE_LIMIT_W:  # some firmware only knows its register's end
            hardware_w = None
        found_limit = found.get(socket.knob)
        if found_limit is None:
            found_limit = _or_none(socket.limit)
        return package_max(
            hardware_w, self._catalogue_max_w, None if found_limit is None else found_limit / socket.per_w
        )

    def _known_max_w(self, socket: Socket, found: Mapping[Knob, Value]) -> float:
        return known_max_w(self._max(socket, found), socket.knob.device)

    def _check_control(self, sockets: Sequence[Socket], found: Mapping[Knob, Value]) -> None:
        """A DeviceError with the reason where the sockets cannot be capped."""
        if not sockets:
            raise NoDeviceError(_NO_SOCKET)
        for socket in sockets:
            socket.limit()
            self._known_max_w(socket, found)
            socket.check_writable()


def _setting(knob: Knob, value: float) -> Setting:
    return Setting(knob, value, drift_tolerance(value, _per_w(knob)))


def _per_w(knob: Knob) -> int:
    return MailboxSocket.per_w if knob.attribute == MAILBOX_ATTRIBUTE else HwmonSocket.per_w


def _or_none(read: Callable[[], int]) -> int | None:
    try:
        return read()
    except DeviceError:
        return None

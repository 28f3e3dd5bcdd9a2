"""Decodes a watch response: one JSON object per line, of any length, in chunks cut anywhere."""

from __future__ import annotations

from msgspec import Raw, Struct, json

from joulie.cluster.api.errors import raise_api_error, read_status
from joulie.cluster.port import ClusterError
from joulie.cluster.watch.list_watch import ERROR, GONE, Event


class LineSplitter:
    """Splits chunks into lines. The parts of an unfinished line are kept and joined once."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that this chunk completes, without line ends; empty lines are dropped."""
        *lines, rest = piece.split(b"\n")
        if lines and self._parts:
            lines[0] = b"".join((*self._parts, lines[0]))
            self._parts.clear()
        if rest:
            self._parts.append(rest)
        return [line for line in lines if line.strip()]


class _WatchEvent(Struct):
    type: str
    object: Raw


_EVENT = json.Decoder(_WatchEvent)


def read_events(lines: list[bytes]) -> tuple[list[Event], ClusterError | None]:
    """The events up to the first that reports an error, and that error.

    A line that cannot be decoded is treated as an expired version (410): only a list can recover what it said.
    """
    events: list[Event] = []
    for line in lines:
        try:
            event = _EVENT.decode(line)
        except ValueError as error:
            return events, ClusterError(f"the watch sent a line that is not an event: {error}", status=GONE)
        if event.type == ERROR:
            return events, _reported(bytes(event.object))
        events.append(Event(event.type, event.object))
    return events, None


def _reported(data: bytes) -> ClusterError:
    said = read_status(data)
    retry_after_s = None if said.details is None else said.details.retry_after_seconds
    try:
        raise_api_error(f"the watch ended: {said.message or 'no reason given'}", said.code or 0, retry_after_s)
    except ClusterError as error:
        return error

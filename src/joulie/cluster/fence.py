"""Writes that must not leave once their right to be sent has ended."""

from __future__ import annotations

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from joulie.cluster.port import MaySend


class _Fenced(aiohttp.BytesPayload):
    """A body that asks once more when it is about to leave.

    Between a caller's own look at the clock and this moment lie other tasks, a wait for a connection, and perhaps a
    time in which the whole process stood still.
    """

    def __init__(self, body: bytes, may_send: MaySend) -> None:
        super().__init__(body)
        self._may_send = may_send

    async def write(self, writer: AbstractStreamWriter) -> None:
        self._ask()
        await super().write(writer)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        self._ask()
        await super().write_with_length(writer, content_length)

    def _ask(self) -> None:
        if not self._may_send():
            raise aiohttp.ClientConnectionError("it may no longer be sent")


def fenced(body: bytes | None, may_send: MaySend | None) -> bytes | _Fenced | None:
    """The body, guarded where its right to be sent may end."""
    return body if body is None or may_send is None else _Fenced(body, may_send)

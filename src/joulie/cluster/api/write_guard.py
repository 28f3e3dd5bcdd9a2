"""Writes that must not be sent any more once the permission to send them has ended."""

from __future__ import annotations

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from joulie.cluster.port import MaySend


class _GuardedBody(aiohttp.BytesPayload):
    """A body that checks the permission again right before it is sent.

    Between the caller's own check and this moment other tasks have run, a connection was waited for, and the whole
    process may have been suspended.
    """

    def __init__(self, body: bytes, may_send: MaySend) -> None:
        super().__init__(body)
        self._may_send = may_send

    async def write(self, writer: AbstractStreamWriter) -> None:
        self._check()
        await super().write(writer)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        self._check()
        await super().write_with_length(writer, content_length)

    def _check(self) -> None:
        if not self._may_send():
            raise aiohttp.ClientConnectionError("the permission to send it has ended")


def guarded(body: bytes | None, may_send: MaySend | None) -> bytes | _GuardedBody | None:
    """The body, guarded if there is a permission to check."""
    return body if body is None or may_send is None else _GuardedBody(body, may_send)

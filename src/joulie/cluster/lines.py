"""The connection under an answer without end: how it is read, watched over and ended."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import aiohttp


def hang_up(response: aiohttp.ClientResponse) -> None:
    """Neither the rest of an endless answer nor the other side's goodbye is waited for: it may never come."""
    line = _line_of(response)
    if line is not None:
        line.abort()
    response.close()


def notice_dead_peers(response: aiohttp.ClientResponse) -> None:
    """Lets the kernel find out within half a minute that the other machine is gone, which a silent stream cannot."""
    line = _line_of(response)
    peer = line.get_extra_info("socket") if line is not None else None
    if peer is None:
        return
    with contextlib.suppress(OSError):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, seconds in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, option):
                peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)


def leave_to_kernel(response: aiohttp.ClientResponse) -> None:
    """Without this, a TLS connection whose reading pauses goes on waking the process for every piece that comes."""
    limit = getattr(_line_of(response), "set_read_buffer_limits", None)
    if limit is not None:
        limit(high=1, low=0)


def set_reading(response: aiohttp.ClientResponse, on: bool) -> None:
    """Let pieces come, or let the kernel keep them."""
    line = _line_of(response)  # asked anew each time: once the answer has ended it may be another's
    if line is None or line.is_closing() or line.is_reading() == on:
        return
    if on:
        line.resume_reading()
    else:
        line.pause_reading()


def _line_of(response: aiohttp.ClientResponse) -> asyncio.Transport | None:
    """The connection that the answer comes by; none once all of it has come."""
    return response.connection.transport if response.connection is not None else None

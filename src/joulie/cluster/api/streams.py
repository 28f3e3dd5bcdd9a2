"""The connection under a streamed response: reading, keepalive and closing."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import aiohttp


def abort(response: aiohttp.ClientResponse) -> None:
    """Closes without waiting for the rest of the stream or a TLS goodbye, which may never arrive."""
    transport = _transport_of(response)
    if transport is not None:
        transport.abort()
    response.close()


def enable_keepalive(response: aiohttp.ClientResponse) -> None:
    """TCP keepalive: the kernel notices within half a minute that the peer is gone, even on an idle stream."""
    transport = _transport_of(response)
    peer = transport.get_extra_info("socket") if transport is not None else None
    if peer is None:
        return
    with contextlib.suppress(OSError):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, seconds in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, option):
                peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)


def minimise_buffer(response: aiohttp.ClientResponse) -> None:
    """Minimal read buffer: otherwise a paused TLS connection still wakes the process for every chunk."""
    limit = getattr(_transport_of(response), "set_read_buffer_limits", None)
    if limit is not None:
        limit(high=1, low=0)


def set_reading(response: aiohttp.ClientResponse, on: bool) -> None:
    """Resumes reading, or pauses it so that data stays in the kernel."""
    transport = _transport_of(
        response
    )  # looked up each time: after the response has ended, the connection may belong to another
    if transport is None or transport.is_closing() or transport.is_reading() == on:
        return
    if on:
        transport.resume_reading()
    else:
        transport.pause_reading()


def _transport_of(response: aiohttp.ClientResponse) -> asyncio.Transport | None:
    """The transport of the response; None once it is complete."""
    return response.connection.transport if response.connection is not None else None

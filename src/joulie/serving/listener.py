"""Sockets that accept no more than a guard has room for, whatever comes."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import ssl
import time

from joulie.errors import InputError
from joulie.serving.guard import Guard

BACKLOG = 1024
ACCEPTED_AT_ONCE = 32  # in one turn of the event loop
SEND_BUFFER_BYTES = 256 << 10  # of the kernel's memory, which counts as the container's
CHECKS_PER_LIMIT = 4
OUT_OF_FILES_S = 0.2
FEW = 8  # connections: it is not this server that has taken all files
COMPLAIN_EVERY_S = 60.0
_LOG = logging.getLogger("joulie.http")


class Listener:
    """Accepts connections for one guard until it is closed."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._sockets: list[socket.socket] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._welcomes: set[asyncio.Task[None]] = set()
        self._most = min(guard.limits.connections, raise_file_limit() // 4)  # most files are for what the process does
        self._complained_s = -COMPLAIN_EVERY_S

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [listening.getsockname()[:2] for listening in self._sockets]

    async def listen(self, address: str, variable: str, ssl_context: ssl.SSLContext | None = None) -> None:
        """Take the address that a setting names, or say in one line why not."""
        host, _, port = address.rpartition(":")
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(
                host.strip("[]") or None, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            for family, _, _, _, where in dict.fromkeys(found):
                self._open(family, where)
            if not self._sockets:
                raise OSError("no such address")
        except OSError as error:
            self.stop()
            raise InputError(f"{variable}={address!r} cannot be listened on: {error.strerror or error}") from None
        self._tasks += [loop.create_task(self._accept(each, ssl_context)) for each in self._sockets]
        self._tasks.append(loop.create_task(self._look()))

    def stop(self) -> None:
        """Accept no new connections; those that are open are still served."""
        for task in self._tasks[:-1]:
            task.cancel()
        for listening in self._sockets:
            listening.close()

    async def close(self) -> None:
        self.stop()
        tasks = [*self._tasks, *self._welcomes]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._guard.drop_all()

    def _open(self, family: int, where: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]) -> None:
        try:
            listening = socket.socket(family, socket.SOCK_STREAM)
        except OSError:
            return  # a family that this kernel does not have
        self._sockets.append(listening)
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            listening.bind(where)
        except OSError as error:
            said = (error.strerror or str(error)).lower()
            raise OSError(error.errno, f"error while attempting to bind on address {where}: {said}") from None
        listening.listen(BACKLOG)

    async def _accept(self, listening: socket.socket, context: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        in_turn = 0
        while True:
            try:
                accepted, (address, *_) = await loop.sock_accept(listening)
            except ConnectionError:
                continue  # it went before we came to it
            except OSError as error:  # no files, no memory: said now and then, and tried again
                self._complain("connections cannot be accepted", error)
                if self._guard.connections > FEW:
                    self._guard.make_room()
                await asyncio.sleep(OUT_OF_FILES_S)
                continue
            self._take(loop, accepted, address, context)
            in_turn = (in_turn + 1) % ACCEPTED_AT_ONCE
            if not in_turn:
                await asyncio.sleep(0)

    def _take(
        self, loop: asyncio.AbstractEventLoop, accepted: socket.socket, address: str, context: ssl.SSLContext | None
    ) -> None:
        connection = self._guard.admit(address, self._most)
        if connection is None:
            accepted.close()
            return
        limit_s = None if context is None else self._guard.limits.head_s

        async def welcome() -> None:
            try:
                await loop.connect_accepted_socket(
                    lambda: connection,
                    accepted,
                    ssl=context,
                    ssl_handshake_timeout=limit_s,
                    ssl_shutdown_timeout=limit_s,
                )
            except OSError:  # no handshake
                self._guard.left(connection)
                accepted.close()
            finally:
                connection.welcome = None

        def ended(task: asyncio.Task[None]) -> None:
            self._welcomes.discard(task)
            if task.cancelled():  # no room; perhaps before it began, so that nothing else would close the socket
                self._guard.left(connection)
                accepted.close()

        connection.welcome = loop.create_task(welcome())
        self._welcomes.add(connection.welcome)
        connection.welcome.add_done_callback(ended)

    async def _look(self) -> None:
        limits = self._guard.limits
        while True:
            await asyncio.sleep(min(1.0, min(limits.head_s, limits.idle_s, limits.unread_s) / CHECKS_PER_LIMIT))
            self._guard.look()

    def _complain(self, what: str, error: OSError) -> None:
        if time.monotonic() - self._complained_s >= COMPLAIN_EVERY_S:
            self._complained_s = time.monotonic()
            _LOG.warning(what, extra={"fields": {"error": error.strerror or str(error)}})


def raise_file_limit() -> int:
    """All files that the system lets this process have; how many they are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return soft
    return hard

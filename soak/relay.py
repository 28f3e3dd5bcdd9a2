"""TCP relays in front of a server, one for each client, so that each can be cut off alone."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Literal

Mode = Literal["pass", "refuse", "silent", "slow"]
CHUNK = 64 * 1024
SLOW_S = 0.2


class Relay:
    """One loopback port. `refuse` cuts and refuses connections, `silent` keeps them open and forwards nothing."""

    def __init__(self, targets: Callable[[], Sequence[int]]) -> None:
        self.port = 0
        self.mode: Mode = "pass"
        self._targets = targets
        self._turn = 0
        self._open: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()

    async def listen(self) -> None:
        self._flowing.set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        self._server.close()

    def switch(self, mode: Mode) -> None:
        """Runs in the relays' own loop."""
        self.mode = mode
        (self._flowing.clear if mode == "silent" else self._flowing.set)()
        if mode == "refuse":
            for writer in self._open:
                writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.mode == "refuse":
            writer.transport.abort()
            return
        await self._flowing.wait()
        upstream = await self._connect()
        if upstream is None:
            writer.transport.abort()
            return
        self._open |= {writer, upstream[1]}
        try:
            await asyncio.gather(self._pump(reader, upstream[1]), self._pump(upstream[0], writer))
        finally:
            self._open -= {writer, upstream[1]}
            writer.transport.abort()
            upstream[1].transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """The next target that answers, in turn."""
        ports = self._targets()
        for _ in ports:
            self._turn += 1
            with contextlib.suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", ports[self._turn % len(ports)])
        return None

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._flowing.wait()
                if self.mode == "slow":
                    await asyncio.sleep(SLOW_S)
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
            else:
                writer.close()


class Relays:
    """All relays, in a thread of their own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._relays: list[Relay] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def to(self, targets: Callable[[], Sequence[int]]) -> Relay:
        relay = Relay(targets)
        asyncio.run_coroutine_threadsafe(relay.listen(), self._loop).result(10)
        self._relays.append(relay)
        return relay

    def switch(self, relay: Relay, mode: Mode) -> None:
        switched = threading.Event()

        def change() -> None:
            relay.switch(mode)
            switched.set()

        self._loop.call_soon_threadsafe(change)
        switched.wait(10)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end_all(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end_all(self) -> None:
        for relay in self._relays:
            relay.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

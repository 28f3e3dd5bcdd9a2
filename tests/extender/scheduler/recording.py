"""Between kube-scheduler and the extender: passes everything on, and writes down what was asked and answered when."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, NamedTuple, Self

import aiohttp
from aiohttp import web


class Exchange(NamedTuple):
    """One question and its answer, by this process's monotonic clock."""

    verb: str
    pod: str
    performance: bool
    asked_at_s: float
    answered_at_s: float
    question: dict[str, Any]
    answer: Any

    @property
    def asked(self) -> list[str]:
        return self.question["NodeNames"] or []

    @property
    def kept(self) -> list[str]:
        """The nodes that a filter answer leaves."""
        return self.answer["NodeNames"] or []


class RecordingProxy:
    """One address for one or more extenders, each asked in turn; runs in a thread of its own.

    `spoil` may answer instead of them: it is given the path, and None passes the question on.
    """

    def __init__(self, *targets: str) -> None:
        self.exchanges: list[Exchange] = []
        self.failures = 0
        self.spoilt = 0
        self.spoil: Callable[[str], web.Response | None] = lambda path: None
        self.url = ""
        self._targets = itertools.cycle(targets)
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        self._started: Future[str] = Future()

    def __enter__(self) -> Self:
        self._thread.start()
        self.url = self._started.result(timeout=10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self._loop.close()

    def filters(self, *, performance: bool) -> list[Exchange]:
        return [one for one in self.exchanges if one.verb == "filter" and one.performance == performance]

    async def _serve(self) -> None:
        app = web.Application(client_max_size=2**27)
        app.router.add_post("/{verb}", self._pass_on)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as self._session:
            await runner.setup()
            try:
                await web.TCPSite(runner, "127.0.0.1", 0).start()
                host, port = runner.addresses[0][:2]
                self._started.set_result(f"http://{host}:{port}")
                await self._end.wait()
            finally:
                await runner.cleanup()

    async def _pass_on(self, request: web.Request) -> web.Response:
        instead = self.spoil(request.path)
        if instead is not None:
            self.spoilt += 1
            return instead
        body = await request.read()
        asked_at_s = time.monotonic()
        try:
            async with self._session.post(next(self._targets) + request.path, data=body) as response:
                content, status = await response.read(), response.status
        except aiohttp.ClientError:
            self.failures += 1
            return web.Response(status=502)
        answered_at_s = time.monotonic()
        if status == 200:
            self._note(request.match_info["verb"], body, content, asked_at_s, answered_at_s)
        return web.Response(body=content, status=status, content_type="application/json")

    def _note(self, verb: str, body: bytes, content: bytes, asked_at_s: float, answered_at_s: float) -> None:
        question = json.loads(body)
        metadata = question["Pod"]["metadata"]
        performance = metadata.get("annotations", {}).get("joulie.io/workload-class") == "performance"
        name = metadata["name"]
        exchange = Exchange(verb, name, performance, asked_at_s, answered_at_s, question, json.loads(content))
        self.exchanges.append(exchange)

"""An extender inside the test process, asked over HTTP on loopback as kube-scheduler asks."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from io import BytesIO
from typing import Any, NamedTuple

import aiohttp

from joulie.catalogue.lookup import Catalogue
from joulie.cluster.decoding import json_documents
from joulie.cluster.files.collection import Collection
from joulie.cluster.port import Cluster
from joulie.extender.process import Extender
from joulie.settings import ExtenderSettings, load
from tests.extender.api_objects import Body, as_objects
from tests.operator.log_lines import Logged
from tests.support.small_clusters import NOW

CATALOGUE = Catalogue()


class Answer(NamedTuple):
    status: int
    body: bytes
    kind: str = ""  # Content-Type

    @property
    def document(self) -> Any:
        assert self.status == 200, self
        return json.loads(self.body)

    @property
    def scores(self) -> dict[str, int]:
        """Of `/prioritize`, by host."""
        return {each["Host"]: each["Score"] for each in self.document}

    @property
    def line(self) -> str:
        """Of a refusal: exactly one printable line."""
        text = self.body.decode()
        line = text.removesuffix("\n")
        assert line != text
        assert line.strip()
        assert line.isprintable()
        return line


class Asker:
    """A client that keeps its connection."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self._session = session
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    async def get(self, path: str, **headers: str) -> Answer:
        async with self._session.get(self.url + path, headers=headers) as answer:
            return Answer(answer.status, await answer.read(), answer.headers.get("Content-Type", ""))

    async def post(self, path: str, body: Any, **headers: str) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self._session.post(self.url + path, data=BytesIO(data), headers=headers) as answer:
            return Answer(answer.status, await answer.read(), answer.headers.get("Content-Type", ""))

    async def prioritize(self, pod: Any, names: list[str]) -> dict[str, int]:
        return (await self.post("/prioritize", {"Pod": pod, "Nodes": None, "NodeNames": names})).scores

    async def filter(self, pod: Any, names: list[str]) -> Any:
        return (await self.post("/filter", {"Pod": pod, "Nodes": None, "NodeNames": names})).document

    async def terms(self, pod: Any) -> dict[str, Any]:
        """Of `/debug/scoring` for a posted pod, by node."""
        scored = (await self.post("/debug/scoring", pod)).document
        return {each["node"]: each for each in scored["nodes"]}


def made(env: Mapping[str, str] | None = None, now_s: Callable[[], float] = lambda: NOW) -> Extender:
    return Extender(load(ExtenderSettings, env or {}), CATALOGUE, now_s)


def load_objects(extender: Extender, **parts: list[Body]) -> None:
    """nodes=, twins=, pods=: as from a file."""
    collection = Collection()
    listed = {"apiVersion": "v1", "kind": "List", "items": as_objects(**parts)}
    collection.add("test", json_documents.bodies(json.dumps(listed).encode()))
    extender.state.load(collection.snapshot())


@asynccontextmanager
async def following(extender: Extender, cluster: Cluster) -> AsyncIterator[None]:
    """The extender watches the cluster, and knows all of it when the block begins."""
    watching = asyncio.create_task(extender.watch(cluster))
    try:
        await until(lambda: extender.state.synced or watching.done())
        yield
        assert not watching.done()
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


@asynccontextmanager
async def serving(extender: Extender, context: ssl.SSLContext | None = None) -> AsyncIterator[Asker]:
    """The extender's own server on a free port, without a process around it."""
    server = extender.service.server()
    await server.start("127.0.0.1:0", "EXTENDER_ADDR", context)
    port = server.addresses[0][1]
    connector = aiohttp.TCPConnector(limit=1)  # one connection, so that all go over the same
    try:
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Asker(session, port)
    finally:
        await server.cleanup()


async def raw(port: int, *pieces: bytes, gap_s: float = 0.0, half_close: bool = False, within_s: float = 10.0) -> bytes:
    """All that comes back for these bytes until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(within_s):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(gap_s)
            if half_close:
                writer.write_eof()
            return await reader.read()
    finally:
        writer.close()


def request(path: str, body: bytes, *headers: str, length: int | None = None, method: str = "POST") -> bytes:
    """A request as bytes; the connection ends after it."""
    lines = [f"{method} {path} HTTP/1.1", "Host: extender", "Connection: close", *headers]
    lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def until(condition: Callable[[], bool] | Callable[[], Awaitable[bool]], within_s: float = 10.0) -> None:
    deadline_s = time.monotonic() + within_s
    while True:
        met = condition()
        if met if isinstance(met, bool) else await met:
            return
        assert time.monotonic() < deadline_s, f"not within {within_s} s"
        await asyncio.sleep(0.01)


def scenario(story: Coroutine[Any, Any, None], within_s: float = 60.0) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(within_s):
            await story

    asyncio.run(bounded())


@contextmanager
def logged() -> Iterator[Logged]:
    """Every line of every logger, debugging included."""
    handler = Logged()
    loggers = [logging.getLogger(), *(logging.getLogger(name) for name in ("joulie", "joulie.extender"))]
    levels = [logger.level for logger in loggers]
    joulie = loggers[1]
    propagates, joulie.propagate = joulie.propagate, True
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    loggers[0].addHandler(handler)
    try:
        yield handler
    finally:
        loggers[0].removeHandler(handler)
        joulie.propagate = propagates
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)

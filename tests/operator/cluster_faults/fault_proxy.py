"""Between the operator and a real API server: forwards what it is not told to spoil."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple

import aiohttp
from aiohttp import web

from joulie.cluster.api.cluster import KubernetesCluster
from joulie.cluster.api.credentials import Credentials
from joulie.cluster.watch.observer import ClusterObserver
from tests.operator.clusters import hasty
from tests.support.static_token import StaticToken

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

_PASSED_ON = ("Accept", "Authorization", "Content-Type")


class Answer(NamedTuple):
    """What becomes of a request instead of its answer."""

    what: Literal["refused", "unanswered", "answer lost"]  # the last one reaches the server
    status: int = 500
    retry_after_s: int | None = None


class HarmfulProxy:
    """`spoil` is asked about every request by method and path; `meddle` acts before a request is passed on."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.url = ""
        self.down = False
        self.spoil: Callable[[str, str], Answer | None] = lambda method, path: None
        self.meddle: Callable[[str, str], Awaitable[None]] | None = None
        self.spoilt = 0
        self._session = session
        self._deaf = 0  # streams older than this say nothing any more

    def silence_streams(self) -> None:
        """Every open watch stays open, and nothing comes any more."""
        self._deaf += 1

    def go_down(self) -> None:
        """Every watch breaks and nothing new is taken until `down` is False again."""
        self.down = True

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.down:
            return _cut(request)
        answer = self.spoil(request.method, request.path)
        self.spoilt += answer is not None
        if answer is not None and answer.what == "refused":
            again = {} if answer.retry_after_s is None else {"Retry-After": str(answer.retry_after_s)}
            return web.json_response({"message": "spoilt"}, status=answer.status, headers=again)
        if answer is None or answer.what == "answer lost":
            if self.meddle is not None:
                await self.meddle(request.method, request.path)
            response = await self._forward(request, lost=answer is not None)
            if response is not None:
                return response
        await asyncio.Event().wait()  # until the other side gives up
        raise AssertionError

    async def _forward(self, request: web.Request, *, lost: bool) -> web.StreamResponse | None:
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        body, deaf = await request.read(), self._deaf
        async with self._session.request(request.method, request.raw_path, data=body, headers=headers) as answer:
            if "watch" not in request.query:
                content = await answer.read()
                passed_on = {"Content-Type": answer.content_type}
                return None if lost else web.Response(body=content, status=answer.status, headers=passed_on)
            stream = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
            await stream.prepare(request)
            async for piece in answer.content.iter_any():
                if self.down:
                    return _cut(request)
                if deaf < self._deaf:
                    return None
                await stream.write(piece)
            return stream


def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=502)


@asynccontextmanager
async def harmful(plane: ControlPlane) -> AsyncIterator[HarmfulProxy]:
    connector = aiohttp.TCPConnector(limit=0, ssl=ssl.create_default_context(cafile=str(plane.ca_file)))
    async with aiohttp.ClientSession(plane.url, connector=connector) as session:
        proxy = HarmfulProxy(session)
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", proxy.handle)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            host, port = runner.addresses[0][:2]
            proxy.url = f"http://{host}:{port}"
            yield proxy
        finally:
            await runner.cleanup()


def spoilt_cluster(
    plane: ControlPlane, proxy: HarmfulProxy, observer: ClusterObserver, *, timeout_s: float = 0.7, idle_s: float = 30.0
) -> KubernetesCluster:
    credentials = Credentials(proxy.url, StaticToken(plane.admin_token))
    return KubernetesCluster(credentials, observer=observer, timeout_s=timeout_s, watch_idle_s=idle_s, backoff=hasty)

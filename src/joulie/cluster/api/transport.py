"""HTTP to the API server: JSON calls with deadlines, and streams. Knows nothing about objects and never retries.

Uses aiohttp directly, because a client library would cost memory in the agent of every node.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Mapping
from typing import Any, NoReturn

import aiohttp

from joulie.cluster.api import streams
from joulie.cluster.api.credentials import Credentials
from joulie.cluster.api.errors import MAX_MESSAGE_CHARS, raise_api_error, read_status
from joulie.cluster.api.write_guard import guarded
from joulie.cluster.port import ClusterError, IdleTimeoutError, MaySend
from joulie.errors import one_line

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML; servers before 1.32 know no other name for it

_HEADERS = {
    "Accept": JSON,
    # Compressing a list costs both ends more time than sending it costs inside a data centre.
    "Accept-Encoding": "identity",
    "User-Agent": "joulie",
}
SLOW_S = 0.02  # pausing and resuming costs as much as reading the chunks of this time
_UNAUTHORIZED = 401


class Transport:
    """Connections to one API server, opened on first use inside the running event loop."""

    def __init__(
        self, credentials: Credentials, *, timeout_s: float = 10.0, connect_s: float = 5.0, connections: int = 100
    ) -> None:
        self._credentials = credentials
        self._timeout_s = timeout_s
        self._connect_s = connect_s
        self._connections = connections
        self.server_date = ""  # Date header of the last response: the server's clock
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self._deadlines: set[asyncio.Timeout] = set()  # of all calls in progress

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout_s: float | None = None,
        may_send: MaySend | None = None,
    ) -> bytes:
        """The response body; ClusterError by the deadline, which includes waiting for a free connection."""
        deadline_s = timeout_s or self._timeout_s
        try:
            async with self._within(deadline_s):
                headers = await self._headers()
                if body is not None:
                    headers["Content-Type"] = content_type
                async with self._open().request(
                    method,
                    self._credentials.url + path,
                    params=query,
                    data=guarded(body, may_send),
                    headers=headers,
                    **self._options(),
                ) as response:
                    data = await response.read()
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            self._no_answer(method, path, error, deadline_s)
        self.server_date = response.headers.get("Date", "")
        if response.status >= 400:
            self._refused(method, path, response, data)
        return data

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, idle_s: float
    ) -> AsyncGenerator[AsyncGenerator[bytes, None], None]:
        """An endless response in chunks as they arrive; IdleTimeoutError when it has been idle for too long.

        While the caller processes a chunk slowly, data stays in the kernel's buffer and is then read in one go, so
        that hundreds of small chunks cost as much as one.
        """
        try:
            async with self._within(self._timeout_s):
                response = await self._open().get(
                    self._credentials.url + path, params=query, headers=await self._headers(), **self._options()
                )
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            self._no_answer("GET", path, error, self._timeout_s)
        try:
            if response.status >= 400:
                self._refused("GET", path, response, await self._rest(path, response))
            streams.enable_keepalive(response)
            streams.minimise_buffer(response)
            async with contextlib.aclosing(self._pieces(path, response, idle_s)) as pieces:
                yield pieces
        finally:
            streams.abort(response)

    async def close(self) -> None:
        """Closes all connections; calls in progress end with a ClusterError.

        They are woken by their own deadlines, because closing a session does not wake the readers of its connections.
        """
        self._closed = True
        now_s = asyncio.get_running_loop().time()
        for deadline in self._deadlines:
            if not deadline.expired():
                deadline.reschedule(now_s)
        await asyncio.sleep(0)
        if self._session is not None:
            await self._session.close()
            for _ in range(5):  # connections are closed by callbacks that schedule further callbacks
                await asyncio.sleep(0)

    async def _pieces(self, path: str, response: aiohttp.ClientResponse, idle_s: float) -> AsyncGenerator[bytes, None]:
        """For one task: a single deadline covers all chunks, and is suspended while one is processed."""
        now_s, is_slow = asyncio.get_running_loop().time, False
        try:
            async with self._within(idle_s) as deadline:
                while piece := await response.content.readany():
                    deadline.reschedule(None)
                    self._deadlines.discard(deadline)
                    if is_slow:
                        streams.set_reading(response, False)
                    began_s = now_s()
                    yield piece
                    is_slow = now_s() - began_s > SLOW_S
                    if self._closed:
                        raise aiohttp.ClientConnectionError("closed in the meantime")
                    streams.set_reading(response, True)
                    self._deadlines.add(deadline)
                    deadline.reschedule(now_s() + idle_s)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            kind = IdleTimeoutError if isinstance(error, TimeoutError) else ClusterError
            self._no_answer("GET", path, error, idle_s, kind)

    async def _rest(self, path: str, response: aiohttp.ClientResponse) -> bytes:
        try:
            async with self._within(self._timeout_s):
                return await response.read()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            self._no_answer("GET", path, error, self._timeout_s)

    @contextlib.asynccontextmanager
    async def _within(self, seconds: float) -> AsyncGenerator[asyncio.Timeout, None]:
        """A deadline that `close` brings forward."""
        async with asyncio.timeout(seconds) as deadline:
            self._deadlines.add(deadline)
            try:
                yield deadline
            finally:
                self._deadlines.discard(deadline)

    def _open(self) -> aiohttp.ClientSession:
        if self._closed:
            raise ClusterError("the connection to the API server is closed")
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=self._connections, ssl=self._credentials.ssl_context or True)
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers=_HEADERS,
                timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=self._connect_s),
                trust_env=False,  # a proxy for the internet is not one for the API server, and looking it up costs time
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def _headers(self) -> dict[str, str]:
        authorization = await self._credentials.authorization()
        return {} if authorization is None else {"Authorization": authorization}

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"allow_redirects": False}
        if self._credentials.server_name:
            options["server_hostname"] = self._credentials.server_name
        if self._credentials.proxy:
            options["proxy"] = self._credentials.proxy
        return options

    def _no_answer(
        self, method: str, path: str, error: Exception, deadline_s: float, kind: type[ClusterError] = ClusterError
    ) -> NoReturn:
        if self._closed:
            reason = "the connection was closed"
        elif isinstance(error, aiohttp.ServerTimeoutError):
            reason = f"no connection within {self._connect_s:.1f} s"
        elif isinstance(error, TimeoutError):
            reason = f"no answer within {deadline_s:.1f} s"
        elif isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLError):
            reason = f"the server's certificate is not trusted: {error}"
        else:
            reason = f"{error}" or type(error).__name__
        raise kind(one_line(f"{method} {self._credentials.url}{path}: {reason}", MAX_MESSAGE_CHARS)) from None

    def _refused(self, method: str, path: str, response: aiohttp.ClientResponse, data: bytes) -> NoReturn:
        if response.status == _UNAUTHORIZED:
            self._credentials.forget()
        said = read_status(data)
        asked = response.headers.get("Retry-After", "")
        retry_after_s = float(asked) if asked.isdecimal() and len(asked) < 10 else None
        if retry_after_s is None and said.details is not None:
            retry_after_s = said.details.retry_after_seconds
        message = said.message or response.reason or "no reason given"
        raise_api_error(f"{method} {path}: {response.status} {message}", response.status, retry_after_s)

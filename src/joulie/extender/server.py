"""The extender's HTTP service: checks, times and answers requests; errors are one line."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator

from aiohttp import HttpVersion10, web

from joulie.errors import one_line
from joulie.extender import debug
from joulie.extender.answers import Answers, Scored
from joulie.extender.metrics import ExtenderMetrics
from joulie.extender.pending_pods import PendingPods
from joulie.extender.preemption import read_preemption
from joulie.extender.requests import BadRequestError, ExtenderArgs, TooLargeError, read_args, read_pod
from joulie.extender.state import ExtenderState
from joulie.logs import Log
from joulie.model.snapshot import Pod
from joulie.serving import ConnectionLimits, HttpServer, Page, bare_server, in_pieces
from joulie.settings import ExtenderSettings

PIECE_BYTES = 1 << 20
MAX_NEW_NODES = 1_000  # that kube-scheduler may know before the extender does
MIN_LARGEST_BYTES = 4 << 20  # for small clusters: a pod and new nodes
BYTES_PER_NODE = 64 << 10  # of a whole node; many images make it large
RETRY_AFTER_S = "1"
READ_AHEAD_BYTES = 4 << 20  # otherwise reading pauses every quarter of a megabyte
JSON, TEXT = "application/json", "text/plain"
MAX_PAGES = 4  # being rendered or waiting
PAGE_PAUSE_S = 0.001  # between chunks of a scrape, so that a request waits for one or two
PARTING_S = 1.0  # a busy scheduler sends requests more often
MAX_HEAD_S = 10.0
Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]

_SILENT = logging.getLogger("joulie.extender.http")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False  # requests are counted, not logged, even bad ones


class Service:
    """The paths of the extender."""

    def __init__(
        self,
        state: ExtenderState,
        answers: Answers,
        pending: PendingPods,
        metrics: ExtenderMetrics,
        settings: ExtenderSettings,
        now_s: Callable[[], float],
    ) -> None:
        self._state, self._answers, self._pending, self._metrics = state, answers, pending, metrics
        self._settings, self._now_s = settings, now_s
        self._in_progress = 0
        self._pages: dict[Hashable, asyncio.Task[bytes]] = {}
        self._one_page = asyncio.Lock()
        self._ending = False
        self._metrics_page = Page(metrics.page, PAGE_PAUSE_S)
        self._faults: set[type[Exception]] = set()
        self._log = Log("extender")
        self._posts: dict[str, Handler] = {
            "/filter": self._filter,
            "/prioritize": self._prioritize,
            "/preempt": self._preempt,
            "/debug/scoring": self._debug,
        }
        self._gets: dict[str, Handler] = {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._page,
            "/debug/scoring": self._debug,
        }

    def server(self) -> HttpServer:
        """A server for one address, without router, middleware or log."""
        settings = self._settings
        patience_s = min(MAX_HEAD_S, settings.request_timeout_s * 10)
        limits = ConnectionLimits(
            connections=settings.max_connections,
            head_s=patience_s,
            unread_s=patience_s,
            half_closed=True,
            held_bytes=max(ConnectionLimits().held_bytes, 2 * settings.max_request_bytes),
        )
        return bare_server(
            self.handle,
            limits,
            self._count_refusal,
            _SILENT,
            auto_decompress=False,
            read_bufsize=READ_AHEAD_BYTES,
        )

    async def handle(self, request: web.BaseRequest) -> web.Response:
        self._in_progress += 1
        try:
            answer = await self._answer(request)
        finally:
            self._in_progress -= 1
        if self._ending:
            answer.force_close()
        return answer

    async def finish(self, connected: Callable[[], bool], within_s: float) -> None:
        """Answers requests in progress within the limit, and closes each connection after its response.

        A kept connection may send one more request soon; its response tells the client to reconnect elsewhere.
        """
        self._ending = True
        loop = asyncio.get_running_loop()
        asking_s, ending_s = (loop.time() + wait_s for wait_s in (PARTING_S, within_s))
        while loop.time() < (ending_s if self._in_progress else asking_s) and connected():
            await asyncio.sleep(0.01)

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        path, method = request.path, request.method
        table = self._posts if method == "POST" else self._gets if method in ("GET", "HEAD") else {}
        handler = table.get(path)
        if handler is None:
            known = path in self._posts or path in self._gets
            return self._refuse(405 if known else 404, f"{method} {one_line(path, 80)} is not served here")
        try:
            return await handler(request)
        except _RefusedError as error:
            return self._refuse(error.status, str(error))
        except TooLargeError as error:
            return self._refuse(413, str(error))
        except BadRequestError as error:
            return self._refuse(400, str(error))
        except TimeoutError:
            return self._refuse(408, f"the request did not arrive within {self._settings.request_timeout_s:g} s")
        except web.RequestPayloadError as error:
            return self._refuse(400, f"the request's body cannot be read: {one_line(str(error), 200)}")
        except ConnectionError:  # the client is gone
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the scheduler gets an answer
            if type(error) not in self._faults:  # a bug: logged once, then counted
                self._faults.add(type(error))
                self._log.error("request failed with an internal error", exc_info=True, path=path)
            return self._refuse(500, f"internal error: {one_line(repr(error), 200)}")

    async def _filter(self, request: web.BaseRequest) -> web.Response:
        body = await self._body(request)
        started = time.perf_counter()
        args = read_args(body, self._max_nodes())
        answer = self._answers.filter(args)
        took_s = time.perf_counter() - started
        self._afterwards(self._filtered, args, answer.kept, took_s)
        return _json(answer.body)

    def _filtered(self, args: ExtenderArgs, kept: bytes, took_s: float) -> None:
        self._metrics.answered("filter", args.pod.workload_class, took_s)
        if kept:
            self._answers.speculate(args, kept, self._now_s())

    async def _prioritize(self, request: web.BaseRequest) -> web.Response:
        body = await self._body(request)
        started = time.perf_counter()
        args = read_args(body, self._max_nodes())
        now_s = self._now_s()
        self._pending.expire(now_s)
        scored = self._answers.prioritize(args, now_s)
        took_s = time.perf_counter() - started
        self._afterwards(self._prioritized, args, scored, took_s)
        return _json(scored.body)

    def _prioritized(self, args: ExtenderArgs, scored: Scored, took_s: float) -> None:
        workload_class, now_s = args.pod.workload_class, self._now_s()
        self._metrics.answered("prioritize", workload_class, took_s)
        self._metrics.note_scores(workload_class, scored.rows, scored.points)
        key = f"{args.pod.namespace}/{args.pod.name}"
        if args.exists and self._settings.score.count_recent_pods and self._state.may_be_bound(key):
            self._pending.expect(key, args.pod, scored, now_s)

    def _afterwards(self, work: Callable[..., None], *arguments: object) -> None:
        """Runs after the response is on its way and before the next request, so that the scheduler does not wait."""
        asyncio.get_running_loop().call_soon(work, *arguments)

    async def _preempt(self, request: web.BaseRequest) -> web.Response:
        pod, victims = read_preemption(await self._body(request), self._max_nodes())
        self._metrics.preempt_requests.inc()
        return _json(self._answers.preempt(pod, victims))

    async def _debug(self, request: web.BaseRequest) -> web.Response:
        form = request.query.get("format", "table" if TEXT in request.headers.get("Accept", "") else "json")
        if form not in ("table", "json"):
            raise BadRequestError(f"format={one_line(form, 80)}: expected table or json")
        asked: bytes | str | None = await self._body(request) if request.method == "POST" else request.query.get("pod")
        pod = read_pod(asked, "Pod") if isinstance(asked, bytes) else self._state.pods.get(asked or "")
        if pod is None and asked is not None:
            return self._refuse(404, f"pod {one_line(str(asked), 300)!r} is not known; expected NAMESPACE/NAME")
        if len(self._pages) >= MAX_PAGES and (form, asked) not in self._pages:
            raise _RefusedError(503, "too many debug requests at once")
        body = await self._in_turn((form, asked), lambda: self._debug_pieces(form, pod))
        return web.Response(text=body.decode()) if form == "table" else _json(body)

    def _debug_pieces(self, form: str, pod: Pod | None) -> Iterator[bytes]:
        now_s = self._now_s()
        self._pending.expire(now_s)
        copy = debug.BoardCopy.of(self._state.board, now_s)
        if pod is None:
            return debug.state_table(copy) if form == "table" else debug.state_json(copy, self._settings.marginal)
        return debug.scores_table(copy, pod) if form == "table" else debug.scores_json(copy, pod)

    async def _in_turn(self, key: Hashable, pieces: Callable[[], Iterator[bytes]]) -> bytes:
        """Renders a page, which costs as much as many requests: one at a time, shared by all waiting clients."""
        page = self._pages.get(key)
        if page is None:
            page = self._pages[key] = asyncio.create_task(self._page_of(pieces))
            page.add_done_callback(lambda _: self._pages.pop(key))
        return await asyncio.shield(page)

    async def _page_of(self, pieces: Callable[[], Iterator[bytes]]) -> bytes:
        """Renders in chunks, so that requests do not wait for the whole page."""
        made: list[bytes] = []
        async with self._one_page:
            for piece in pieces():
                made.append(piece)
                await asyncio.sleep(PAGE_PAUSE_S)
        return b"".join(made)

    async def _healthz(self, _: web.BaseRequest) -> web.Response:
        return _text(("ok\n",))

    async def _readyz(self, _: web.BaseRequest) -> web.Response:
        return _text(("ok\n",)) if self._state.synced else self._refuse(503, _NOT_SYNCED)

    async def _page(self, _: web.BaseRequest) -> web.Response:
        self._pending.expire(self._now_s())
        return await self._metrics_page.answer()

    async def _body(self, request: web.BaseRequest) -> bytes:
        """The whole body, if it is neither too large nor too slow. Refused before the first sync."""
        if not self._state.synced:
            raise _RefusedError(503, _NOT_SYNCED)
        needed = MIN_LARGEST_BYTES + BYTES_PER_NODE * len(self._state.board.index)
        largest = min(self._settings.max_request_bytes, needed)
        if (request.content_length or 0) > largest:
            raise _too_large(largest)
        if (coding := request.headers.get("Content-Encoding", "identity")).lower() != "identity":
            raise BadRequestError(
                f"Content-Encoding {one_line(coding, 80)} is not supported: send the body uncompressed"
            )
        if (
            request.headers.get("Expect", "").lower() == "100-continue" and request.version > HttpVersion10
        ):  # curl waits for this
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        if request.content.is_eof():  # small bodies have arrived completely
            body = request.content.read_nowait()
            if len(body) > largest:
                raise _too_large(largest)
            return body
        pieces: list[bytes] = []
        size = 0
        async with asyncio.timeout(self._settings.request_timeout_s):
            while piece := await request.content.readany():
                size += len(piece)
                if size > largest:
                    raise _too_large(largest)
                pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _max_nodes(self) -> int:
        return len(self._state.board.index) + MAX_NEW_NODES

    def _refuse(self, status: int, reason: str) -> web.Response:
        self._count_refusal(status)
        headers = {"Retry-After": RETRY_AFTER_S} if status == 503 else None
        return web.Response(status=status, text=reason + "\n", headers=headers)

    def _count_refusal(self, status: int) -> None:
        self._metrics.refused.labels(str(status)).inc()


class _RefusedError(Exception):
    """The request is valid but cannot be answered now."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


_NOT_SYNCED = "not all objects are known yet"


def _too_large(largest: int) -> TooLargeError:
    return TooLargeError(f"the request is larger than {largest} bytes")


def _json(body: bytes) -> web.Response:
    return in_pieces(body, JSON, PIECE_BYTES)


def _text(lines: Iterable[str]) -> web.Response:
    return web.Response(text="".join(lines))

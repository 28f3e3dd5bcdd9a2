"""The extender over HTTP: what arrives is checked, timed and answered; what is wrong gets one line."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable

import msgspec
from aiohttp import HttpVersion10, web

from joulie.extender import debug
from joulie.extender.answers import Answers, Scored
from joulie.extender.connections import Handler, PunctualServer
from joulie.extender.expected import ExpectedPods
from joulie.extender.metrics import ExtenderMetrics
from joulie.extender.preemption import read_preemption
from joulie.extender.requests import BadRequestError, Question, one_line, read_pod, read_question
from joulie.extender.state import ExtenderState
from joulie.logs import Log
from joulie.settings import ExtenderSettings

PIECE_BYTES = 1 << 20
READ_AHEAD_BYTES = 4 << 20  # else reading pauses and goes on for each quarter of a megabyte
JSON, TEXT = "application/json", "text/plain"
PAGE_PAUSE_S = 0.001  # a scrape may take its time, a request meets one piece of it or two
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
PARTING_S = 1.0  # a scheduler that is busy asks more often
IDLE_S = 75.0  # kube-scheduler keeps idle connections for 90 s; one that sends nothing is closed before
_SILENT = logging.getLogger("joulie.extender.http")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False  # a request costs no log line, a bad one neither: they are counted


class Service:
    """Every path that the extender knows."""

    def __init__(
        self,
        state: ExtenderState,
        answers: Answers,
        expected: ExpectedPods,
        metrics: ExtenderMetrics,
        settings: ExtenderSettings,
        now_s: Callable[[], float],
    ) -> None:
        self._state, self._answers, self._expected, self._metrics = state, answers, expected, metrics
        self._settings, self._now_s = settings, now_s
        self._begun = 0
        self._ending = False
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

    def server(self) -> web.Server:
        """For a runner: no router, no middleware, no log."""
        return PunctualServer(
            self.handle,
            self._count_refusal,
            access_log=None,
            logger=_SILENT,
            keepalive_timeout=IDLE_S,
            lingering_time=1.0,
            auto_decompress=False,
            read_bufsize=READ_AHEAD_BYTES,
            head_timeout_s=self._settings.request_timeout_s * 10,
        )

    async def handle(self, request: web.BaseRequest) -> web.Response:
        self._begun += 1
        try:
            answer = await self._answer(request)
        finally:
            self._begun -= 1
        if self._ending:
            answer.force_close()
        return answer

    async def finish(self, connected: Callable[[], bool], within_s: float) -> None:
        """Answer what has begun and part with each client after its answer; what takes longer is left.

        A client that asks on a kept connection gets a last answer if it asks soon, which tells it to go elsewhere.
        """
        self._ending = True
        loop = asyncio.get_running_loop()
        asking_s, ending_s = (loop.time() + wait_s for wait_s in (PARTING_S, within_s))
        while loop.time() < (ending_s if self._begun else asking_s) and connected():
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
        except BadRequestError as error:
            return self._refuse(400, str(error))
        except TimeoutError:
            return self._refuse(408, f"the request did not arrive within {self._settings.request_timeout_s:g} s")
        except _NotReadyError:
            return self._refuse(503, _NOT_SYNCED)
        except _TooLargeError:
            return self._refuse(413, f"the request is larger than {self._settings.max_request_bytes} bytes")
        except web.RequestPayloadError as error:
            return self._refuse(400, f"the request's body is broken: {one_line(str(error), 200)}")
        except ConnectionError:  # nobody waits for the answer
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the scheduler gets an answer
            if type(error) not in self._faults:  # a fault of ours: said once, then counted
                self._faults.add(type(error))
                self._log.error("a request could not be answered", exc_info=True, path=path)
            return self._refuse(500, f"a fault in the extender: {one_line(repr(error), 200)}")

    async def _filter(self, request: web.BaseRequest) -> web.Response:
        body = await self._body(request)
        started = time.perf_counter()
        question = read_question(body, keep_nodes=True)
        answer = self._answers.filter(question)
        took_s = time.perf_counter() - started
        self._afterwards(self._filtered, question, answer.kept, took_s)
        return _json(answer.body)

    def _filtered(self, question: Question, kept: bytes, took_s: float) -> None:
        self._metrics.answered("filter", question.pod.workload_class, took_s)
        if kept:
            self._answers.foresee(question, kept, self._now_s())

    async def _prioritize(self, request: web.BaseRequest) -> web.Response:
        body = await self._body(request)
        started = time.perf_counter()
        question = read_question(body, keep_nodes=False)
        now_s = self._now_s()
        self._expected.expire(now_s)
        scored = self._answers.prioritize(question, now_s)
        took_s = time.perf_counter() - started
        self._afterwards(self._prioritized, question, scored, took_s)
        return _json(scored.body)

    def _prioritized(self, question: Question, scored: Scored, took_s: float) -> None:
        workload_class, now_s = question.pod.workload_class, self._now_s()
        self._metrics.answered("prioritize", workload_class, took_s)
        self._metrics.note_scores(workload_class, scored.rows, scored.points)
        key = f"{question.pod.namespace}/{question.pod.name}"
        if question.exists and self._settings.score.count_recent_pods and self._state.waits_for_a_node(key):
            self._expected.expect(key, scored, now_s)

    def _afterwards(self, work: Callable[..., None], *arguments: object) -> None:
        """When the answer is on its way and before anything else is asked: the scheduler need not wait for it."""
        asyncio.get_running_loop().call_soon(work, *arguments)

    async def _preempt(self, request: web.BaseRequest) -> web.Response:
        pod, victims = read_preemption(await self._body(request))
        self._metrics.preempt_requests.inc()
        return _json(self._answers.preempt(pod, victims))

    async def _debug(self, request: web.BaseRequest) -> web.Response:
        board, now_s = self._state.board, self._now_s()
        self._expected.expire(now_s)
        form = request.query.get("format", "table" if TEXT in request.headers.get("Accept", "") else "json")
        if form not in ("table", "json"):
            raise BadRequestError(f"format={one_line(form, 80)}: table or json")
        wants_table = form == "table"
        if request.method == "POST":
            pod = read_pod(await self._body(request), "Pod")
        elif "pod" in request.query:
            found = self._state.pods.get(request.query["pod"])
            if found is None:
                wanted = one_line(request.query["pod"], 300)
                return self._refuse(404, f"pod {wanted!r} is not known; write NAMESPACE/NAME")
            pod = found
        else:
            state = debug.state_json(board, self._settings.marginal, now_s)
            return _text(debug.state_table(state)) if wants_table else _json(msgspec.json.encode(state))
        scores = debug.scores_of(board, pod, now_s)
        if wants_table:
            return _text(debug.scores_table(board, pod, scores))
        return _json(msgspec.json.encode(debug.scores_json(board, pod, scores)))

    async def _healthz(self, _: web.BaseRequest) -> web.Response:
        return _text(("ok\n",))

    async def _readyz(self, _: web.BaseRequest) -> web.Response:
        return _text(("ok\n",)) if self._state.synced else self._refuse(503, _NOT_SYNCED)

    async def _page(self, _: web.BaseRequest) -> web.Response:
        """In pieces, so that nobody waits for the whole page."""
        self._expected.expire(self._now_s())
        pieces: list[bytes] = []
        for piece in self._metrics.page():
            pieces.append(piece)
            await asyncio.sleep(PAGE_PAUSE_S)
        return web.Response(body=b"".join(pieces), headers={"Content-Type": PROMETHEUS})

    async def _body(self, request: web.BaseRequest) -> bytes:
        """All of the request, if it is not too large and not too slow; nothing is answered before all is known."""
        if not self._state.synced:
            raise _NotReadyError
        largest = self._settings.max_request_bytes
        if (request.content_length or 0) > largest:
            raise _TooLargeError
        if (coding := request.headers.get("Content-Encoding", "identity")).lower() != "identity":
            raise BadRequestError(f"Content-Encoding {one_line(coding, 80)} is not read: send the body as it is")
        if (
            request.headers.get("Expect", "").lower() == "100-continue" and request.version > HttpVersion10
        ):  # curl waits for it
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        if request.content.is_eof():  # small ones have arrived as a whole
            body = request.content.read_nowait()
            if len(body) > largest:
                raise _TooLargeError
            return body
        pieces: list[bytes] = []
        size = 0
        async with asyncio.timeout(self._settings.request_timeout_s):
            while piece := await request.content.readany():
                size += len(piece)
                if size > largest:
                    raise _TooLargeError
                pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _refuse(self, status: int, reason: str) -> web.Response:
        self._count_refusal(status)
        return web.Response(status=status, text=reason + "\n")

    def _count_refusal(self, status: int) -> None:
        self._metrics.refused.labels(str(status)).inc()


class _NotReadyError(Exception):
    pass


class _TooLargeError(Exception):
    pass


_NOT_SYNCED = "not all objects are known yet"


def _json(body: bytes) -> web.Response:
    """What is large goes out piece by piece: at once, it would be copied twice more on its way."""
    if len(body) <= PIECE_BYTES:
        return web.Response(body=body, content_type=JSON)
    return web.Response(body=_pieces(body), headers={"Content-Type": JSON, "Content-Length": str(len(body))})


async def _pieces(body: bytes) -> AsyncIterator[memoryview]:
    for start in range(0, len(body), PIECE_BYTES):
        yield memoryview(body)[start : start + PIECE_BYTES]


def _text(lines: Iterable[str]) -> web.Response:
    return web.Response(text="".join(lines))

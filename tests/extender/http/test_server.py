"""HTTP as clients of all sorts speak it: limits, deadlines, kept connections, and one line for what is refused."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.extender.api_objects import node, pod, twin
from tests.extender.harness import Asker, load_objects, made, raw, request, scenario, serving
from tests.extender.http.bad_clients import Refused, read_answer

QUESTION = json.dumps({"Pod": pod(), "NodeNames": ["a", "b"]}).encode()
ANSWER = {"a": 43, "b": 50}


@asynccontextmanager
async def server(**env: str) -> AsyncIterator[Asker]:
    extender = made(env)
    load_objects(extender, nodes=[node("a")], twins=[twin("a", "eco", measured_w=420)])
    async with serving(extender) as asker:
        assert await asker.prioritize(pod(), ["a", "b"]) == ANSWER
        yield asker


def _scores(line: str) -> dict[str, int]:
    return {each["Host"]: each["Score"] for each in json.loads(line)}


def _parsed(answer: bytes) -> Refused:
    head, _, body = answer.partition(b"\r\n\r\n")
    return Refused(int(head.split()[1]), body.decode())


async def _told(port: int, *pieces: bytes, gap_s: float = 0.0) -> Refused:
    """The first answer; the connection may linger for what is still to come."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(gap_s)
        return await read_answer(reader)
    finally:
        writer.close()


def _chunked(*chunks: bytes, path: str = "/prioritize", end: bytes = b"0\r\n\r\n") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: e\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    return head + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + end


class TestSize:
    LIMIT = 200_000

    @pytest.mark.parametrize("path", ["/filter", "/prioritize", "/preempt", "/debug/scoring"])
    @pytest.mark.parametrize("chunked", [False, True], ids=["said", "unsaid"])
    def test_one_byte_too_many_is_413(self, path: str, chunked: bool) -> None:
        async def story() -> None:
            async with server(EXTENDER_MAX_REQUEST_BYTES=str(self.LIMIT)) as asker:
                body = b" " * (self.LIMIT + 1)
                pieces = [body[start : start + 50_000] for start in range(0, len(body), 50_000)]
                data = _chunked(*pieces, path=path) if chunked else request(path, body)
                answer = _parsed(await raw(asker.port, data))
                assert answer == (413, f"the request is larger than {self.LIMIT} bytes\n")

        scenario(story())

    def test_one_that_says_so_is_refused_before_its_body_comes(self) -> None:
        async def story() -> None:
            async with server(EXTENDER_REQUEST_TIMEOUT="60s") as asker:
                data = request("/filter", b"", length=128 * 2**20 + 1)
                assert (await _told(asker.port, data)).status == 413

        scenario(story())

    def test_as_much_as_is_allowed_is_answered(self) -> None:
        async def story() -> None:
            async with server(EXTENDER_MAX_REQUEST_BYTES=str(self.LIMIT)) as asker:
                body = QUESTION + b" " * (self.LIMIT - len(QUESTION))
                assert (await asker.post("/prioritize", body)).scores == ANSWER
                assert _scores(_parsed(await raw(asker.port, _chunked(body[:70_000], body[70_000:]))).line) == ANSWER

        scenario(story())


class TestDeadline:
    @pytest.mark.parametrize(
        "data",
        [
            request("/filter", b"{", length=99),
            _chunked(b"{", path="/filter", end=b""),
            _chunked(path="/filter", end=b""),
        ],
        ids=["short", "chunks without end", "no chunk"],
    )
    def test_a_body_that_does_not_come_is_408(self, data: bytes) -> None:
        async def story() -> None:
            async with server(EXTENDER_REQUEST_TIMEOUT="100ms") as asker:
                assert await _told(asker.port, data) == (408, "the request did not arrive within 0.1 s\n")

        scenario(story())

    def test_one_that_drips_is_408_at_the_same_time(self) -> None:
        async def story() -> None:
            async with server(EXTENDER_REQUEST_TIMEOUT="200ms") as asker:
                reader, writer = await asyncio.open_connection("127.0.0.1", asker.port)
                began_s = time.monotonic()
                writer.write(request("/filter", b"", length=10_000))
                while not reader._buffer:  # type: ignore[attr-defined]
                    writer.write(b" ")
                    await asyncio.sleep(0.01)
                    assert time.monotonic() - began_s < 30
                assert (await read_answer(reader)).status == 408
                writer.close()

        scenario(story())

    @pytest.mark.parametrize("data", [b"P", b"POST /filter HTTP/1.1\r\nHost: e\r\nA: b\r\n"])
    def test_a_head_that_does_not_come_is_408_too(self, data: bytes) -> None:
        async def story() -> None:
            async with server(EXTENDER_REQUEST_TIMEOUT="20ms") as asker:
                answer = _parsed(await raw(asker.port, data))
                assert answer == (408, "the request's head did not arrive in time\n")

        scenario(story())

    def test_good_requests_are_answered_while_hundreds_drip(self) -> None:
        async def story() -> None:
            async with server() as asker:
                drips = [await asyncio.open_connection("127.0.0.1", asker.port) for _ in range(200)]
                for at, (_, writer) in enumerate(drips):
                    writer.write(request("/filter", b"{", length=1000) if at % 2 else b"POST /fi")
                for _ in range(50):
                    assert (await asker.post("/prioritize", QUESTION)).scores == ANSWER
                for _, writer in drips:
                    writer.close()

        scenario(story())


class TestBodies:
    @pytest.mark.parametrize("expected", ["100-continue", "100-Continue"])
    def test_curl_is_told_to_go_on_with_a_large_body(self, expected: str) -> None:
        """It sends `Expect: 100-continue` and waits a second, longer than the deadline."""

        async def story() -> None:
            async with server() as asker:
                reader, writer = await asyncio.open_connection("127.0.0.1", asker.port)
                writer.write(request("/prioritize", b"", f"Expect: {expected}", length=len(QUESTION)))
                assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
                writer.write(QUESTION)
                answer = await read_answer(reader)
                assert _scores(answer.line) == ANSWER
                writer.close()

        scenario(story())

    def test_who_speaks_http_1_0_is_not_told_to_go_on(self) -> None:
        async def story() -> None:
            async with server() as asker:
                old = request("/prioritize", QUESTION, "Expect: 100-continue").replace(b"HTTP/1.1", b"HTTP/1.0", 1)
                answer = await raw(asker.port, old)
                assert b"100 Continue" not in answer
                assert b" 200 OK" in answer

        scenario(story())

    def test_who_has_sent_all_and_says_so_still_gets_the_answer(self) -> None:
        async def story() -> None:
            async with server() as asker:
                for _ in range(20):
                    answer = _parsed(await raw(asker.port, request("/prioritize", QUESTION), half_close=True))
                    assert _scores(answer.line) == ANSWER
                short = await raw(asker.port, request("/prioritize", QUESTION[:-1], length=999), half_close=True)
                assert _parsed(short).status == 408
                assert await raw(asker.port, half_close=True) == b""
                assert await raw(asker.port, b"POST /fil", half_close=True) == b""

        scenario(story())

    @pytest.mark.parametrize("broken", [b"ZZ\r\n{}\r\n", b"5\r\nabcdefgh\r\n", b"-1\r\n", b"\r\n\r\n"])
    def test_a_chunk_that_breaks_in_the_middle_is_refused(self, broken: bytes) -> None:
        async def story() -> None:
            async with server(EXTENDER_REQUEST_TIMEOUT="100ms") as asker:
                answer = await _told(asker.port, _chunked(b"  ", end=b""), broken, gap_s=0.02)
                assert answer.status in (400, 408)
                assert answer.line.endswith("\n")
                assert (await asker.post("/prioritize", QUESTION)).scores == ANSWER

        scenario(story())

    def test_compressed_ones_are_not_understood(self) -> None:
        async def story() -> None:
            async with server() as asker:
                body = gzip.compress(QUESTION)
                answer = await asker.post("/prioritize", body, **{"Content-Encoding": "gzip"})
                assert answer.status == 400
                assert answer.line == "Content-Encoding gzip is not supported: send the body uncompressed"
                plain = request("/prioritize", QUESTION, "Content-Encoding: Identity")
                assert b" 200 OK" in await raw(asker.port, plain)

        scenario(story())


class TestConnections:
    def test_one_connection_serves_good_and_bad_in_order(self) -> None:
        async def story() -> None:
            async with server() as asker:
                reader, writer = await asyncio.open_connection("127.0.0.1", asker.port)
                good = request("/prioritize", QUESTION).replace(b"Connection: close\r\n", b"")
                bad = request("/prioritize", b"{").replace(b"Connection: close\r\n", b"")
                nowhere = request("/nowhere", QUESTION).replace(b"Connection: close\r\n", b"")
                writer.write((good + bad + nowhere) * 30)
                statuses = [(await read_answer(reader)).status for _ in range(90)]
                assert statuses == [200, 400, 404] * 30
                writer.close()

        scenario(story())

    def test_old_clients_are_served_too(self) -> None:
        async def story() -> None:
            async with server() as asker:
                head = f"POST /prioritize HTTP/1.0\r\nContent-Length: {len(QUESTION)}\r\n\r\n".encode()
                answer = await raw(asker.port, head + QUESTION)
                assert _scores(_parsed(answer).line) == ANSWER

        scenario(story())

    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [
            ("GET", "/filter", 405), ("PUT", "/filter", 405), ("POST", "/metrics", 405), ("DELETE", "/healthz", 405),
            ("GET", "/", 404), ("POST", "/filter/", 404), ("POST", "/FILTER", 404), ("GET", "/%2e%2e/x", 404),
            ("HEAD", "/healthz", 200), ("HEAD", "/nowhere", 404),
        ],
    )  # fmt: skip
    def test_what_is_not_served_is_said_in_one_line(self, method: str, path: str, status: int) -> None:
        async def story() -> None:
            async with server() as asker:
                answer = await raw(asker.port, request(path, b"", method=method))
                head, _, body = answer.partition(b"\r\n\r\n")
                assert int(head.split()[1]) == status
                if method == "HEAD":
                    assert body == b""
                else:
                    assert body.endswith(b" is not served here\n")
                    assert body.count(b"\n") == 1

        scenario(story())


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b"", "the request: Input data was truncated"),
        (b"{", "the request: Input data was truncated"),
        (b"[]", "the request: Expected `object`, got `array`"),
        (b"{}", "Pod: missing"),
        (b'{"Pod":null,"NodeNames":[]}', "Pod: missing"),
        (b'{"Pod":{"metadata":{}}}', "NodeNames and Nodes are both missing"),
        (b'{"Pod":{},"NodeNames":[]}', "Pod: Object missing required field `metadata`"),
        (b'{"Pod":{"metadata":{"annotations":{"a":1}}},"NodeNames":[]}', "Pod: Expected `str`, got `int`"),
        (b'{"Pod":{"metadata":{"name":"a\\nb"}},"NodeNames":[]}', "Pod: metadata.name: 'a\\nb' is not a name"),
        (b'{"Pod":' + b"[" * 100_000, "the request: nested too deeply"),
    ],
)
def test_a_question_that_cannot_be_read_is_400_and_names_the_place(body: bytes, line: str) -> None:
    async def story() -> None:
        async with server() as asker:
            for path in ("/filter", "/prioritize"):
                answer = await asker.post(path, body)
                assert answer.status == 400
                assert answer.line.startswith(line)
                assert len(answer.line) < 400

    scenario(story())


@pytest.mark.parametrize(
    ("item", "what"),
    [
        ("{}", "Object missing required field `metadata`"),
        ('{"metadata":{"name":1}}', "Expected `str`, got `int`"),
        ('"n"', "Expected `object`, got `str`"),
    ],
)
def test_a_whole_node_without_a_name_is_400_and_names_the_place(item: str, what: str) -> None:
    body = b'{"Pod":{"metadata":{}},"Nodes":{"items":[%b]}}' % item.encode()

    async def story() -> None:
        async with server() as asker:
            for path in ("/filter", "/prioritize"):
                answer = await asker.post(path, body)
                assert answer.status == 400
                assert what in answer.line
                assert "Nodes.items" in answer.line

    scenario(story())


def test_names_of_nodes_may_be_anything_and_come_back_as_they_were() -> None:
    async def story() -> None:
        async with server() as asker:
            names = [
                "",
                " ",
                "a\x00b",
                'quo"te',
                "back\\slash",
                "\u2028",
                "漢字",
                "x" * 10_000,
                "\U0001f600",
                "</script>",
            ]
            assert list(await asker.prioritize(pod(), names)) == names
            assert (await asker.filter(pod(performance=True), names))["NodeNames"] == names

    scenario(story())


def test_a_whole_node_of_which_only_a_twin_without_a_class_is_known_speaks_by_its_label() -> None:
    """As when a twin is there before its node."""
    wholes = [node("twin-only", "eco"), node("stranger", "eco"), node("fine", "performance")]
    question = {"Pod": pod(performance=True), "Nodes": {"items": wholes}}

    async def story() -> None:
        extender = made()
        load_objects(extender, twins=[twin("twin-only", "unknown")])
        async with serving(extender) as asker:
            answer = (await asker.post("/filter", question)).document
            assert [item["metadata"]["name"] for item in answer["Nodes"]["items"]] == ["fine"]
            assert set(answer["FailedAndUnresolvableNodes"]) == {"twin-only", "stranger"}

    scenario(story())

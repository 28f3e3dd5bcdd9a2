"""The Prometheus client against a server on loopback that behaves and misbehaves."""

from __future__ import annotations

import asyncio
import gzip
import math
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import aiohttp
import pytest
from aiohttp import web

from joulie.sources.prometheus import MAX_SERIES, PrometheusClient, Sample, can_be_shifted
from joulie.sources.transport import SourceError
from tests.support.small_clusters import NOW

from .loopback import Clock, FakePrometheus, Handler, answering, hang, series, serving, success

T = TypeVar("T")


def asked_of(
    server: Handler, use: Callable[[PrometheusClient], Awaitable[T]], path: str = "", timeout_s: float = 0.3
) -> T:
    async def run() -> T:
        async with serving(server) as address, aiohttp.ClientSession() as session:
            return await use(PrometheusClient(session, address + path, timeout_s))

    return asyncio.run(run())


def query(server: Handler, promql: str = "up", max_age_s: float = 120) -> list[Sample]:
    return asked_of(server, lambda client: client.query(promql, NOW, max_age_s))


def test_a_vector_is_decoded_with_labels_values_and_times() -> None:
    server = FakePrometheus(Clock(NOW))
    server.answers["up"] = [series(1.5, node="a"), series("NaN", NOW - 7, node="b"), series("+Inf"), series("-Inf")]
    first, second, third, fourth = query(server)
    assert first == Sample("a", 1.5, NOW)
    assert math.isnan(second.value)
    assert second.at_s == NOW - 7
    assert (third.value, fourth.value) == (math.inf, -math.inf)


def test_a_scalar_is_one_sample_without_labels() -> None:
    async def answer(_: web.Request) -> web.Response:
        return success({"resultType": "scalar", "result": [NOW, "3"]})

    assert query(answer) == [Sample("", 3.0, NOW)]


def test_a_value_that_is_no_number_is_nan_and_a_histogram_is_left_out() -> None:
    async def answer(_: web.Request) -> web.Response:
        result = [{"metric": {}, "value": [NOW, "many"]}, {"metric": {}, "histogram": [NOW, {"count": "1"}]}]
        return success({"resultType": "vector", "result": result})

    (sample,) = query(answer)
    assert math.isnan(sample.value)


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (hang, "no answer within 0.3 s"),
        (answering("<html>teapot</html>", 500), "answered HTTP 500"),
        (answering("]]"), "not a query result"),
        (answering(b"\xff\xfe"), "not a query result"),
        (answering('{"data": ' + "[" * 100_000), "not a query result"),
        (answering('{"status": "success"}'), "does not return one number per series"),
        (answering('{"status":"success","data":{"resultType":"matrix","result":[]}}'), "does not return one number"),
        (answering('{"status":"success","data":{"resultType":"cube","result":[]}}'), "not a query result"),
        (answering('{"status":"error","errorType":"execution","error":"s3cret"}', 422), "HTTP 422 (execution)"),
        (answering('{"status":"error","errorType":"s3cret","error":"s3cret"}'), "refused the query: HTTP 200"),
        (answering("s3cret", 503), "answered HTTP 503"),
    ],
)
def test_whatever_the_server_does_the_error_is_one_line_that_names_it(server: Handler, reason: str) -> None:
    with pytest.raises(SourceError, match=r"^http://127\.0\.0\.1:\d+: ") as caught:
        query(server)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "s3cret" not in str(caught.value), "of a foreign answer no more is shown than what kind of error it is"


def test_a_server_that_is_not_there_and_credentials_in_the_address_do_not_show() -> None:
    async def run() -> None:
        async with aiohttp.ClientSession() as session:
            await PrometheusClient(session, "http://user:secret@127.0.0.1:9/prometheus/", 1.0).query("up", NOW, 120)

    with pytest.raises(SourceError, match=r"^http://127\.0\.0\.1:9/prometheus: ") as caught:
        asyncio.run(run())
    assert "secret" not in str(caught.value)


def test_an_address_may_have_a_path() -> None:
    server = FakePrometheus(Clock(NOW))
    server.answers["up"] = [series(1)]
    assert asked_of(server, lambda client: client.query("up", NOW, 120), path="/prometheus/")


def test_a_server_that_knows_it_is_told_how_old_samples_may_be() -> None:
    server = FakePrometheus(Clock(NOW))
    query(server, max_age_s=90)
    assert server.asked == [{"query": "up", "lookback_delta": "90.000"}]


def test_an_older_server_is_asked_so_far_ahead_that_older_samples_are_out_of_its_sight() -> None:
    server = FakePrometheus(Clock(NOW), knows_lookback=False, flags={"query.lookback-delta": "5m"})
    server.answers["up"] = [series(1, node="a")]
    (sample,) = query(server, max_age_s=120)
    assert server.asked == [{"query": "up", "time": f"{NOW + 180:.3f}"}]
    assert sample.at_s == NOW


@pytest.mark.parametrize("flags", [None, {}, {"query.lookback-delta": "1d"}])
def test_a_server_that_tells_nothing_is_asked_for_now(flags: dict[str, str] | None) -> None:
    server = FakePrometheus(Clock(NOW), knows_lookback=False, flags=flags)
    assert query(server) == []
    assert server.asked == [{"query": "up"}]


def test_a_longer_age_than_the_servers_own_is_not_asked_in_the_past() -> None:
    server = FakePrometheus(Clock(NOW), knows_lookback=False, flags={"query.lookback-delta": "1m"})
    query(server, max_age_s=120)
    assert server.asked == [{"query": "up"}]


@pytest.mark.parametrize(
    ("promql", "allowed"),
    [
        ('sum by (node_name) (kepler_node_cpu_watts{zone="package"} or kepler_node_gpu_watts)', True),
        ('power{node=~"[a-z]+@x offset"}', True),
        ("rate(joules_total[1m])", False),
        ("power offset 1m", False),
        ("power @ end()", False),
        ("time() - power", False),
        ("timestamp(power)", False),
        ("max_over_time(power[1m:5s])", False),
        ("lifetime_seconds", True),
    ],
)
def test_queries_that_speak_of_time_are_never_asked_ahead(promql: str, allowed: bool) -> None:
    assert can_be_shifted(promql) is allowed


def test_after_a_failure_the_server_is_looked_at_anew() -> None:
    server = FakePrometheus(Clock(NOW))

    async def use(client: PrometheusClient) -> list[str]:
        modes: list[str] = [client.freshness]
        await client.query("up", NOW, 120)
        modes.append(client.freshness)
        server.instead = answering("", 503)
        with pytest.raises(SourceError):
            await client.query("up", NOW, 120)
        modes.append(client.freshness)
        server.instead = None
        server.knows_lookback = False
        await client.query("up", NOW, 120)
        return [*modes, client.freshness]

    assert asked_of(server, use) == ["unknown", "lookback", "unknown", "server"]


def test_a_query_that_is_wrong_does_not_make_the_server_suspect() -> None:
    server = FakePrometheus(Clock(NOW))

    async def use(client: PrometheusClient) -> str:
        await client.query("up", NOW, 120)
        server.instead = answering('{"status":"error","error":"parse error"}', 400)
        with pytest.raises(SourceError, match="refused the query: HTTP 400"):
            await client.query("up(", NOW, 120)
        return client.freshness

    assert asked_of(server, use) == "lookback"


def test_many_questions_to_a_server_that_hangs_wait_once_not_in_turn() -> None:
    async def use(client: PrometheusClient) -> float:
        loop = asyncio.get_running_loop()
        start_s = loop.time()
        outcomes = await asyncio.gather(*(client.query("up", NOW, 120) for _ in range(20)), return_exceptions=True)
        assert all(isinstance(outcome, SourceError) for outcome in outcomes)
        return loop.time() - start_s

    assert asked_of(hang, use) < 3.0  # in turn it would be 6 s


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ({"instance": "i:1", "Hostname": "h", "node": "n", "node_name": "nn"}, "nn"),
        ({"instance": "i:1", "Hostname": "h", "node": "n"}, "n"),
        ({"instance": "i:1", "Hostname": "h", "node": ""}, "h"),
        ({"instance": "worker-3.example:9102"}, "worker-3.example"),
        ({"instance": "worker-3"}, "worker-3"),
        ({"instance": "[fd00::1]:9102"}, "[fd00::1]"),
        ({"instance": "fd00::1"}, "fd00::1"),
        ({"node": "odd:80"}, "odd:80"),
        ({"job": "kepler"}, ""),
    ],
)
def test_the_node_is_the_first_label_that_names_one(labels: dict[str, Any], node: str) -> None:
    server = FakePrometheus(Clock(NOW))
    server.answers["up"] = [series(1, **labels)]
    assert [sample.node for sample in query(server)] == [node]


@pytest.mark.parametrize("skew_s", [-3600, -15, 15, 3600])
@pytest.mark.parametrize("knows_lookback", [True, False])
def test_a_server_whose_clock_is_wrong_is_not_taken_for_one_with_old_samples(
    skew_s: float, knows_lookback: bool
) -> None:
    flags = {"query.lookback-delta": "5m"}
    server = FakePrometheus(Clock(NOW + skew_s), knows_lookback=knows_lookback, flags=flags)
    server.answers["up"] = [series(1, node="a"), series(2, NOW + skew_s - 30 + 180 * (not knows_lookback), node="b")]

    async def use(client: PrometheusClient) -> float:
        first, second = await client.query("up", NOW, 120)
        assert [first.at_s, second.at_s] == pytest.approx([NOW, NOW - 30])
        return client.clock_ahead_s

    assert asked_of(server, use) == pytest.approx(skew_s)
    if not knows_lookback:
        assert float(server.asked[0]["time"]) == pytest.approx(NOW + skew_s + 180), "ahead of the server's own now"


def test_a_server_whose_clock_stands_still_has_samples_that_grow_old() -> None:
    server = FakePrometheus(Clock(NOW - 3600))
    server.answers["up"] = [series(1, node="a")]

    async def use(client: PrometheusClient) -> list[float]:
        return [(await client.query("up", NOW + later_s, 120))[0].at_s for later_s in (0, 60, 121)]

    assert asked_of(server, use) == pytest.approx([NOW, NOW, NOW])


@pytest.mark.parametrize("count", [10_000])
def test_ten_thousand_series_with_long_labels_are_read(count: int) -> None:
    server = FakePrometheus(Clock(NOW))
    server.answers["up"] = [series(i, node=f"n{i}", path="/sys/" + "x" * 200) for i in range(count)]
    samples = asked_of(server, lambda client: client.query("up", NOW, 120), timeout_s=60)
    assert [sample.value for sample in samples] == list(range(count))


def test_an_answer_of_more_series_than_any_cluster_has_is_refused_before_it_is_decoded() -> None:
    flood = answering(b'{"status":"success","data":{"result":[' + b'{"metric":{}},' * (MAX_SERIES + 1))
    with pytest.raises(SourceError, match="more than 200,000 series"):
        asked_of(flood, lambda client: client.query("up", NOW, 120), timeout_s=60)


def test_compressed_chunks_that_come_slowly_are_one_answer() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        assert "gzip" in request.headers["Accept-Encoding"]
        body = gzip.compress(b'{"status":"success","data":{"resultType":"scalar","result":[1700000000,"3"]}}')
        response = web.StreamResponse(headers={"Content-Encoding": "gzip"})
        await response.prepare(request)
        for i in range(0, len(body), 16):
            await response.write(body[i : i + 16])
            await asyncio.sleep(0.001)
        return response

    (sample,) = asked_of(answer, lambda client: client.query("up", NOW, 120), timeout_s=60)
    assert sample.value == 3


def test_a_redirect_is_not_followed() -> None:
    followed = []

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/elsewhere":
            followed.append(request.path)
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    with pytest.raises(SourceError, match="answered HTTP 302"):
        query(answer)
    assert followed == []


def test_an_answer_that_unpacks_to_far_more_than_it_is_ends_before_it_fills_the_memory() -> None:
    bomb = gzip.compress(bytes(256 << 20), 1)

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    tracemalloc.start()
    try:
        with pytest.raises(SourceError, match="larger than 32 MiB"):
            asked_of(answer, lambda client: client.query("up", NOW, 120), timeout_s=60)
        assert tracemalloc.get_traced_memory()[1] < 150 << 20
    finally:
        tracemalloc.stop()

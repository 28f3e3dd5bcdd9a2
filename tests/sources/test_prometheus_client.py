"""The Prometheus client against a server on loopback that behaves and misbehaves."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

import aiohttp
import pytest
from aiohttp import web

from joulie.sources.prometheus import PrometheusClient, Sample, may_be_asked_ahead, node_of
from joulie.sources.transport import SourceError
from tests.core.building import NOW

from .loopback import Clock, FakePrometheus, Handler, answering, hang, series, serving, success

T = TypeVar("T")


def asked_of(server: Handler, use: Callable[[PrometheusClient], Awaitable[T]], path: str = "") -> T:
    async def run() -> T:
        async with serving(server) as address, aiohttp.ClientSession() as session:
            return await use(PrometheusClient(session, address + path, timeout_s=0.3))

    return asyncio.run(run())


def query(server: Handler, promql: str = "up", max_age_s: float = 120) -> list[Sample]:
    return asked_of(server, lambda client: client.query(promql, NOW, max_age_s))


def test_a_vector_is_decoded_with_labels_values_and_times() -> None:
    server = FakePrometheus(Clock(NOW))
    server.answers["up"] = [series(1.5, node="a"), series("NaN", NOW - 7, node="b"), series("+Inf"), series("-Inf")]
    first, second, third, fourth = query(server)
    assert first == Sample({"node": "a"}, 1.5, NOW)
    assert math.isnan(second.value)
    assert second.at_s == NOW - 7
    assert (third.value, fourth.value) == (math.inf, -math.inf)


def test_a_scalar_is_one_sample_without_labels() -> None:
    async def answer(_: web.Request) -> web.Response:
        return success({"resultType": "scalar", "result": [NOW, "3"]})

    assert query(answer) == [Sample({}, 3.0, NOW)]


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
        (answering("]]"), "not that of a query"),
        (answering(b"\xff\xfe"), "not that of a query"),
        (answering('{"data": ' + "[" * 100_000), "not that of a query"),
        (answering('{"status": "success"}'), "does not give one number for each series"),
        (answering('{"status":"success","data":{"resultType":"matrix","result":[]}}'), "does not give one number"),
        (answering('{"status":"success","data":{"resultType":"cube","result":[]}}'), "not that of a query"),
        (answering('{"status":"error","error":"parse\\nerror"}', 422), "refused the query: parse error"),
        (answering('{"status":"error","error":"overload"}'), "refused the query: overload"),
    ],
)
def test_whatever_the_server_does_the_error_is_one_line_that_names_it(server: Handler, reason: str) -> None:
    with pytest.raises(SourceError, match=r"^http://127\.0\.0\.1:\d+: ") as caught:
        query(server)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


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
    assert may_be_asked_ahead(promql) is allowed


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
        with pytest.raises(SourceError, match="parse error"):
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
def test_the_node_is_the_first_label_that_names_one(labels: dict[str, str], node: str) -> None:
    assert node_of(labels) == node

"""The operator as a process on a cluster in memory: HTTP, a clean end, `--once` and `--dry-run`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from joulie.catalogue.lookup import Catalogue
from joulie.cluster.lease.election import LeaderElector, LeaseTimes
from joulie.cluster.memory.cluster import Call, MemoryCluster, MemoryServer
from joulie.cluster.port import EVENTS, LEASES, NODE_TWINS, NODES, PODS
from joulie.control.policies.static_partition import StaticPartition
from joulie.operator.loop import DecisionModels
from joulie.operator.process import LEASE_NAME, Candidate, run, run_once
from joulie.operator.writes import Write
from joulie.physics.cooling import LinearCoolingModel
from joulie.settings import OperatorSettings, load
from testbed.processes import free_port
from tests.operator.log_lines import logged
from tests.operator.objects import node, pod
from tests.sources.loopback import series, serving, vector
from tests.support.cli_runner import joulie

NAMESPACE = "joulie-system"
QUICK = LeaseTimes(1.5, 1.0, 0.1)
_SERIES = re.compile(r"^(joulie_operator_\w+)\{(.*)\} (\S+)$", re.MULTILINE)


def _settings(env: Mapping[str, str] | None = None) -> OperatorSettings:
    return load(OperatorSettings, {"RECONCILE_INTERVAL": "50ms", **(env or {})})


def _models(settings: OperatorSettings) -> DecisionModels:
    return DecisionModels(StaticPartition(), LinearCoolingModel(settings.decision.twin), Catalogue())


def _server(nodes: int = 4) -> MemoryServer:
    server = MemoryServer()
    for number in range(nodes):
        server.put(NODES, node(f"node-{number}"), "")
    return server


@asynccontextmanager
async def _running(
    server: MemoryServer,
    identity: str = "one",
    cluster: MemoryCluster | None = None,
    clock: Callable[[], float] = time.time,
    **env: str,
) -> AsyncIterator[str]:
    """The URL of a running operator; SIGTERM ends it, and it must end well."""
    address = f"127.0.0.1:{free_port()}"
    settings = _settings({"METRICS_ADDR": address, **env})
    candidate = Candidate(identity, NAMESPACE, QUICK)
    process = asyncio.create_task(
        run(
            cluster or MemoryCluster(server), MemoryCluster(server), settings, _models(settings), candidate, clock=clock
        )
    )
    try:
        yield f"http://{address}"
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(5):
            assert await process == 0
    finally:
        process.cancel()
        await asyncio.gather(process, return_exceptions=True)


async def _get(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def _until_listening(url: str) -> None:
    async with asyncio.timeout(5):
        while True:
            try:
                await _get(f"{url}/healthz")
                return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.01)


async def _until_written(server: MemoryServer, twins: int) -> None:
    async with asyncio.timeout(5):
        while sum("status" in twin for twin in server.all(NODE_TWINS)) < twins:
            await asyncio.sleep(0.01)


def _holder(server: MemoryServer) -> str:
    (lease,) = server.all(LEASES)
    return str(lease["spec"].get("holderIdentity") or "")


def _scenario(coroutine: Any) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await coroutine

    asyncio.run(bounded())


def test_metrics_and_health_are_served_and_sigterm_ends_it_in_good_order() -> None:
    async def scenario() -> None:
        server = _server()
        async with _running(server) as url:
            await _until_listening(url)
            await _until_written(server, 4)
            patient = pod("patient", nodeSelector={"joulie.io/power-profile": "eco"})
            server.put(PODS, patient, "default")
            server.put(PODS, pod("training", "node-3", performance=True), "default")
            async with asyncio.timeout(5):
                while not server.all(EVENTS):
                    await asyncio.sleep(0.01)
            assert (await _get(f"{url}/healthz"))[0] == 200
            assert (await _get(f"{url}/readyz"))[0] == 200
            _, page = await _get(f"{url}/metrics")
            found = {(name, labels): float(value) for name, labels, value in _SERIES.findall(page)}
            assert _holder(server) == "one"
        for one, value in {
            ("joulie_operator_node_state", 'node="node-3",state="draining"'): 1,
            ("joulie_operator_node_state", 'node="node-3",state="eco"'): 0,
            ("joulie_operator_node_profile_label", 'node="node-3",profile="eco"'): 1,
            ("joulie_operator_node_profile_label", 'node="node-0",profile="performance"'): 1,
            ("joulie_operator_node_compute_density", 'node="node-0",component="cpu"'): 1,
            ("joulie_operator_node_compute_density", 'node="node-0",component="gpu"'): 0,
            ("joulie_operator_api_writes_total", 'resource="nodetwins",verb="create"'): 4,
            ("joulie_operator_api_writes_total", 'resource="events",verb="create"'): 1,
            ("joulie_operator_pods", 'class="performance"'): 1,
            ("joulie_operator_pods", 'class="eco"'): 1,
            ("joulie_operator_pods", 'class="general"'): 0,
            (
                "joulie_operator_state_transitions_total",
                'from_state="eco",node="node-3",result="deferred",to_state="draining"',
            ): 1,
        }.items():
            assert found[one] == value, one
        assert found["joulie_operator_reconcile_duration_seconds_count", 'part="decide"'] > 1
        assert "joulie_operator_reconcile_errors_total 0.0" in page
        assert "joulie_operator_leader 1.0" in page
        assert _holder(server) == ""  # handed over

    _scenario(scenario())


def test_it_is_not_ready_before_it_knows_everything_and_can_be_stopped_all_the_same() -> None:
    async def scenario() -> None:
        server = _server()
        cluster = MemoryCluster(server)
        cluster.hang_next(verb="list", resource=NODE_TWINS)
        async with _running(server, cluster=cluster) as url:
            await _until_listening(url)
            assert await _get(f"{url}/readyz") == (503, "not all objects are known yet\n")
            assert (await _get(f"{url}/healthz"))[0] == 200
        assert server.all(NODE_TWINS) == []

    _scenario(scenario())


def test_the_one_that_waits_shows_no_nodes_and_takes_over_when_the_leader_ends() -> None:
    async def scenario() -> None:
        server = _server()
        leader = LeaderElector(
            MemoryCluster(server), namespace=NAMESPACE, name=LEASE_NAME, identity="other", times=QUICK
        )
        leading = asyncio.create_task(leader.run())
        while not leader.is_leader():
            await asyncio.sleep(0.01)
        async with _running(server) as url:
            await _until_listening(url)
            await asyncio.sleep(0.3)
            _, page = await _get(f"{url}/metrics")
            assert "joulie_operator_leader 0.0" in page
            assert "joulie_operator_node_state{" not in page
            assert server.all(NODE_TWINS) == []
            leader.stop()
            await leading
            await _until_written(server, 4)
            assert _holder(server) == "one"
            assert "joulie_operator_leader 1.0" in (await _get(f"{url}/metrics"))[1]

    _scenario(scenario())


@pytest.mark.parametrize(
    ("env", "latency_s"),
    [({"KUBE_CLIENT_QPS": "5", "KUBE_CLIENT_BURST": "1"}, 0.0), ({"KUBE_CLIENT_BURST": "5000"}, 0.1)],
    ids=["few a second", "slow answers"],
)
def test_a_stop_in_the_middle_of_many_writes_begins_no_further_one(env: dict[str, Any], latency_s: float) -> None:
    async def scenario() -> None:
        server = _server(300)
        calls: list[Call] = []
        cluster = MemoryCluster(server, on_call=calls.append, latency_s=latency_s)
        async with _running(server, cluster=cluster, **env):
            async with asyncio.timeout(5):
                while not server.all(NODE_TWINS):
                    await asyncio.sleep(0.01)
            before = _writes(calls)
        assert _writes(calls) <= before + 64  # those that were on their way
        assert _writes(calls) < 300
        assert _holder(server) == ""

    _scenario(scenario())


def _writes(calls: list[Call]) -> int:
    return sum(call.verb in ("create", "patch", "patch_status") for call in calls)


def _once(server: MemoryServer, show: list[Write] | None = None, env: Mapping[str, str] | None = None) -> int:
    settings = _settings({"RECONCILE_INTERVAL": "1m", **(env or {})})
    candidate = Candidate("once", NAMESPACE, QUICK)

    async def scenario() -> int:
        async with asyncio.timeout(20):
            return await run_once(
                MemoryCluster(server), settings, _models(settings), candidate, None if show is None else show.append
            )

    return asyncio.run(scenario())


def test_once_writes_all_and_gives_the_lease_back() -> None:
    server = _server()
    assert _once(server) == 0
    assert sum("status" in twin for twin in server.all(NODE_TWINS)) == 4
    assert _holder(server) == ""
    for twin in server.all(NODE_TWINS):  # as if from long ago: all are to be refreshed, without pacing
        server.put(NODE_TWINS, {**twin, "status": {**twin["status"], "lastUpdated": "2020-01-01T00:00:00Z"}}, "")
    assert _once(server) == 0
    assert all(twin["status"]["lastUpdated"] > "2021" for twin in server.all(NODE_TWINS))


def test_a_dry_run_shows_the_writes_and_makes_none() -> None:
    server = _server()
    version = server.put(NODES, node("node-9"), "").body["metadata"]["resourceVersion"]
    shown: list[Write] = []
    assert _once(server, shown) == 0
    assert len(shown) == 15
    assert server.all(NODE_TWINS) == server.all(LEASES) == []
    assert server.put(NODES, node("last"), "").body["metadata"]["resourceVersion"] == str(int(version) + 1)


def test_once_says_that_it_waits_for_another_leader() -> None:
    async def scenario() -> None:
        server = _server()
        async with _running(server):
            await _until_written(server, 4)
            settings = _settings()
            with logged() as log:
                once = asyncio.create_task(
                    run_once(MemoryCluster(server), settings, _models(settings), Candidate("once", NAMESPACE, QUICK))
                )
                await asyncio.sleep(0.3)
                once.cancel()
                await asyncio.gather(once, return_exceptions=True)
            assert [line.fields for line in log.saying("leader seen")] == [{"leader": "one"}]

    _scenario(scenario())


@pytest.mark.parametrize("arguments", [["--dry-run"], ["-f", "cluster.json"], ["--once", "-f", "cluster.json"]])
def test_combinations_that_mean_nothing_are_refused_in_one_line(arguments: list[str]) -> None:
    outcome = joulie("operator", *arguments)
    assert outcome.code == 2
    assert "--once --dry-run" in outcome.complaint


def test_a_dry_run_from_files_prints_one_patch_a_line() -> None:
    objects = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "List",
            "items": [{"apiVersion": "v1", "kind": "Node", **node(name)} for name in ("a", "b")],
        }
    )
    outcome = joulie("operator", "--once", "--dry-run", "-f", "-", stdin=objects)
    assert (outcome.code, outcome.err) == (0, "")
    lines = [json.loads(line) for line in outcome.out.splitlines()]
    assert [(line["verb"], line["resource"], line["subresource"], line["name"]) for line in lines] == [
        (verb, resource, part, name)
        for name in ("a", "b")
        for verb, resource, part in (
            ("create", "nodetwins", None),
            ("patch", "nodetwins", "status"),
            ("patch", "nodes", None),
        )
    ]
    assert lines[2]["patch"]["metadata"]["labels"]["joulie.io/power-profile"] == "performance"
    assert lines[5]["patch"]["metadata"]["labels"]["joulie.io/power-profile"] == "eco"


def test_the_lease_has_the_name_that_the_rights_are_given_for() -> None:
    server = _server(1)
    assert _once(server) == 0
    assert server.all(LEASES)[0]["metadata"]["name"] == LEASE_NAME


def test_a_dead_power_source_delays_no_decision_and_no_lease() -> None:
    asked = 0

    async def hang(_: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        await asyncio.sleep(3600)
        return web.Response()

    async def scenario() -> None:
        server = _server()
        async with serving(hang) as dead:
            env: dict[str, Any] = {
                "OPERATOR_NODE_POWER_SOURCE": "prometheus",
                "OPERATOR_NODE_POWER_PROMETHEUS_ADDRESS": dead,
                "ENABLE_FACILITY_METRICS": "true",
                "FACILITY_PROMETHEUS_ADDRESS": dead,
            }
            async with _running(server, **env) as url:
                await _until_written(server, 4)
                began = time.monotonic()
                page, decided = "", 0.0
                failed = 'joulie_operator_source_failures_total{source="power"}'
                while (
                    decided < 12 or failed not in page
                ):  # each decision would wait five seconds and more for a source that it asks itself
                    page = (await _get(f"{url}/metrics"))[1]
                    counts = re.findall(r"(?m)^joulie_operator_reconcile_duration_seconds_count\S* (\S+)$", page)
                    decided = min(map(float, counts), default=0.0)
                    await asyncio.sleep(0.02)
                assert time.monotonic() - began < 12 * 5
                assert "joulie_operator_leader 1.0" in page
                assert asked > 0
                assert {twin["status"]["powerMeasurement"]["source"] for twin in server.all(NODE_TWINS)} == {"static"}

    asyncio.run(asyncio.wait_for(scenario(), 120))


def test_setting_the_clock_makes_no_operator_sick() -> None:
    ahead_s = 0.0

    async def scenario() -> None:
        nonlocal ahead_s
        server = _server()
        async with _running(server, clock=lambda: time.time() + ahead_s, RECONCILE_INTERVAL="1h") as url:
            await _until_written(server, 4)
            ahead_s = 86400.0
            assert (await _get(f"{url}/healthz"))[0] == 200

    _scenario(scenario())


def test_sources_are_read_between_decisions_and_a_new_leader_begins_with_what_they_say() -> None:
    asked: Counter[str] = Counter()

    async def answer(request: web.Request) -> web.StreamResponse:
        promql = request.query.get("query", "")
        asked[promql] += 1
        return vector([series(300, node_name=f"node-{i}") for i in range(4)], time.time())

    async def scenario() -> None:
        server = _server()
        async with serving(answer) as address:
            env: dict[str, Any] = {
                "RECONCILE_INTERVAL": "1h",
                "OPERATOR_NODE_POWER_SOURCE": "prometheus",
                "OPERATOR_NODE_POWER_PROMETHEUS_ADDRESS": address,
                "OPERATOR_NODE_POWER_PROMETHEUS_QUERY": "watts",
                "POWER_POLL_INTERVAL": "30ms",
                "ENABLE_FACILITY_METRICS": "true",
                "FACILITY_PROMETHEUS_ADDRESS": address,
                "FACILITY_POLL_INTERVAL": "50ms",
            }
            async with _running(server, **env):
                await _until_written(server, 4)
                sources = {twin["status"]["powerMeasurement"]["source"] for twin in server.all(NODE_TWINS)}
                assert sources == {"kepler"}, "the very first decision knows what was measured"
                while min(asked["watts"], asked["datacenter_total_it_power_watts"]) < 5:
                    await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(scenario(), 120))

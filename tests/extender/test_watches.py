"""Watches that break, list again and bring broken objects: what is known is served, and what comes back is taken."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from joulie.cluster.memory.cluster import MemoryCluster, MemoryServer
from joulie.cluster.port import NODE_HARDWARE, NODE_TWINS, NODES, PODS, Resource
from joulie.cluster.watch.backoff import Backoff
from joulie.cluster.watch.log import ContactLog
from joulie.extender import debug
from joulie.extender.process import Extender
from joulie.extender.state import WATCHED
from joulie.settings import MarginalSettings
from tests.extender.api_objects import Body, node, pod, twin
from tests.extender.harness import Asker, following, load_objects, logged, made, raw, scenario, serving, until
from tests.support.small_clusters import NOW
from tests.support.small_clusters import pod as core_pod


def _cluster(server: MemoryServer, watch_log: ContactLog | None = None) -> MemoryCluster:
    return MemoryCluster(server, observer=watch_log, backoff=lambda: Backoff(0.01, 0.05))


def _server(*names: str) -> MemoryServer:
    server = MemoryServer()
    for name in names:
        server.put(NODES, node(name), "")
        server.put(NODE_TWINS, twin(name), "")
    return server


class Stage:
    """A cluster, the extender's own line to it, a clock that the test moves, and a client."""

    def __init__(self, server: MemoryServer, cluster: MemoryCluster, extender: Extender, asker: Asker) -> None:
        self.server, self.cluster, self.extender, self.asker = server, cluster, extender, asker
        self.late_s = 0.0

    async def scores(self, *names: str) -> list[int]:
        """For a performance pod, to which the pressure on others does not matter."""
        told = await self.asker.prioritize(pod(performance=True), list(names))
        return [told[name] for name in names]

    async def until_scores(self, scores: list[int], *names: str) -> None:
        async def so() -> bool:
            return await self.scores(*names) == scores

        await until(so)

    async def cut_off(self) -> None:
        """The API server is away, and every watch has noticed."""
        self.cluster.cut_off()
        calls = {resource: self.cluster.calls["watch", resource.plural] for resource in WATCHED}
        for resource, before in calls.items():
            await until(lambda resource=resource, before=before: self._tried(resource) > before + 2)

    def _tried(self, resource: Resource) -> int:
        return self.cluster.calls["watch", resource.plural]


@asynccontextmanager
async def stage(*names: str, **env: str) -> AsyncIterator[Stage]:
    server = _server(*names)
    watch_log = ContactLog("extender", settled_s=0.1)
    cluster = _cluster(server, watch_log)
    held: list[Stage] = []
    extender = made(env, now_s=lambda: NOW + (held[0].late_s if held else 0.0))
    async with following(extender, cluster), serving(extender) as asker:
        held.append(Stage(server, cluster, extender, asker))
        yield held[0]


class TestBeforeEverythingIsKnown:
    @pytest.mark.parametrize("missing", [NODES, NODE_TWINS, NODE_HARDWARE, PODS], ids=lambda each: each.plural)
    def test_questions_are_not_answered(self, missing: Resource) -> None:
        async def story() -> None:
            cluster = _cluster(_server("a"))
            cluster.fail_next(10_000, verb="list", resource=missing)
            extender = made()
            async with serving(extender) as asker:
                watching = asyncio.create_task(extender.watch(cluster))
                try:
                    await until(lambda: cluster.calls["list", missing.plural] > 3)
                    for path in ("/filter", "/prioritize", "/preempt", "/debug/scoring"):
                        answer = await asker.post(path, {"Pod": pod(), "NodeNames": ["a"], "metadata": {}})
                        assert (answer.status, answer.line) == (503, "not all objects are known yet")
                    assert (await asker.get("/readyz")).status == 503
                    assert (await asker.get("/healthz")).status == 200
                    assert (await asker.get("/metrics")).status == 200
                    cluster._faults.clear()
                    await until(lambda: extender.state.synced)
                    assert (await asker.get("/readyz")).status == 200
                    assert await asker.prioritize(pod(), ["a"])
                finally:
                    watching.cancel()
                    await asyncio.gather(watching, return_exceptions=True)

        scenario(story())


class TestChanges:
    def test_everything_that_happens_is_seen(self) -> None:
        async def story() -> None:
            async with stage("a", "b") as on:
                ((score, _), server) = (await on.scores("a", "b")), on.server
                server.put(NODE_TWINS, twin("a", measured_w=0), "")
                await on.until_scores([score + 35, score], "a", "b")
                server.put(NODE_TWINS, twin("b", "eco"), "")
                await until(lambda: on.extender.state.board.class_of(on.extender.state.board.index["b"]) == "eco")
                assert (await on.asker.filter(pod(performance=True), ["a", "b"]))["NodeNames"] == ["a"]
                hardware = {"metadata": {"name": "a"}, "status": {"cpu": {"sockets": 4}}}
                hardware["status"]["cpu"]["capRange"] = {"maxWattsPerSocket": 1500}  # type: ignore[index]
                server.put(NODE_HARDWARE, hardware, "")
                await on.until_scores([score + 35 - round(0.7 * 0.07 * (6000 - 350) / 6)], "a")
                server.delete(NODE_HARDWARE, "a", None)
                await on.until_scores([score + 35], "a")
                server.delete(NODE_TWINS, "a", None)
                await on.until_scores([50], "a")
                server.delete(NODES, "a", None)
                server.delete(NODES, "b", None)
                server.delete(NODE_TWINS, "b", None)
                await until(lambda: not on.extender.state.board.index)
                assert await on.scores("a", "b") == [50, 50]

        scenario(story())

    def test_random_events_end_in_the_scores_of_an_extender_that_starts_anew(self) -> None:
        async def story() -> None:
            rng = Random(5)
            names = [f"n{number}" for number in range(8)]
            async with stage() as on:
                for round_ in range(10):
                    for _ in range(40):
                        _random_event(rng, on.server, names)
                        if rng.random() < 0.03:
                            on.cluster.cut_watches()
                        if rng.random() < 0.02:
                            on.cluster.expire_watches()
                    on.server.put(NODES, node(f"mark-{round_}"), "")
                    on.server.put(PODS, pod(f"mark-{round_}"), "default")
                    on.server.put(NODE_TWINS, twin(f"mark-{round_}"), "")
                    on.server.put(NODE_HARDWARE, {"metadata": {"name": f"mark-{round_}"}}, "")
                    newcomer = made()
                    async with following(newcomer, _cluster(on.server)):
                        expected = _told(newcomer, names)
                        assert expected["nodes"]
                        await until(lambda expected=expected: _told(on.extender, names) == expected)

        scenario(story())


def _told(extender: Extender, names: list[str]) -> dict[str, object]:
    copy = debug.BoardCopy.of(extender.state.board, NOW)
    state = json.loads(b"".join(debug.state_json(copy, MarginalSettings())))
    scores = json.loads(b"".join(debug.scores_json(copy, core_pod("x", cores=3.0))))
    return {"nodes": state["nodes"], "pressure": state["perfPressure"], "scores": scores,
            "pods": sorted(extender.state.pods)}  # fmt: skip


def _random_event(rng: Random, server: MemoryServer, names: list[str]) -> None:
    name = rng.choice(names)
    bodies: dict[Resource, Body] = {
        NODES: node(name, rng.choice(["", "eco", "performance"]), cores=rng.randint(0, 200)),
        NODE_TWINS: twin(name, rng.choice(["performance", "eco", ""]), NOW - rng.randint(0, 400), rng.randint(0, 700)),
        NODE_HARDWARE: {"metadata": {"name": name}, "status": {"cpu": {"sockets": rng.randint(0, 4)}}},
        PODS: pod(f"p-{rng.randint(0, 20)}", on=rng.choice([*names, ""]), at_s=NOW - rng.randint(0, 400)),
    }
    resource = rng.choice(list(bodies))
    body, namespace = bodies[resource], "default" if resource is PODS else ""
    key = f"default/{body['metadata']['name']}" if resource is PODS else name
    if rng.random() < 0.3:
        if any(each["metadata"]["name"] == body["metadata"]["name"] for each in server.all(resource)):
            server.delete(resource, key, None)
    else:
        if rng.random() < 0.1:
            body["status"] = "broken"
        server.put(resource, body, namespace)


class TestWithoutAnApiServer:
    def test_what_is_known_is_served_until_it_is_stale_and_what_changed_meanwhile_is_taken_when_it_is_back(
        self,
    ) -> None:
        async def story() -> None:
            async with stage("a", "b") as on:
                first = await on.scores("a", "b")
                assert 50 not in first
                await on.cut_off()
                on.server.put(NODE_TWINS, twin("a", measured_w=0, at_s=NOW + 1000), "")
                on.server.delete(NODES, "b", None)
                on.server.delete(NODE_TWINS, "b", None)
                on.server.put(NODES, node("c"), "")
                assert await on.scores("a", "b") == first
                assert (await on.asker.get("/readyz")).status == 200
                on.late_s = 301
                assert await on.scores("a", "b") == [50, 50]
                assert (await on.asker.filter(pod(performance=True), ["a", "b"]))["NodeNames"] == ["a", "b"]
                on.cluster.reconnect()
                await until(lambda: set(on.extender.state.board.index) == {"a", "c"})
                await on.until_scores([first[0] + 35, 50, 50], "a", "b", "c")

        scenario(story())

    def test_a_new_list_takes_away_what_is_gone_and_leaves_the_rest_untouched(self) -> None:
        async def story() -> None:
            async with stage("a", "b") as on:
                before = await on.scores("a")
                await on.cut_off()
                on.server.delete(NODES, "b", None)
                on.server.delete(NODE_TWINS, "b", None)
                on.server.put(PODS, pod("bound", on="a", cpu="50"), "default")
                on.server.expire_watches()
                on.cluster.reconnect()
                await until(lambda: list(on.extender.state.board.index) == ["a"])
                await until(lambda: "default/bound" in on.extender.state.pods)
                assert await on.scores("a", "b") == [before[0] - round(0.7 * 0.7 * 0.5 * 350 / 6), 50]

        scenario(story())

    def test_an_outage_is_a_handful_of_log_lines(self) -> None:
        async def story() -> None:
            with logged() as lines:
                async with stage("a") as on:
                    on.cluster.cut_off()
                    before = on.cluster.calls.total()
                    await until(lambda: on.cluster.calls.total() > before + 40)
                    on.cluster.reconnect()
                    await until(lambda: bool(lines.saying("all watches are back")))
                    assert len(lines.saying("watch failed; retrying")) == 1

        scenario(story())


class TestBrokenObjects:
    def test_they_count_as_absent_and_are_named_once_each_until_they_are_whole(self) -> None:
        async def story() -> None:
            with logged() as lines:
                async with stage("a", "b") as on:
                    broken = twin("a")
                    broken["status"]["powerMeasurement"]["measuredNodePowerW"] = "much"
                    for number in range(5):  # it changes again and again, and stays broken
                        on.server.put(
                            NODE_TWINS, {**broken, "metadata": {"name": "a", "labels": {"n": str(number)}}}, ""
                        )
                    on.server.put(NODES, {**node("b"), "status": {"capacity": {"cpu": "several"}}}, "")
                    on.server.put(PODS, pod("odd", on="a", cpu="x"), "default")
                    on.server.put(NODE_TWINS, {**twin("other"), "spec": {"nodeName": "b"}}, "")
                    await until(lambda: len(lines.saying(MESSAGE)) == 4)
                    assert await on.scores("a") == [50]
                    for _ in range(50):
                        await on.scores("a", "b")
                    on.server.expire_watches()  # listed again, and still the same
                    await until(lambda: on.cluster.calls["list", "nodetwins"] > 1)
                    on.server.put(PODS, pod("after"), "default")
                    await until(lambda: "default/after" in on.extender.state.pods)
                    said = [(line.fields["kind"], line.fields["object"]) for line in lines.saying(MESSAGE)]
                    assert sorted(said) == [
                        ("Node", "b"), ("NodeTwin", "a"), ("NodeTwin", "other"), ("Pod", "default/odd")
                    ]  # fmt: skip
                    reasons = {line.fields["object"]: line.fields["reason"] for line in lines.saying(MESSAGE)}
                    assert reasons["a"].startswith("status.powerMeasurement.measuredNodePowerW: ")
                    assert reasons["b"].startswith("status.capacity.cpu: ")
                    assert reasons["other"].startswith("spec.nodeName: ")
                    # Whole again, then broken again: that is news.
                    on.server.put(NODE_TWINS, twin("a"), "")
                    await until(
                        lambda: on.extender.state.board.statuses[on.extender.state.board.index["a"]] is not None
                    )
                    on.server.put(NODE_TWINS, broken, "")
                    await until(lambda: len(lines.saying(MESSAGE)) == 5)
                    page = (await on.asker.get("/metrics")).body.decode()
                    assert 'joulie_scheduler_broken_objects_seen_total{kind="NodeTwin"} 3.0' in page

        scenario(story())

    def test_a_twin_whose_name_is_not_its_nodes_changes_nothing(self) -> None:
        async def story() -> None:
            async with stage("a") as on:
                before = await on.scores("a")
                on.server.put(NODE_TWINS, {**twin("z", "eco", measured_w=0), "spec": {"nodeName": "a"}}, "")
                on.server.put(PODS, pod("after"), "default")
                await until(lambda: "default/after" in on.extender.state.pods)
                assert await on.scores("a") == before
                assert on.extender.state.board.index.keys() == {"a"}

        scenario(story())


MESSAGE = "object cannot be read; treated as absent"


def test_a_request_makes_no_log_line_and_no_call_of_the_api_server() -> None:
    async def story() -> None:
        async with stage("a", "b") as on:
            on.server.put(PODS, pod("known", on="a"), "default")
            await until(lambda: "default/known" in on.extender.state.pods)
            question = {"Pod": pod(performance=True), "NodeNames": ["a", "b", "stranger"]}
            with logged() as lines:
                calls = on.cluster.calls.total()
                for _ in range(20):
                    for path in ("/filter", "/prioritize"):
                        await on.asker.post(path, question)
                        assert (await on.asker.post(path, b"{")).status == 400
                    await on.asker.post("/preempt", {"Pod": pod(), "NodeNameToMetaVictims": {}})
                    await on.asker.post("/debug/scoring", pod())
                    for path in ("/debug/scoring?pod=default/known", "/metrics", "/healthz", "/readyz", "/nowhere"):
                        await on.asker.get(path)
                    await raw(on.asker.port, b"this is not HTTP\r\n\r\n")
                assert on.cluster.calls.total() == calls
                assert [line for line in lines.lines if not line.message.startswith("Using selector")] == []

    scenario(story())


def test_a_fault_of_the_extenders_own_gets_a_500_and_one_log_line_with_its_place() -> None:
    async def story() -> None:
        extender = made()
        load_objects(extender, nodes=[node("a")])
        extender.answers._score_max = "not a number"  # type: ignore[assignment]
        with logged() as lines:
            async with serving(extender) as asker:
                for _ in range(3):
                    answer = await asker.post("/prioritize", json.dumps({"Pod": pod(), "NodeNames": ["a"]}).encode())
                    assert answer.status == 500
                    assert answer.line.startswith("internal error: ")
                assert (await asker.post("/filter", {"Pod": pod(), "NodeNames": ["a"]})).status == 200
                assert b'refused_requests_total{code="500"} 3.0' in (await asker.get("/metrics")).body
            assert len(lines.saying("request failed with an internal error")) == 1

    scenario(story())

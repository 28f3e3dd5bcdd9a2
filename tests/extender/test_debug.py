"""`/debug/scoring`: every node and every term, by name or posted, as JSON and as a table."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from joulie.cluster.memory.cluster import MemoryCluster, MemoryServer
from joulie.cluster.port import NODE_TWINS, NODES, PODS
from joulie.control.scoring import TERMS
from tests.extender.api_objects import node, pod, twin
from tests.extender.harness import Asker, following, load_objects, made, scenario, serving
from tests.support.small_clusters import NOW

BREAKDOWN = ["headroomScore", *(term.key for term in TERMS), "podMarginalW", "recentPodsW"]


@asynccontextmanager
async def small_cluster() -> AsyncIterator[Asker]:
    extender = made()
    load_objects(
        extender,
        nodes=[node("a"), node("eco"), node("old"), node("bare")],
        twins=[twin("a", at_s=NOW - 60), twin("eco", "eco", measured_w=100), twin("old", at_s=0), twin("no-node")],
        pods=[pod("waits", performance=True), pod("runs", on="a", cpu="20")],
    )
    async with serving(extender) as asker:
        yield asker


def test_a_pod_by_name_and_the_same_pod_posted_get_the_same_scores_with_every_term() -> None:
    async def story() -> None:
        async with small_cluster() as asker:
            named = await asker.get("/debug/scoring?pod=default/waits")
            posted = await asker.post("/debug/scoring", pod("waits", performance=True))
            assert named.body == posted.body
            assert named.kind.startswith("application/json")
            document = named.document
            assert (document["pod"], document["workloadClass"]) == ("default/waits", "performance")
            nodes = {each["node"]: each for each in document["nodes"]}
            assert list(nodes) == ["a", "bare", "eco", "old"]  # sorted; a twin without a node is none
            assert list(nodes["a"]["breakdown"]) == BREAKDOWN
            assert nodes["a"]["breakdown"]["recentPodsW"] == pytest.approx(0.7 * 0.2 * 350)
            assert nodes["old"]["breakdown"] is nodes["bare"]["breakdown"] is None
            assert nodes["bare"]["reason"] == "it has no twin: neutral score 50"
            assert nodes["eco"]["feasible"] is False
            assert nodes["eco"]["reason"] == "node is eco, and the pod's class is performance"
            told = await asker.prioritize(pod(performance=True), list(nodes))
            assert told == {name: int(each["score"] + 0.5) for name, each in nodes.items()}

    scenario(story())


@pytest.mark.parametrize("way", ["?format=table", "accept", "posted"])
def test_the_table_for_people_has_the_best_first_and_refused_nodes_last(way: str) -> None:
    async def story() -> None:
        async with small_cluster() as asker:
            if way == "accept":
                answer = await asker.get("/debug/scoring?pod=default/waits", Accept="text/plain")
            elif way == "posted":
                answer = await asker.post("/debug/scoring?format=table", pod("waits", performance=True))
            else:
                answer = await asker.get("/debug/scoring?pod=default/waits&format=table")
            assert answer.kind.startswith("text/plain")
            title, header, *rows = answer.body.decode().splitlines()
            assert title == "default/waits: performance, 10 cores, 0 GPUs"
            assert header.split()[:2] == ["NODE", "SCORE"]
            assert header.split()[-3:] == ["RECENT", "W", "WHY"]
            assert [row.split()[0] for row in rows] == ["bare", "old", "a", "eco"]
            assert [row.split()[1] for row in rows[:2]] == ["50.0", "50.0"]
            assert rows[-1].split()[1] == "-"
            assert "49.0" in rows[2].split()  # recent pods, in watts

    scenario(story())


def test_without_a_pod_it_shows_what_every_score_starts_from() -> None:
    async def story() -> None:
        async with small_cluster() as asker:
            state = (await asker.get("/debug/scoring")).document
            assert state["neutralScore"] == 50
            assert state["coefficients"] == {
                "cpuUtilCoeff": 0.7,
                "gpuUtilCoeffStandard": 0.65,
                "gpuUtilCoeffPerformance": 0.85,
            }
            assert state["perfPressure"] == pytest.approx(50)
            nodes = {each["nodeName"]: each for each in state["nodes"]}
            assert list(nodes) == ["a", "bare", "eco", "no-node", "old"]
            assert (nodes["a"]["stale"], nodes["old"]["stale"], nodes["bare"]["stale"]) == (False, True, True)
            assert nodes["a"]["headroom"] == pytest.approx((600 - 300 - 49) / 6)
            assert (nodes["bare"]["headroom"], nodes["bare"]["measuredPowerW"]) == (None, None)
            assert nodes["eco"]["schedulableClass"] == "eco"
            table = (await asker.get("/debug/scoring?format=table")).body.decode().splitlines()
            assert table[0] == "pressure 50.0, trend +0 W/min; for a pod: /debug/scoring?pod=NAMESPACE/NAME"
            assert [line.split()[0] for line in table[1:]] == ["nodeName", *nodes]

    scenario(story())


SEED_FIELDS = (
    *("nodeName", "schedulableClass", "headroom", "coolingStress", "measuredPowerW", "cappedPowerW", "nodeTdpW"),
    *("powerTrendWPerMin", "baseScore", "cpuTotalCores", "cpuMaxWattsTotal", "gpuCount", "gpuMaxWattsPerGpu"),
    *("hasGpu", "stale"),
)


def test_the_fields_that_were_promised_have_their_names_and_meanings() -> None:
    async def story() -> None:
        extender = made()
        boards = node("gpus", labels={"joulie.io/hw.gpu-model": "H100 SXM", "joulie.io/hw.gpu-count": "8"})
        measured = twin("told")
        measured["status"]["powerMeasurement"]["powerTrendWPerMin"] = -6
        measured["status"]["powerMeasurement"]["nodeTdpW"] = 2000
        measured["status"]["predictedCoolingStressScore"] = 20
        load_objects(
            extender, nodes=[node("told"), boards, node("bare")], twins=[measured, twin("gpus", "draining", at_s=0)]
        )
        async with serving(extender) as asker:
            nodes = {each["nodeName"]: each for each in (await asker.get("/debug/scoring")).document["nodes"]}
            asks_nothing = (await asker.terms(pod(cpu="0")))["told"]
        assert all(tuple(each)[: len(SEED_FIELDS)] == SEED_FIELDS for each in nodes.values())
        told, gpus, bare = nodes["told"], nodes["gpus"], nodes["bare"]
        assert (told["nodeTdpW"], bare["nodeTdpW"], gpus["nodeTdpW"]) == (2000, 350, 350 + 8 * 700)
        assert (told["cpuTotalCores"], told["cpuMaxWattsTotal"]) == (100, 350)
        assert (gpus["gpuCount"], gpus["gpuMaxWattsPerGpu"], gpus["hasGpu"]) == (8, 700, True)
        assert (told["gpuCount"], told["gpuMaxWattsPerGpu"], told["hasGpu"]) == (0, 0, False)
        # A standard pod that asks for nothing: 0.7 x 50 + 0.15 x 80 + 1 for the trend, less 0.3 x 50 for the pressure.
        assert told["baseScore"] == pytest.approx(35 + 12 + 1 - 15) == asks_nothing["score"]
        assert (gpus["baseScore"], gpus["stale"]) == (50, True)

    scenario(story())


def test_another_format_is_refused_with_those_that_there_are() -> None:
    async def story() -> None:
        async with serving(made()) as asker:
            answer = await asker.get("/debug/scoring?format=xml")
            assert (answer.status, answer.line) == (400, "format=xml: expected table or json")

    scenario(story())


@pytest.mark.parametrize("path", ["/debug/scoring", "/debug/scoring?format=table"])
def test_an_empty_cluster_is_shown_too(path: str) -> None:
    async def story() -> None:
        extender = made()
        load_objects(extender)
        async with serving(extender) as asker:
            assert (await asker.get(path)).status == 200
            assert (await asker.post(path, pod())).status == 200

    scenario(story())


@pytest.mark.parametrize("name", ["waits", "default/nobody", "", "%ff%00%0a", "x" * 2000, "default%2Fnobody%0d%0aX:1"])
def test_a_pod_that_is_not_known_is_a_404_with_one_line(name: str) -> None:
    async def story() -> None:
        async with small_cluster() as asker:
            answer = await asker.get(f"/debug/scoring?pod={name}")
            assert answer.status == 404
            assert "NAMESPACE/NAME" in answer.line
            assert len(answer.line) < 400

    scenario(story())


def test_a_pod_that_was_expected_somewhere_and_never_came_is_forgotten_by_the_views_too() -> None:
    """Also where no request about another pod follows."""

    async def story() -> None:
        now_s = [NOW]
        server = MemoryServer()
        server.put(NODES, node("a"), "")
        server.put(NODE_TWINS, twin("a"), "")
        extender = made(now_s=lambda: now_s[0])
        asking = pod()
        asking["metadata"]["uid"] = "u-1"
        server.put(PODS, asking, "default")
        series = b'joulie_scheduler_node_headroom_score{node="a"} '
        async with following(extender, MemoryCluster(server)), serving(extender) as asker:
            await asker.prioritize(asking, ["a"])
            assert list((await asker.post("/debug/scoring", pod("other"))).document["expectedPodsW"]) == ["a"]
            assert series + b"50\n" not in (await asker.get("/metrics")).body
            now_s[0] += 60
            assert series + b"50\n" in (await asker.get("/metrics")).body
            assert "expectedPodsW" not in (await asker.post("/debug/scoring", pod("other"))).document

    scenario(story())


def test_a_posted_pod_that_cannot_be_read_is_a_400_that_names_the_field() -> None:
    async def story() -> None:
        async with small_cluster() as asker:
            broken = pod(cpu="a lot")
            answer = await asker.post("/debug/scoring", broken)
            assert answer.status == 400
            assert answer.line.startswith("Pod: spec.containers[0].resources.requests.cpu: 'a lot' is not a quantity")
            assert (await asker.post("/debug/scoring", b"")).status == 400
            assert (await asker.post("/debug/scoring", {})).line.startswith("Pod: Object missing required field")

    scenario(story())

"""The API: read-only, only for those who know its name, and the same numbers as the decision code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import ClientSession
from msgspec.structs import replace

from joulie.catalogue.lookup import Catalogue
from joulie.control.placement.score_table import score_pod, score_table
from joulie.model.snapshot import Pin, Pod
from joulie.settings import ExtenderSettings, load
from joulie.web.guarding import host_name, is_known
from tests.web.showing import served
from tests.web.world import World

NOW_S = 1_793_534_400.0

Get = Callable[..., Awaitable[tuple[int, Any]]]


def asking(world: World, scenario: Callable[[ClientSession, str], Awaitable[None]], **more: Any) -> None:
    async def main() -> None:
        async with served(world, **more) as (address, _), ClientSession() as session:
            await scenario(session, address)

    asyncio.run(main())


def test_only_reading_is_possible() -> None:
    async def scenario(session: ClientSession, address: str) -> None:
        for path in ("/", "/api/v1/cluster", "/api/v1/nodes/node-01", "/api/v1/stream", "/static/app.js"):
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                async with session.request(method, address + path) as answer:
                    assert answer.status == 405, (method, path)
        async with session.head(f"{address}/api/v1/cluster") as answer:
            assert (answer.status, await answer.read()) == (200, b"")
        async with session.head(f"{address}/api/v1/stream") as answer:
            assert answer.content_type == "text/event-stream"

    asking(World(3, NOW_S), scenario)


def test_every_answer_forbids_foreign_code_and_frames() -> None:
    async def scenario(session: ClientSession, address: str) -> None:
        for path in (
            "/",
            "/static/app.js",
            "/api/v1/nodes",
            "/api/v1/nodes/nobody",
            "/static/none",
            "/api/v1/pods/a/b",
        ):
            async with session.get(address + path) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                assert "frame-ancestors 'none'" in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert "Access-Control-Allow-Origin" not in answer.headers

    asking(World(3, NOW_S), scenario)


def test_files_are_sent_once_and_no_path_leads_outside() -> None:
    async def scenario(session: ClientSession, address: str) -> None:
        async with session.get(f"{address}/static/app.js") as answer:
            tag = answer.headers["ETag"]
            assert answer.headers["Content-Encoding"] == "gzip"
            assert "import" in await answer.text()
        async with session.get(f"{address}/static/app.js", headers={"If-None-Match": tag}) as answer:
            assert (answer.status, await answer.read()) == (304, b"")
        for path in ("..%2fdashboard.py", "%2e%2e%2f__init__.py", "none.js", "%00"):
            async with session.get(f"{address}/static/{path}") as answer:
                assert answer.status == 404

    asking(World(3, NOW_S), scenario)


def test_a_name_that_it_was_not_given_is_refused() -> None:
    async def scenario(session: ClientSession, address: str) -> None:
        async with session.get(f"{address}/api/v1/cluster", headers={"Host": "evil.example.com"}) as answer:
            assert answer.status == 421
            assert "DASHBOARD_HOSTS" in await answer.text()
        async with session.get(f"{address}/api/v1/cluster", headers={"Host": "joulie.example.com:8443"}) as answer:
            assert answer.status == 200

    asking(World(3, NOW_S), scenario, hosts=("joulie.example.com",))


@pytest.mark.parametrize(
    ("header", "known"),
    [
        ("localhost:8081", True),
        ("127.0.0.1", True),
        ("[::1]:8081", True),
        ("10.0.3.7:8081", True),
        ("joulie-operator", True),
        ("joulie-operator.joulie-system.svc:8081", True),
        ("joulie-operator.joulie-system.svc.cluster.local", True),
        ("attacker.com", False),
        ("attacker.com.", False),
        ("1.2.3.4.attacker.com", False),
        ("", False),
    ],
)
def test_addresses_and_names_inside_the_cluster_are_known(header: str, known: bool) -> None:
    assert is_known(host_name(header), ()) is known
    assert is_known(host_name(header), ("*",))


def test_questions_that_make_no_sense_have_plain_answers() -> None:
    async def scenario(session: ClientSession, address: str) -> None:
        for path, status in {
            "nodes/nobody": 404,
            "nodes/%3Cimg%3E": 404,
            "pods/team-a/nobody": 404,
            "pods?offset=-1&limit=many": 200,
            "pods?limit=99999999999999": 200,
            "pods?q=%00%ff&node=x": 200,
            "nothing": 404,
        }.items():
            async with session.get(f"{address}/api/v1/{path}") as answer:
                assert answer.status == status, path

    asking(World(3, NOW_S), scenario)


def test_it_says_so_while_the_cluster_is_not_known_yet() -> None:
    async def scenario(session: ClientSession, address: str) -> None:
        async with session.get(f"{address}/api/v1/stream") as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        async with session.get(f"{address}/") as answer:
            assert answer.status == 200

    asking(World(3, NOW_S), scenario, ready=lambda: False)


def test_a_pods_scores_are_those_that_the_decision_code_gives() -> None:
    world = World(30, NOW_S)
    pod = world.pods["ml/train-0"] = Pod("ml", "train-0", "", "standard", 16.0, 1.0)
    settings = load(ExtenderSettings, {})
    table = score_table(world.read(), settings.score, settings.marginal, settings.hardware, Catalogue(), NOW_S)
    expected = {one.node: one.score for one in score_pod(table, pod)}

    async def scenario(session: ClientSession, address: str) -> None:
        async with session.get(f"{address}/api/v1/pods/ml/train-0?limit=10") as answer:
            first = await answer.json()
        async with session.get(f"{address}/api/v1/pods/ml/train-0?offset=10&limit=500") as answer:
            rest = await answer.json()
        got = {line["node"]: line["score"] for line in first["nodes"] + rest["nodes"]}
        assert got == pytest.approx(expected)
        assert [line["place"] for line in first["nodes"] + rest["nodes"]] == list(range(1, 31))
        assert first["total"] == 30

    asking(world, scenario)


def test_a_node_without_room_is_ranked_behind_and_says_why() -> None:
    world = World(6, NOW_S, pods_per_node=0)
    world.pods["a/big"] = Pod("a", "big", "node-00", "standard", 190.0)
    world.nodes["node-03"] = replace(world.nodes["node-03"], unschedulable=True)
    world.pods["ml/next"] = Pod("ml", "next", "", "standard", 8.0)

    async def scenario(session: ClientSession, address: str) -> None:
        async with session.get(f"{address}/api/v1/pods/ml/next") as answer:
            lines = (await answer.json())["nodes"]
        assert {line["node"]: line["misfit"] for line in lines[-2:]} == {
            "node-00": "2 of 192 cores free",
            "node-03": "cordoned",
        }

    asking(world, scenario)


def test_a_node_tells_its_reason_pin_and_past() -> None:
    world = World(4, NOW_S)
    world.state["node-00"] = "performance"
    world.write_twin("node-00", 0)
    world.pins["hold"] = Pin("hold", "node-01", "performance", created_at_s=NOW_S, expires_at_s=NOW_S + 60)

    async def scenario(session: ClientSession, address: str) -> None:
        async with session.get(f"{address}/api/v1/nodes/node-01") as answer:
            node = await answer.json()
        assert (node["pin"], node["pinProfile"], node["pinWaits"]) == ("hold", "performance", True)
        assert node["history"]["powerW"] == [node["powerW"]]
        told = []
        for name in world.nodes:
            async with session.get(f"{address}/api/v1/nodes/{name}") as answer:
                told.append((await answer.json())["reason"])
        assert all(told), told
        assert told[1] == "becomes performance with the next decision: pinned to performance by NodePowerProfile/hold"

    asking(world, scenario)


@pytest.mark.slow
def test_a_flood_of_questions_leaves_the_process_time_for_others() -> None:
    async def main() -> None:
        world = World(2_000, NOW_S, pods_per_node=10)
        world.pods["ml/train-0"] = Pod("ml", "train-0", "", "performance", 16.0, 4.0)
        async with served(world) as (address, _), ClientSession() as session:

            async def ask() -> int:
                async with session.get(f"{address}/api/v1/pods/ml/train-0?limit=500") as answer:
                    await answer.read()
                    return answer.status

            statuses = await asyncio.gather(*(ask() for _ in range(300)))
            assert set(statuses) == {200, 503}
            async with asyncio.timeout(30):
                while await ask() != 200:
                    await asyncio.sleep(0.1)

    asyncio.run(main())


def test_a_fault_in_looking_ends_neither_the_dashboard_nor_who_serves_it() -> None:
    async def main() -> None:
        world = World(3, NOW_S)
        async with served(world) as (address, dashboard), ClientSession() as session:
            async with session.get(f"{address}/api/v1/cluster") as answer:
                assert answer.status == 200
            whole, world.nodes = world.nodes, None  # type: ignore[assignment]
            dashboard.feed.arrived.set()
            await asyncio.sleep(1.5)
            async with session.get(f"{address}/api/v1/cluster") as answer:
                assert answer.status == 500
            world.nodes = whole
            await asyncio.sleep(0.3)
            async with session.get(f"{address}/api/v1/cluster") as answer:
                assert (await answer.json())["nodes"] == 3

    asyncio.run(main())

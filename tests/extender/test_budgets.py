"""The extender knows what power budgets leave for pods, from its watch of them."""

from __future__ import annotations

from typing import Any

import pytest

from joulie.cluster.memory.cluster import MemoryCluster, MemoryServer
from joulie.cluster.port import NODE_TWINS, NODES, POWER_BUDGETS
from tests.extender.api_objects import Body, node, pod, twin
from tests.extender.harness import Asker, following, made, scenario, serving, until

ASKING = pod(performance=True, cpu="10")  # adds 0.7 × 0.1 × 350 W
ADDED_W = 24.5


def held(name: str, *groups: str, **order: Any) -> Body:
    body = twin(name)
    body["spec"]["budget"] = {"order": 1, "caps": {"cpuWattsPerPackage": 350}, "groups": list(groups), **order}
    return body


def budget(name: str = "racks", **measured_w: float) -> Body:
    """r1=900: measured, of 1,000 W that are all given out."""
    usual = {"nodes": 1, "limitWatts": 1000, "allocatedWatts": 1000, "floorWatts": 1, "state": "within"}
    groups = [{"value": value, "measuredWatts": watts, **usual} for value, watts in measured_w.items()]
    return {"metadata": {"name": name}, "spec": {"watts": 1000}, "status": {"groups": groups}}


def _server(*budgets: Body) -> MemoryServer:
    server = MemoryServer()
    for name, group in (("a", "racks/r1"), ("b", "racks/r2")):
        server.put(NODES, node(name), "")
        server.put(NODE_TWINS, held(name, group), "")
    for one in budgets:
        server.put(POWER_BUDGETS, one, "")
    return server


async def _until_lost(asker: Asker, **points: float) -> None:
    async def so() -> bool:
        scored = await asker.terms(ASKING)
        lost = {name: (scored[name]["breakdown"] or {}).get("groupPenalty", 0.0) for name in points}
        return lost == pytest.approx(points)

    await until(so)


def test_a_pod_goes_where_its_group_has_room_and_changes_are_seen() -> None:
    async def story() -> None:
        server, extender = _server(budget(r1=1000, r2=500)), made()
        async with following(extender, MemoryCluster(server)), serving(extender) as asker:
            await _until_lost(asker, a=-30, b=0)
            scores = await asker.prioritize(ASKING, ["a", "b"])
            assert scores["b"] - scores["a"] == 30
            assert "racks/r1 has 0 W left" in (await asker.terms(ASKING))["a"]["reason"]
            server.put(POWER_BUDGETS, budget(r1=1000 - ADDED_W / 2, r2=1000), "")
            await _until_lost(asker, a=-15, b=-30)
            server.put(NODE_TWINS, held("b", released=True), "")
            await _until_lost(asker, a=-15, b=0)
            server.delete(POWER_BUDGETS, "racks", None)
            await _until_lost(asker, a=0, b=0)

    scenario(story())


def test_debug_pages_name_the_group_and_its_room() -> None:
    async def story() -> None:
        extender = made()
        async with following(extender, MemoryCluster(_server(budget(r1=990, r2=500)))), serving(extender) as asker:
            await _until_lost(asker, b=0, a=-30 * (ADDED_W - 10) / ADDED_W)
            states = {each["nodeName"]: each for each in (await asker.get("/debug/scoring")).document["nodes"]}
            assert (states["a"]["narrowestGroup"], states["a"]["groupRoomW"]) == ("racks/r1", pytest.approx(10))
            shown = (await asker.post("/debug/scoring?format=table", ASKING)).body.decode()
            assert " GROUP " in shown.splitlines()[1]
            assert "racks/r1 has 10 W left, and the pod adds 24 W" in shown

    scenario(story())


def test_without_budgets_nothing_is_said_of_them() -> None:
    async def story() -> None:
        extender = made()
        async with following(extender, MemoryCluster(_server())), serving(extender) as asker:
            assert "groupPenalty" not in (await asker.terms(ASKING))["a"]["breakdown"]
            assert "narrowestGroup" not in (await asker.get("/debug/scoring")).document["nodes"][0]

    scenario(story())

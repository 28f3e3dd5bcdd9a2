"""The live demo inside the test's own event loop, where its cluster and its hardware can be looked at."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import pytest

from joulie.cluster.port import LEASES, NODE_TWINS, PODS
from joulie.demo.live.clock import DemoClock
from joulie.demo.live.interface import DemoOptions
from joulie.demo.live.live_demo import LiveDemo
from joulie.demo.ports import choose_ports
from joulie.demo.scenario.day import SCENES
from joulie.demo.scenario.machines import places
from joulie.demo.settings import pool_agents
from joulie.model.names import WORKLOAD_CLASS_ANNOTATION
from joulie.model.rfc3339 import parse_time_s
from joulie.operator.process import LEASE_NAME

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo")]

PATIENCE_S = 120.0


class Watched:
    """A demo that runs beside the test."""

    def __init__(self, speed: float, scene: str) -> None:
        self.told: list[str] = []
        self.stop = asyncio.Event()
        ports = choose_ports(0, None, pool_agents(speed))
        self.demo = LiveDemo(DemoOptions(speed, 7, SCENES[scene]), ports, {}, self.told.append)
        self.task = asyncio.create_task(self.demo.run(self.stop))

    async def until_done(self, pods: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while (look := self.demo.look()) is None or look.done < pods:
                assert not self.task.done()
                await asyncio.sleep(0.05)

    async def until_all_report(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not all("controlStatus" in twin.get("status", {}) for twin in self.demo._server.all(NODE_TWINS)):
                await asyncio.sleep(0.05)

    async def end(self) -> None:
        self.stop.set()
        async with asyncio.timeout(PATIENCE_S):
            await self.task

    def misplaced(self) -> set[tuple[str, str]]:
        """Performance pods that run on an eco node."""
        server = self.demo._server
        classes = {
            twin["metadata"]["name"]: twin.get("status", {}).get("schedulableClass") for twin in server.all(NODE_TWINS)
        }
        return {
            (pod["metadata"]["name"], node)
            for pod in server.all(PODS)
            if (node := pod["spec"].get("nodeName"))
            and pod["status"]["phase"] == "Running"
            and pod["metadata"]["annotations"][WORKLOAD_CLASS_ANNOTATION] == "performance"
            and classes.get(node) == "eco"
        }

    def overfull(self) -> list[str]:
        used: Counter[str] = Counter()
        for pod in self.demo._server.all(PODS):
            if pod["status"]["phase"] == "Running":
                requests = pod["spec"]["containers"][0]["resources"]["requests"]
                used[pod["spec"]["nodeName"]] += int(requests["cpu"])
        return [place.name for place in places() if used[place.name] > place.cores]


def test_performance_pods_do_not_stay_on_eco_nodes_and_no_node_is_overfull() -> None:
    """The moment between a bind and the next decision is the operator's to notice: then the node drains."""

    async def main() -> None:
        watched = Watched(60, "afternoon")
        since_s: dict[tuple[str, str], float] = {}
        seen = 0
        until_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < until_s and seen < 200:
            await asyncio.sleep(0.05)
            assert not watched.task.done()
            look = watched.demo.look()
            assert watched.overfull() == []
            now_s = time.monotonic()
            misplaced = watched.misplaced()
            since_s = {pair: since_s.get(pair, now_s) for pair in misplaced}
            assert all(now_s - first_s < 15 for first_s in since_s.values()), since_s
            seen += look is not None and look.running > 20
        assert seen == 200
        assert watched.demo._scheduler.bound > 20
        await watched.end()

    asyncio.run(main())


def test_at_the_end_caps_stay_where_a_budget_holds_nodes_and_the_leaders_lease_is_given_back() -> None:
    """A stop restores what policies capped, but never raises a node that a budget holds."""

    async def main() -> None:
        watched = Watched(20, "day")
        server, fleet = watched.demo._server, watched.demo._simulation.fleet
        async with asyncio.timeout(PATIENCE_S):
            while not (
                all("budget" in twin.get("spec", {}) for twin in server.all(NODE_TWINS)) and fleet.cpus.cap_is_set.all()
            ):
                await asyncio.sleep(0.05)
        held_w = fleet.cpus.cap_target_w.copy()
        await watched.end()
        assert (fleet.cpus.cap_target_w <= held_w).all()
        assert fleet.cpus.cap_is_set.all()
        leader = next(lease for lease in server.all(LEASES) if lease["metadata"]["name"] == LEASE_NAME)
        assert not leader["spec"].get("holderIdentity")

    asyncio.run(main())


def test_all_time_stamps_are_of_the_demos_clock() -> None:
    async def main() -> None:
        watched = Watched(60, "night")
        await watched.until_done(3)
        await watched.until_all_report()
        clock = watched.demo._clock
        assert clock.now_s() - time.time() > 60  # it runs ahead
        for twin in watched.demo._server.all(NODE_TWINS):
            status = twin["status"]
            parts = [part for kind, part in status["controlStatus"].items() if kind != "budget"]  # counts, no clock
            stamps = [status["lastUpdated"], *(part["updatedAt"] for part in parts)]
            assert len(stamps) >= 2
            for stamp in stamps:
                assert clock.started_s - 1 <= parse_time_s(stamp) <= clock.now_s() + 1
        measured = watched.demo.measured()
        await watched.end()
        assert measured.done >= 3
        assert 0 < measured.it_kwh < measured.facility_kwh
        assert measured.slowdown_p50 > 0.9

    asyncio.run(main())


def test_the_clock_runs_as_many_times_faster_as_asked() -> None:
    steady = [100.0]
    clock = DemoClock(20.0, wall=lambda: 5_000.0, steady=lambda: steady[0])
    steady[0] += 3.0
    assert clock.elapsed_s == 60.0
    assert clock.now_s() == 5_060.0
    assert clock.real_s(40.0) == 2.0

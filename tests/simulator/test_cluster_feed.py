"""Nodes and pods come from a cluster, in memory or real, and the simulated hardware follows them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from joulie.cluster.memory.cluster import MemoryCluster
from joulie.cluster.port import NODES, PODS
from joulie.simulator.control import RAPL
from joulie.simulator.simulation import Simulation
from tests.operator.objects import node, pod
from tests.simulator.grounds import Client, asking, run, simulation

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

PATIENCE_S = 30.0


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.01)


def _known(world: Simulation) -> set[str]:
    world.settle_changes()
    return set(world.index)


def _empty(selector: str = "") -> Simulation:
    world = simulation(SIM_NODE_SELECTOR=selector)
    for name in list(world.index):
        world.drop_node(name)
    world.settle_changes()
    return world


def _watts(world: Simulation, name: str) -> float:
    for _ in range(5):
        world.step(1.0)
    return float(world.fleet.node_w[world.index[name]])


def test_the_simulated_hardware_follows_nodes_and_pods_of_a_cluster() -> None:
    async def main() -> None:
        cluster = MemoryCluster()
        cluster.put(NODES, node("a"))
        cluster.put(NODES, node("b", gpus=4))
        world = _empty()
        async with asking(world, cluster=cluster) as client:
            await until(lambda: len(_known(world)) == 2)
            await _ready(client)
            idle_w = _watts(world, "a")
            cluster.put(PODS, pod("work", on="a", cpu="180", performance=True), namespace="default")
            await until(lambda: [each.name for each in world.pods_on("a")] == ["work"])
            assert _watts(world, "a") > idle_w + 300
            await client.control("a", RAPL, capWatts=400)
            assert world.fleet.cpus.cap_target_w[world.index["a"]] == 400

            cluster.put(NODES, node("c", gpus=8))  # others come and go: a keeps its cap, temperature and counters
            await cluster.delete(NODES, "b")
            before_j = float(world.fleet.node_energy_j[world.index["a"]])
            await until(lambda: _known(world) == {"a", "c"})
            assert world.fleet.cpus.cap_target_w[world.index["a"]] == 400
            assert float(world.fleet.node_energy_j[world.index["a"]]) == before_j
            assert (await client.get("/telemetry/b")).status == 404

            await cluster.patch(NODES, "a", {"metadata": {"labels": {"joulie.io/power-profile": "eco"}}})
            await cluster.delete(PODS, "work", namespace="default")
            await until(lambda: not world.pods_on("a"))
            assert world.fleet.cpus.cap_target_w[world.index["a"]] == 400  # a label of Joulie's is no new hardware
            assert _watts(world, "a") == pytest.approx(idle_w)
        await cluster.close()

    run(main())


def test_only_nodes_that_the_selector_takes_are_simulated() -> None:
    async def main() -> None:
        cluster = MemoryCluster()
        cluster.put(NODES, node("a", managed="true"))
        cluster.put(NODES, node("b", managed="false"))
        world = _empty("joulie.io/managed=true")
        async with asking(world, cluster=cluster) as client:
            await until(lambda: _known(world) == {"a"})
            assert (await client.get("/state/b")).status == 404
            await cluster.patch(NODES, "b", {"metadata": {"labels": {"joulie.io/managed": "true"}}})
            await until(lambda: _known(world) == {"a", "b"})
        await cluster.close()

    run(main())


def test_a_broken_object_counts_as_absent_and_harms_no_other() -> None:
    async def main() -> None:
        cluster = MemoryCluster()
        cluster.put(NODES, node("a"))
        broken: dict[str, Any] = {"metadata": {"name": "b"}, "status": {"capacity": {"cpu": "many"}}}
        cluster.put(NODES, broken)
        world = _empty()
        async with asking(world, cluster=cluster) as client:
            await until(lambda: _known(world) == {"a"})
            await _ready(client)
        await cluster.close()

    run(main())


def test_before_the_cluster_is_known_the_simulator_is_not_ready() -> None:
    async def main() -> None:
        cluster = MemoryCluster()
        cluster.fail_next(1_000, verb="list", status=503)
        world = _empty()
        async with asking(world, cluster=cluster) as client:
            answer = await client.get("/readyz")
            assert (answer.status, answer.text) == (503, "not all nodes and pods are known yet\n")
            assert (await client.get("/healthz")).status == 200
        await cluster.close()

    run(main())


@pytest.mark.slow
def test_nodes_and_pods_of_a_real_api_server_are_simulated(fresh_cluster: ControlPlane) -> None:
    from testbed.objects import fill
    from tests.operator.clusters import RealGround

    fill(fresh_cluster, 200, 3)

    async def main() -> None:
        cluster = RealGround(fresh_cluster).client()
        world = _empty()
        async with asking(world, cluster=cluster) as client:
            await until(lambda: len(_known(world)) == 200)
            await _ready(client)
            world.step(1.0)
            told = (await client.get("/debug/nodes")).body
            assert len(told) == 200
            assert (world.load.cpu > 0).sum() > 100  # their pods make them busy
        await cluster.close()

    run(main())


async def _ready(client: Client) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await client.get("/readyz")).status != 200:
            await asyncio.sleep(0.05)

"""What `joulie.cluster.port` promises, tried in memory and on a real API server alike: watching."""

from __future__ import annotations

import pytest
from msgspec import json

from joulie.cluster.port import (
    LEASES,
    NODE_HARDWARE,
    NODE_TWINS,
    NODES,
    PODS,
    Cluster,
    ClusterError,
    Deleted,
    Synced,
    Upserted,
)
from tests.cluster.clusters import World, node, pod, twin
from tests.cluster.watching import watch


def test_a_watch_tells_first_what_exists_and_then_what_happens(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        for number in range(8):  # more than two pages
            await cluster.create(NODES, node(f"n{number}"))
        async with watch(cluster, NODES) as reader:
            await reader.synced()
            assert sorted(reader.objects) == [f"n{number}" for number in range(8)]
            assert reader.told[-1] == Synced(8)
            assert reader.sizes == [3, 3, 3]  # a page is a batch; the last has two and the end
            assert world.notes.lists == [(8, 3)]
            await cluster.create(NODES, node("n8"))
            await cluster.patch(NODES, "n0", {"metadata": {"labels": {"x": "y"}}})
            await cluster.delete(NODES, "n1")
            await reader.until(lambda: "n1" not in reader.objects)
            news = reader.told[9:]
            assert [type(change) for change in news] == [Upserted, Upserted, Deleted]
            assert reader.objects["n0"]["metadata"]["labels"]["x"] == "y"
            assert world.notes.contacts >= 4

    world.play(scenario)


def test_a_watch_of_nothing_says_so(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        async with watch(cluster, NODE_HARDWARE) as reader:
            await reader.synced()
            assert reader.told == [Synced(0)]
            await cluster.create(NODE_HARDWARE, {"metadata": {"name": "a"}})
            await reader.until(lambda: "a" in reader.objects)

    world.play(scenario)


def test_a_watch_of_one_object_in_one_namespace_tells_of_no_other(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        for namespace, name in (("default", "a"), ("default", "b"), ("kube-system", "a")):
            await cluster.create(LEASES, {"metadata": {"name": name}}, namespace=namespace)
        async with watch(cluster, LEASES, namespace="default", field_selector="metadata.name=a") as reader:
            await reader.synced()
            assert list(reader.objects) == ["default/a"]
            for namespace, name in (("kube-system", "a"), ("default", "b"), ("default", "a")):
                await cluster.patch(LEASES, name, {"metadata": {"labels": {"x": "y"}}}, namespace=namespace)
            await reader.until(lambda: "labels" in reader.objects["default/a"]["metadata"])
            assert list(reader.objects) == ["default/a"]

    world.play(scenario)


def test_an_object_that_starts_or_stops_matching_comes_and_goes(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.create(NODES, node("a", managed="true"))
        await cluster.create(NODES, node("b"))
        async with watch(cluster, NODES, label_selector="managed=true,!reserved") as reader:
            await reader.synced()
            assert set(reader.objects) == {"a"}
            await cluster.patch(NODES, "b", {"metadata": {"labels": {"managed": "true"}}})
            await cluster.patch(NODES, "a", {"metadata": {"labels": {"reserved": "true"}}})
            await reader.until(lambda: set(reader.objects) == {"b"})
            assert Deleted("a") in reader.told
            await cluster.delete(NODES, "b")
            await reader.until(lambda: not reader.objects)

    world.play(scenario)


def test_a_watch_can_be_narrowed_to_a_field(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        for name in ("a", "b"):
            await cluster.create(NODE_TWINS, twin(name))
            await cluster.create(PODS, pod(f"on-{name}", name), namespace="default")
        async with (
            watch(cluster, NODE_TWINS, field_selector="metadata.name=a") as twins,
            watch(cluster, PODS, field_selector="spec.nodeName=b") as pods,
        ):
            await twins.synced()
            await pods.synced()
            assert set(twins.objects) == {"a"}
            assert set(pods.objects) == {"default/on-b"}
            await cluster.patch(NODE_TWINS, "b", {"spec": {"profile": "performance"}})
            await cluster.patch(NODE_TWINS, "a", {"spec": {"profile": "performance"}})
            await twins.until(lambda: twins.objects["a"]["spec"]["profile"] == "performance")
            assert set(twins.objects) == {"a"}

    world.play(scenario)


def test_an_object_that_cannot_be_decoded_is_told_as_broken_until_it_can(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.create(NODES, node("a", broken="yes"))
        await cluster.create(NODES, node("b"))
        async with watch(cluster, NODES) as reader:
            await reader.synced()
            assert set(reader.objects) == {"b"}
            assert reader.broken == {"a": "metadata.labels.broken: is there"}
            await cluster.patch(NODES, "a", {"metadata": {"labels": {"broken": None}}})
            await cluster.patch(NODES, "b", {"metadata": {"labels": {"broken": "yes"}}})
            await reader.until(lambda: set(reader.broken) == {"b"})
            assert set(reader.objects) == {"a"}
            await cluster.delete(NODES, "b")
            await reader.until(lambda: not reader.broken)

    world.play(scenario)


def test_after_a_gap_exactly_the_differences_are_told(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        for name in ("kept", "changed", "gone", "again"):
            await cluster.create(NODES, node(name))
        await cluster.create(NODES, node("bad", broken="yes"))
        async with watch(cluster, NODES) as reader:
            await reader.synced()
            told = len(reader.told)
            await world.go_down()
            other = world.client()
            await world.come_up()
            await other.patch(NODES, "changed", {"metadata": {"labels": {"x": "y"}}})
            await other.delete(NODES, "gone")
            await other.delete(NODES, "again")
            again = json.decode(await other.create(NODES, node("again")))
            await other.create(NODES, node("new"))
            await world.expire()
            await other.close()
            await reader.until(lambda: "new" in reader.objects and "gone" not in reader.objects)
            assert sorted(reader.objects) == ["again", "changed", "kept", "new"]
            assert reader.objects["again"]["metadata"]["uid"] == again["metadata"]["uid"]
            keys = {change.key for change in reader.told[told:] if not isinstance(change, Synced)}
            assert keys <= {"changed", "gone", "again", "new"}
            await cluster.delete(NODES, "kept")
            await reader.until(lambda: "kept" not in reader.objects)

    world.play(scenario)


def test_an_expired_watch_lists_again(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.create(NODES, node("a"))
        async with watch(cluster, NODES) as reader:
            await reader.synced()
            await cluster.create(NODE_TWINS, twin("a"))  # the server moves on, unseen by this watch
            await world.expire()
            await reader.synced(2)
            assert [type(change) for change in reader.told] == [Upserted, Synced, Synced]
            await cluster.patch(NODES, "a", {"metadata": {"labels": {"x": "y"}}})
            await reader.until(lambda: reader.objects["a"]["metadata"].get("labels", {}).get("x") == "y")

    world.play(scenario)


def test_closing_the_cluster_ends_its_watches_and_refuses_calls(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        async with watch(cluster, NODES) as reader:
            await reader.synced()
            await cluster.close()
            await reader.until(lambda: reader.ended)
        with pytest.raises(ClusterError):
            await cluster.get(NODES, "a")
        assert [_ async for _ in cluster.watch(NODES, bytes)] == []

    world.play(scenario)


def test_a_selector_that_cannot_be_parsed_is_reported_and_tried_again(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        async with watch(cluster, NODES, field_selector="spec.colour=red") as reader:
            await reader.until(lambda: len(world.notes.failures) >= 2)
            assert reader.told == []
            assert "spec.colour" in world.notes.failures[0][0]

    world.play(scenario)

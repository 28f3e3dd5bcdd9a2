"""What `joulie.cluster.port` promises, tried in memory and on a real API server alike: reading and writing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import json

from joulie.cluster.lease.election import LeaderElector, LeaseTimes
from joulie.cluster.port import (
    EVENTS,
    LEASES,
    NODE_POWER_PROFILES,
    NODE_TWINS,
    NODES,
    Cluster,
    ClusterError,
    ConflictError,
    NotFoundError,
)
from tests.cluster.clusters import World, node, twin
from tests.cluster.watching import watch


def version(data: bytes) -> str:
    return str(json.decode(data)["metadata"]["resourceVersion"])


def test_what_was_created_can_be_read_and_carries_what_the_server_adds(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        created = json.decode(await cluster.create(NODE_TWINS, twin("a")))
        assert json.decode(await cluster.get(NODE_TWINS, "a")) == created
        assert created["apiVersion"] == "joulie.io/v1alpha1"
        assert created["kind"] == "NodeTwin"
        assert created["spec"] == {"nodeName": "a", "profile": "eco"}
        metadata = created["metadata"]
        assert metadata["uid"]
        assert metadata["resourceVersion"]
        assert metadata["creationTimestamp"].endswith("Z")
        assert metadata["generation"] == 1

    world.play(scenario)


def test_a_name_can_be_taken_once(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.create(NODE_TWINS, twin("a"))
        with pytest.raises(ConflictError) as refusal:
            await cluster.create(NODE_TWINS, twin("a", "performance"))
        assert refusal.value.status == 409
        assert json.decode(await cluster.get(NODE_TWINS, "a"))["spec"]["profile"] == "eco"

    world.play(scenario)


def test_what_is_not_there_is_not_found(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        for call in (
            cluster.get(NODE_TWINS, "a"),
            cluster.patch(NODES, "a", {"metadata": {"labels": {"x": "y"}}}),
            cluster.patch(NODE_TWINS, "a", {"status": {}}, status=True),
            cluster.delete(NODE_TWINS, "a"),
            cluster.get(LEASES, "a", namespace="default"),
        ):
            with pytest.raises(NotFoundError) as refusal:
                await call
            assert refusal.value.status == 404
            assert not refusal.value.is_transient

    world.play(scenario)


def test_creating_takes_no_status(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        created = await cluster.create(NODE_TWINS, twin("a") | {"status": {"schedulableClass": "eco"}})
        assert "status" not in json.decode(created)

    world.play(scenario)


def test_the_object_and_its_status_are_written_apart(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.create(NODE_TWINS, twin("a"))
        both = {"spec": {"profile": "performance"}, "status": {"schedulableClass": "eco"}}
        after = json.decode(await cluster.patch(NODE_TWINS, "a", both, status=True))
        assert after["spec"]["profile"] == "eco"
        assert after["status"] == {"schedulableClass": "eco"}
        both["status"]["schedulableClass"] = "draining"
        after = json.decode(await cluster.patch(NODE_TWINS, "a", both))
        assert after["spec"]["profile"] == "performance"
        assert after["status"] == {"schedulableClass": "eco"}

    world.play(scenario)


def test_labelling_a_node_leaves_its_status_alone(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.create(NODES, node("a", keep="1"))
        patch = {"metadata": {"labels": {"joulie.io/power-profile": "eco"}}, "status": {"capacity": {"cpu": "1"}}}
        after = json.decode(await cluster.patch(NODES, "a", patch))
        assert after["metadata"]["labels"] == {"keep": "1", "joulie.io/power-profile": "eco"}
        assert after["status"]["capacity"]["cpu"] == "8"

    world.play(scenario)


def test_a_patch_merges_and_none_removes(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.create(NODE_TWINS, twin("a"))
        theirs = {"controlStatus": {"cpu": {"result": "applied", "backend": "rapl"}}}
        await cluster.patch(NODE_TWINS, "a", {"status": theirs}, status=True)
        ours = {"schedulableClass": "eco", "hardwareDensityScore": 12.5}
        await cluster.patch(NODE_TWINS, "a", {"status": ours}, status=True)
        after = await cluster.patch(
            NODE_TWINS, "a", {"status": {"hardwareDensityScore": None, "estimatedPUE": None}}, status=True
        )
        assert json.decode(after)["status"] == theirs | {"schedulableClass": "eco"}
        removed = await cluster.patch(NODES, await _labelled(cluster), {"metadata": {"labels": {"x": None}}})
        assert json.decode(removed)["metadata"]["labels"] == {"y": "2"}

    async def _labelled(cluster: Cluster) -> str:
        await cluster.create(NODES, node("a", x="1", y="2"))
        return "a"

    world.play(scenario)


def test_the_generation_counts_changes_of_what_is_wanted(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        async def generation(patch: dict[str, Any], *, status: bool = False) -> int:
            answer = await cluster.patch(NODE_TWINS, "a", patch, status=status)
            return int(json.decode(answer)["metadata"]["generation"])

        await cluster.create(NODE_TWINS, twin("a"))
        assert await generation({"status": {"schedulableClass": "eco"}}, status=True) == 1
        assert await generation({"metadata": {"labels": {"x": "y"}}}) == 1
        assert await generation({"spec": {"profile": "performance"}}) == 2

    world.play(scenario)


def test_a_write_that_changes_nothing_makes_no_version(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.create(NODES, node("a", x="1"))
        before = version(await cluster.get(NODES, "a"))
        assert version(await cluster.patch(NODES, "a", {"metadata": {"labels": {"x": "1", "y": None}}})) == before
        await cluster.create(NODE_TWINS, twin("a"))
        status = {"status": {"hardwareDensityScore": 12.5}}
        first = version(await cluster.patch(NODE_TWINS, "a", status, status=True))
        assert version(await cluster.patch(NODE_TWINS, "a", status, status=True)) == first

    world.play(scenario)


def test_replacing_needs_the_version_that_was_read(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.create(NODE_TWINS, twin("a"))
        read = json.decode(await cluster.get(NODE_TWINS, "a"))
        read["spec"]["profile"] = "performance"
        after = json.decode(await cluster.replace(NODE_TWINS, read))
        assert after["spec"]["profile"] == "performance"
        for body in (read, twin("a")):  # an old version, and none
            with pytest.raises(ConflictError):
                await cluster.replace(NODE_TWINS, body)
        gone = after | {"metadata": after["metadata"] | {"name": "b"}}
        with pytest.raises(ClusterError):
            await cluster.replace(NODE_TWINS, gone)

    world.play(scenario)


def test_a_patch_that_names_a_version_wants_exactly_that(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        old = version(await cluster.create(NODE_TWINS, twin("a")))
        await cluster.patch(NODE_TWINS, "a", {"spec": {"profile": "performance"}})
        with pytest.raises(ConflictError):
            await cluster.patch(NODE_TWINS, "a", {"metadata": {"resourceVersion": old}, "spec": {"profile": "eco"}})

    world.play(scenario)


def test_deleting_spares_another_object_of_the_same_name(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        uid = json.decode(await cluster.create(NODE_TWINS, twin("a")))["metadata"]["uid"]
        with pytest.raises(ConflictError):
            await cluster.delete(NODE_TWINS, "a", uid="00000000-0000-0000-0000-000000000000")
        await cluster.delete(NODE_TWINS, "a", uid=uid)
        with pytest.raises(NotFoundError):
            await cluster.get(NODE_TWINS, "a")

    world.play(scenario)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"nodeName": "a", "profile": "turbo"}, "spec.profile"),
        ({"nodeName": "a"}, "spec.profile"),
        ({"nodeName": "a", "profile": "eco", "cpu": {"packagePowerCapPctOfMax": 101}}, "PctOfMax"),
        ({"nodeName": 7, "profile": "eco"}, "spec.nodeName"),
    ],
)
def test_what_the_definition_forbids_is_refused(world: World, spec: dict[str, Any], field: str) -> None:
    async def scenario(cluster: Cluster) -> None:
        with pytest.raises(ClusterError) as refusal:
            await cluster.create(NODE_POWER_PROFILES, {"metadata": {"name": "a"}, "spec": spec})
        assert refusal.value.status == 422
        assert field in str(refusal.value)
        assert not refusal.value.is_transient
        await cluster.create(NODE_TWINS, twin("a"))
        with pytest.raises(ClusterError, match=r"schedulableClass"):
            await cluster.patch(NODE_TWINS, "a", {"status": {"schedulableClass": "fast"}}, status=True)

    world.play(scenario)


def test_the_server_can_make_up_a_name(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        event = {
            "metadata": {"generateName": "a-", "namespace": "default"},
            "involvedObject": {"kind": "Node", "name": "a"},
            "reason": "Draining",
            "type": "Normal",
        }
        keys = {json.decode(await cluster.create(EVENTS, event))["metadata"]["name"] for _ in range(3)}
        assert len(keys) == 3
        assert all(key.startswith("a-") for key in keys)

    world.play(scenario)


def test_what_lives_in_a_namespace_needs_one(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        with pytest.raises(ClusterError, match="namespace"):
            await cluster.get(LEASES, "a")
        with pytest.raises(ClusterError, match="namespace"):
            await cluster.create(LEASES, {"metadata": {"name": "a"}})

    world.play(scenario)


def test_a_write_that_may_no_longer_be_sent_is_not(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.create(NODE_TWINS, twin("a"))
        before = version(await cluster.get(NODE_TWINS, "a"))
        async with watch(cluster, NODE_TWINS) as reader:
            await reader.synced()
            for call in (
                cluster.create(NODE_TWINS, twin("b"), may_send=lambda: False),
                cluster.patch(NODE_TWINS, "a", {"spec": {"profile": "performance"}}, may_send=lambda: False),
                cluster.patch(NODE_TWINS, "a", {"status": {"x": 1}}, status=True, may_send=lambda: False),
                cluster.delete(NODE_TWINS, "a", may_send=lambda: False),
            ):
                with pytest.raises(ClusterError):
                    await call
            assert version(await cluster.get(NODE_TWINS, "a")) == before
            await cluster.create(NODE_TWINS, twin("c"), may_send=lambda: True)
            await reader.until(lambda: "c" in reader.objects)
            assert set(reader.objects) == {"a", "c"}

    world.play(scenario)


def test_a_lease_passes_from_one_to_the_next(world: World) -> None:
    async def scenario(cluster: Cluster) -> None:
        times = LeaseTimes(3.0, 2.0, 0.2)
        first, second = (
            LeaderElector(cluster, namespace="default", name="joulie", identity=identity, times=times)
            for identity in ("first", "second")
        )
        await first.step()
        await second.step()
        assert (first.is_leader(), second.is_leader()) == (True, False)
        await first.step()
        await first.release()
        assert not first.is_leader()
        await second.step()
        assert second.is_leader()
        spec = json.decode(await cluster.get(LEASES, "joulie", namespace="default"))["spec"]
        assert spec["holderIdentity"] == "second"
        assert spec["leaseTransitions"] == 1
        await asyncio.sleep(2.0)
        assert not second.is_leader()

    world.play(scenario)

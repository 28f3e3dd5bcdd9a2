"""The cluster in memory where it does more than the contract: faults on demand, and the life of an object."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from joulie.cluster.memory import write_rules
from joulie.cluster.memory.cluster import MemoryCluster, MemoryServer
from joulie.cluster.memory.selectors import matcher
from joulie.cluster.port import NODE_TWINS, NODES, PODS, ClusterError, Synced
from joulie.cluster.watch.backoff import Backoff
from joulie.cluster.watch.list_watch import Scope
from tests.cluster.clusters import hasty
from tests.cluster.watching import Notes, run, watch

NODE = {"metadata": {"name": "a", "labels": {"x": "y"}}, "status": {"capacity": {"cpu": "8"}}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_a_merge_patch_follows_the_standard(target: Any, patch: Any) -> None:
    def standard(target: Any, patch: Any) -> Any:  # RFC 7386, section 2, word for word
        if isinstance(patch, dict):
            if not isinstance(target, dict):
                target = {}
            for name, value in patch.items():
                if value is None:
                    if name in target:
                        del target[name]
                else:
                    target[name] = standard(target.get(name), value)
            return target
        return patch

    before = json.encode(target)
    merged = write_rules.merged(target, patch)
    assert json.encode(target) == before
    assert merged == standard(json.decode(before), json.decode(json.encode(patch)))


def test_put_writes_what_no_other_verb_could() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster()
        cluster.put(NODE_TWINS, {"metadata": {"name": "a"}, "spec": {"profile": "turbo"}, "status": {"x": 1}})
        assert json.decode(await cluster.get(NODE_TWINS, "a"))["status"] == {"x": 1}
        stamp = "2026-11-01T12:00:00Z"
        pod = {"metadata": {"name": "p", "namespace": "n", "deletionTimestamp": stamp}, "status": {"phase": "Failed"}}
        cluster.put(PODS, pod)
        after = json.decode(await cluster.patch(PODS, "p", {"metadata": {"labels": {"x": "y"}}}, namespace="n"))
        assert after["metadata"]["deletionTimestamp"] == stamp
        assert after["status"] == {"phase": "Failed"}
        cluster.put(PODS, pod | {"status": {"phase": "Running"}})
        assert json.decode(await cluster.get(PODS, "p", namespace="n"))["status"] == {"phase": "Running"}

    run(scenario())


def test_calls_fail_on_demand_and_only_those() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster()
        cluster.put(NODES, NODE)
        cluster.fail_next(2, verb="patch", resource=NODES, status=429, retry_after_s=3)
        assert await cluster.get(NODES, "a")
        for _ in range(2):
            with pytest.raises(ClusterError) as caught:
                await cluster.patch(NODES, "a", {"metadata": {"labels": {"x": "z"}}})
            assert (caught.value.status, caught.value.retry_after_s) == (429, 3)
        assert await cluster.patch(NODES, "a", {"metadata": {"labels": {"x": "z"}}})
        assert cluster.calls == {("get", "nodes"): 1, ("patch", "nodes"): 3}

    run(scenario())


def test_an_answer_can_get_lost_after_the_write() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster()
        cluster.put(NODES, NODE)
        cluster.fail_next(verb="delete", status=0, applied=True)
        with pytest.raises(ClusterError):
            await cluster.delete(NODES, "a")
        with pytest.raises(ClusterError, match="not found"):
            await cluster.get(NODES, "a")

    run(scenario())


def test_a_call_can_hang() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster()
        cluster.put(NODES, NODE)
        cluster.hang_next(verb="get")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await cluster.get(NODES, "a")
        assert await cluster.get(NODES, "a")

    run(scenario())


def test_one_client_can_be_cut_off_while_another_works() -> None:
    async def scenario() -> None:
        server = MemoryServer()
        one, other = MemoryCluster(server, backoff=hasty), MemoryCluster(server)
        async with watch(one, NODES) as reader:
            await reader.synced()
            one.cut_off()
            with pytest.raises(ClusterError):
                await one.get(NODES, "a")
            await other.create(NODES, NODE)
            await asyncio.sleep(0.05)
            assert not reader.objects
            one.reconnect()
            await reader.until(lambda: "a" in reader.objects)
            assert reader.lists == 1  # resumed, not listed

    run(scenario())


def test_a_watch_too_far_behind_expires() -> None:
    async def scenario() -> None:
        server, notes = MemoryServer(history=3), Notes()
        one, other = MemoryCluster(server, backoff=hasty, observer=notes), MemoryCluster(server)
        async with watch(one, NODES) as reader:
            await reader.synced()
            one.cut_off()
            for name in "abcd":
                await other.create(NODES, {"metadata": {"name": name}})
            one.reconnect()
            await reader.synced(2)
            assert sorted(reader.objects) == list("abcd")
            assert any("too old" in reason for reason, _ in notes.failures)

    run(scenario())


def test_bookmarks_bring_a_quiet_watch_up_to_date() -> None:
    async def scenario() -> None:
        server, notes = MemoryServer(history=2), Notes()
        cluster = MemoryCluster(server, backoff=hasty, observer=notes)
        async with watch(cluster, NODES) as reader:
            await reader.synced()
            for name in "abcd":
                await cluster.create(NODE_TWINS, {"metadata": {"name": name}})
            server.send_bookmarks()
            await asyncio.sleep(0.02)
            cluster.cut_watches()
            await cluster.create(NODES, NODE)
            await reader.until(lambda: "a" in reader.objects)
            assert reader.lists == 1

    run(scenario())


def test_a_finalizer_holds_an_object_until_it_is_taken_away() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster()
        await cluster.create(NODES, {"metadata": {"name": "a", "finalizers": ["x/y"]}})
        await cluster.delete(NODES, "a")
        assert "deletionTimestamp" in json.decode(await cluster.get(NODES, "a"))["metadata"]
        await cluster.patch(NODES, "a", {"metadata": {"finalizers": None}})
        with pytest.raises(ClusterError):
            await cluster.get(NODES, "a")

    run(scenario())


@pytest.mark.parametrize(
    ("field_selector", "matches"),
    [
        ("spec.nodeName=n", True),
        ("spec.nodeName==n", True),
        ("spec.nodeName!=n", False),
        ("spec.nodeName=", False),
        ("status.phase!=Failed,metadata.namespace = d", True),
        ("metadata.name=other", False),
    ],
)
def test_field_selectors(field_selector: str, matches: bool) -> None:
    pod = {"metadata": {"name": "p", "namespace": "d"}, "spec": {"nodeName": "n"}}
    assert matcher(Scope(PODS, "", field_selector))(pod) is matches


def test_cost_grows_no_faster_than_the_number_of_nodes() -> None:
    async def scenario(nodes: int) -> float:
        cluster = MemoryCluster(backoff=lambda: Backoff(0.01, 0.1))
        began_s = time.process_time()
        for number in range(nodes):
            cluster.put(NODES, {"metadata": {"name": f"n{number}"}, "status": {"capacity": {"cpu": "8"}}})
        async with watch(cluster, NODES) as reader:
            await reader.synced()
            assert reader.told[-1] == Synced(nodes)
            label = {"metadata": {"labels": {"joulie.io/power-profile": "eco"}}}
            await asyncio.gather(*(cluster.patch(NODES, f"n{number}", label) for number in range(nodes)))
            await reader.until(lambda: len(reader.told) == 2 * nodes + 1)
        return time.process_time() - began_s

    few_s, many_s = (min(run(scenario(nodes)) for _ in range(2)) for nodes in (600, 4_800))
    assert many_s < 4 * 8 * few_s  # eight times as many; were it quadratic, 64 times

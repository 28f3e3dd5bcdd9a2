"""The watch through everything that a network and a server can do to it."""

from __future__ import annotations

import asyncio

import pytest

from joulie.cluster.api.cluster import KubernetesCluster
from joulie.cluster.api.credentials import Credentials
from joulie.cluster.memory.cluster import MemoryCluster, MemoryServer
from joulie.cluster.port import NODES, Deleted, Synced
from joulie.cluster.watch.backoff import Backoff
from joulie.cluster.watch.log import ContactLog
from joulie.cluster.watch.observer import ContactClock
from tests.cluster.fault_server import (
    CUT,
    HANG,
    FaultServer,
    Step,
    bookmark,
    error,
    event,
    node,
    page,
    raw,
    refusal,
    serving,
    silence,
    stream,
)
from tests.cluster.watch.watched_server import IDLE_S, scene
from tests.cluster.watching import Notes, plain, run, watch

# Lists


def test_an_empty_list_may_come_as_null() -> None:
    async def scenario() -> None:
        async with scene(lists=[page(null=True)], watches=[]) as s:
            await s.reader.synced()
            assert s.reader.told == [Synced(0)]

    run(scenario())


def test_pages_are_asked_for_until_there_are_no_more() -> None:
    async def scenario() -> None:
        pages = [page(node("a", 1), node("b", 2), version=9, more="x+/="), page(node("c", 3), version=9)]
        async with scene(lists=pages, watches=[]) as s:
            await s.reader.synced()
            assert s.reader.sizes == [2, 2]
            assert [query.get("continue") for query in s.server.list_queries] == [None, "x+/="]
            assert {query["limit"] for query in s.server.list_queries} == {"500"}
            assert all("resourceVersion" not in query for query in s.server.list_queries)
            await s.reader.until(lambda: s.versions == ["9"])

    run(scenario())


def test_a_list_that_expires_half_way_starts_anew_and_takes_nothing_for_gone() -> None:
    async def scenario() -> None:
        lists = [page(node("a", 1), more="x"), refusal(410), page(node("a", 1), more="y"), page(node("b", 2))]
        async with scene(lists=lists, watches=[]) as s:
            await s.reader.synced()
            assert sorted(s.reader.objects) == ["a", "b"]
            assert [type(change).__name__ for change in s.reader.told] == ["Upserted", "Upserted", "Synced"]
            assert [query.get("continue") for query in s.server.list_queries] == [None, "x", None, "y"]

    run(scenario())


@pytest.mark.parametrize(
    "fault",
    [refusal(500), refusal(503), raw(b"<html>502</html>", 502), raw(b"{nonsense"), raw(b"[]"), refusal(403)],
    ids=["500", "503", "proxy", "no JSON", "no list", "403"],
)
def test_a_list_that_fails_is_tried_again(fault: Step) -> None:
    async def scenario() -> None:
        async with scene(lists=[fault, fault, page(node("a", 1))], watches=[]) as s:
            await s.reader.synced()
            assert set(s.reader.objects) == {"a"}
            assert len(s.notes.failures) == 2

    run(scenario())


def test_a_server_that_asks_for_patience_gets_it() -> None:
    async def scenario() -> None:
        async with scene(lists=[refusal(429, "slow down", Retry_After="1"), page()], watches=[]) as s:
            began_s = asyncio.get_running_loop().time()
            await s.reader.synced()
            assert asyncio.get_running_loop().time() - began_s >= 1.0
            reason, wait_s = s.notes.failures[0]
            assert "slow down" in reason
            assert wait_s > 1.0

    run(scenario())


def test_a_list_without_an_answer_ends_and_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("joulie.cluster.api.cluster.LIST_TIMEOUT_S", 0.2)

    async def scenario() -> None:
        async with scene(lists=[silence(), page(node("a", 1))], watches=[]) as s:
            await s.reader.synced()
            assert "no answer within 0.2 s" in s.notes.failures[0][0]

    run(scenario())


def test_a_server_that_is_not_there_yet_is_waited_for() -> None:
    async def scenario() -> None:
        async with serving(FaultServer()) as gone:
            port = int(gone.url.rpartition(":")[2])
        notes = Notes()
        cluster = KubernetesCluster(Credentials(gone.url), observer=notes, backoff=lambda: Backoff(0.01, 0.05))
        async with watch(cluster, NODES) as reader:
            await reader.until(lambda: len(notes.failures) >= 2)
            async with serving(FaultServer([page(node("a", 1))]), port):
                await reader.synced()
                await cluster.close()
        assert notes.contacts >= 1

    run(scenario())


def test_a_kind_that_the_cluster_does_not_have_is_said_with_the_next_step() -> None:
    async def scenario() -> None:
        async with scene(lists=[raw(b"404 page not found\n", 404), page()], watches=[]) as s:
            await s.reader.synced()
            reason, _ = s.notes.failures[0]
            assert "404 Not Found; the cluster has no kind Node: joulie crds | kubectl apply -f -" in reason

    run(scenario())


# Watches


def test_a_watch_asks_for_bookmarks_and_a_time_of_its_own() -> None:
    async def scenario() -> None:
        async with scene(lists=[page(version=42)], watches=[]) as s:
            await s.reader.until(lambda: bool(s.versions))
            query = s.server.watch_queries[0]
            assert query["allowWatchBookmarks"] == "true"
            assert query["resourceVersion"] == "42"
            assert 300 <= int(query["timeoutSeconds"]) <= 600

    run(scenario())


def test_a_watch_resumes_after_the_last_event_or_bookmark_without_listing() -> None:
    async def scenario() -> None:
        watches = [
            stream(event("ADDED", "a", 11)),
            stream(event("MODIFIED", "a", 12), bookmark(77)),
            stream(event("DELETED", "a", 80), then=CUT),
        ]
        async with scene(lists=[page()], watches=watches) as s:
            await s.reader.until(lambda: len(s.versions) == 4)
            assert s.versions == ["10", "11", "77", "80"]
            assert s.reader.lists == 1
            assert s.reader.told[-1] == Deleted("a")
            assert len(s.server.list_queries) == 1

    run(scenario())


def test_events_that_arrive_together_come_together() -> None:
    async def scenario() -> None:
        many = b"".join(event("ADDED", f"n{number}", 11 + number) for number in range(200))
        async with scene(lists=[page()], watches=[stream(many, then=HANG)]) as s:
            await s.reader.until(lambda: len(s.reader.objects) == 200)
            assert len(s.reader.sizes) <= 3

    run(scenario())


def test_lines_may_be_cut_anywhere() -> None:
    async def scenario() -> None:
        text = event("ADDED", "a", 11, note="ä€😀") + b"\r\n" + event("ADDED", "b", 12) + bookmark(20)
        pieces = [text[position : position + 1] for position in range(len(text))]
        async with scene(lists=[page()], watches=[stream(*pieces)]) as s:
            await s.reader.until(lambda: "20" in s.versions)
            assert s.reader.objects["a"]["note"] == "ä€😀"
            assert set(s.reader.objects) == {"a", "b"}

    run(scenario())


def test_a_line_that_breaks_off_is_heard_again_in_full() -> None:
    async def scenario() -> None:
        whole = event("ADDED", "b", 12)
        watches = [stream(event("ADDED", "a", 11), whole[:40], then=CUT), stream(whole, then=HANG)]
        async with scene(lists=[page()], watches=watches) as s:
            await s.reader.until(lambda: "b" in s.reader.objects)
            assert s.versions == ["10", "11"]
            assert s.reader.lists == 1

    run(scenario())


def test_an_object_may_be_huge() -> None:
    async def scenario() -> None:
        big = event("ADDED", "a", 11, note="x" * 8_000_000)
        async with scene(lists=[page()], watches=[stream(big, event("ADDED", "b", 12), then=HANG)]) as s:
            await s.reader.until(lambda: "b" in s.reader.objects)
            assert len(str(s.reader.objects["a"]["note"])) == 8_000_000

    run(scenario())


@pytest.mark.parametrize("expiry", [refusal(410, "too old"), stream(error(410, "too old"), then=HANG)])
def test_an_expired_version_leads_to_a_new_list_and_only_differences(expiry: Step) -> None:
    async def scenario() -> None:
        before = page(node("kept", 1), node("changed", 2), node("gone", 3))
        after = page(node("kept", 1), node("changed", 20), node("new", 21), version=30)
        async with scene(lists=[before, after], watches=[expiry]) as s:
            await s.reader.synced(2)
            assert [getattr(change, "key", "") for change in s.reader.told[4:]] == ["changed", "new", "gone", ""]
            assert s.reader.told[-2:] == [Deleted("gone"), Synced(3)]
            assert "too old" in s.notes.failures[0][0]
            await s.reader.until(lambda: s.versions == ["10", "30"])

    run(scenario())


def test_events_before_the_expiry_are_told() -> None:
    async def scenario() -> None:
        together = event("ADDED", "a", 11) + error(410)
        async with scene(lists=[page(), page(node("a", 11), version=30)], watches=[stream(together)]) as s:
            await s.reader.synced(2)
            assert [type(change).__name__ for change in s.reader.told] == ["Synced", "Upserted", "Synced"]

    run(scenario())


@pytest.mark.parametrize(
    "fault", [stream(error(500)), stream(error(429)), refusal(500), refusal(503), refusal(401), stream(then=CUT)]
)
def test_a_watch_that_fails_is_resumed_without_listing(fault: Step) -> None:
    async def scenario() -> None:
        watches = [fault, fault, stream(event("ADDED", "a", 11), then=HANG)]
        async with scene(lists=[page()], watches=watches) as s:
            await s.reader.until(lambda: "a" in s.reader.objects)
            assert s.versions == ["10", "10", "10"]
            assert len(s.server.list_queries) == 1
            assert len(s.notes.failures) == 2

    run(scenario())


@pytest.mark.parametrize("line", [b"garbage\n", b'{"type":"ADDED"}\n', b'{"type":"ADDED","object":{"metadata":{}}}\n'])
def test_a_line_that_cannot_be_read_leads_to_a_new_list(line: bytes) -> None:
    async def scenario() -> None:
        watches = [stream(event("ADDED", "a", 11), line, then=HANG)]
        async with scene(lists=[page(), page(node("a", 11), node("b", 12), version=30)], watches=watches) as s:
            await s.reader.synced(2)
            assert set(s.reader.objects) == {"a", "b"}

    run(scenario())


def test_a_connection_that_hangs_without_closing_is_noticed() -> None:
    async def scenario() -> None:
        watches = [stream(event("ADDED", "a", 11), then=HANG), stream(event("ADDED", "b", 12), then=HANG)]
        async with scene(lists=[page()], watches=watches) as s:
            began_s = asyncio.get_running_loop().time()
            await s.reader.until(lambda: "b" in s.reader.objects)
            assert asyncio.get_running_loop().time() - began_s >= IDLE_S
            assert s.versions == ["10", "11"]
            assert f"no answer within {IDLE_S} s" in s.notes.failures[0][0]

    run(scenario())


def test_a_watch_that_is_never_answered_is_given_up() -> None:
    async def scenario() -> None:
        async with scene(lists=[page()], watches=[silence(), stream(event("ADDED", "a", 11))], timeout_s=0.3) as s:
            await s.reader.until(lambda: "a" in s.reader.objects)
            assert "no answer within 0.3 s" in s.notes.failures[0][0]

    run(scenario())


def test_bookmarks_alone_keep_a_watch_alive_and_count_as_contact() -> None:
    async def scenario() -> None:
        marks = [bookmark(20 + number) for number in range(8)]
        async with scene(lists=[page()], watches=[stream(*marks, then=CUT, gap_s=IDLE_S / 4)]) as s:
            await s.reader.until(lambda: len(s.versions) == 2)
            assert s.versions == ["10", "27"]
            assert s.notes.contacts >= 2 + 8
            assert len(s.notes.failures) == 1  # the cut at the end

    run(scenario())


def test_a_server_that_ends_every_watch_at_once_is_not_hammered() -> None:
    async def scenario() -> None:
        notes = Notes()
        async with serving(FaultServer([page()], [stream()] * 1000)) as server:
            cluster = KubernetesCluster(Credentials(server.url), observer=notes)
            async with watch(cluster, NODES):
                await asyncio.sleep(1.5)
                await cluster.close()
            assert len(server.watch_queries) <= 5
            assert notes.reconnects

    run(scenario())


def test_a_watch_that_is_closed_hangs_up() -> None:
    async def scenario() -> None:
        async with serving(FaultServer([page(node("a", 1))])) as server:
            cluster = KubernetesCluster(Credentials(server.url))
            batches = cluster.watch(NODES, plain)
            assert len(await anext(batches)) == 2
            waiting = asyncio.ensure_future(anext(batches))
            while not server.watch_queries:
                await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await batches.aclose()
            await cluster.close()

    run(scenario())


def test_the_contact_clock_tells_how_long_ago_the_server_spoke() -> None:
    now_s = 100.0
    clock = ContactClock(lambda: now_s)
    assert clock.age_s() is None
    clock.contact(NODES)
    now_s = 130.0
    assert clock.age_s() == 30.0
    assert clock.age_s(NODES) == 30.0
    assert clock.age_s(NODES._replace(plural="pods")) is None


def test_a_watch_is_alive_by_what_it_delivers_and_not_by_what_other_calls_are_answered() -> None:
    async def scenario() -> None:
        contact = ContactLog("test")
        server = MemoryServer()
        cluster = MemoryCluster(server, observer=contact, bookmark_interval_s=0.02)
        assert contact.clock.watch_age_s(NODES) is None
        await cluster.create(NODES, {"metadata": {"name": "a"}})
        assert contact.clock.age_s(NODES) is not None
        assert contact.clock.watch_age_s(NODES) is None
        async with watch(cluster, NODES) as reader:
            await reader.synced()
            assert contact.clock.watch_age_s(NODES) is not None
        await cluster.close()

    run(scenario())

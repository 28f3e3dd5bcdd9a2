"""What is news, how long to wait, where a line ends: the reflector's pure parts, for any input."""

from __future__ import annotations

import time
from collections.abc import Callable
from json import loads
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, json

from joulie.cluster.api.cluster import read_page
from joulie.cluster.api.watch_lines import LineSplitter
from joulie.cluster.decoding.decoders import decode_node
from joulie.cluster.port import Change, Deleted, Synced, Undecodable, Upserted
from joulie.cluster.watch.backoff import Backoff
from joulie.cluster.watch.deltas import DeltaTracker
from joulie.cluster.watch.list_watch import Event

NAMES = st.sampled_from(["a", "b", "c", "d"])


def raw(name: str, version: int, **more: Any) -> Raw:
    return Raw(json.encode({"metadata": {"name": name, "resourceVersion": str(version)}, **more}))


@given(st.lists(st.one_of(st.tuples(NAMES, st.booleans()), st.just(None)), max_size=40), st.randoms())
def test_a_reader_that_follows_the_changes_has_the_servers_objects(steps: list[Any], chance: Any) -> None:
    """Objects come, change and go; at any time the connection is lost for a while, and a list closes the gap."""
    deltas: DeltaTracker[dict[str, Any]] = DeltaTracker(json.decode)
    server: dict[str, int] = {}
    known: dict[str, int] = {}
    clock = 0
    unheard = False

    def follow(changes: list[Change[dict[str, Any]]]) -> None:
        for change in changes:
            match change:
                case Upserted(key, object_):
                    version = int(object_["metadata"]["resourceVersion"])
                    assert known.get(key) != version, "told twice"
                    known[key] = version
                case Deleted(key):
                    del known[key]
                case Synced(total):
                    assert total == len(server)

    for step in steps:
        clock += 1
        if step is None:
            deltas.begin_list()
            items = [raw(name, version) for name, version in server.items()]
            cut = chance.randint(0, len(items))
            follow(deltas.take_page(items[:cut]))
            if chance.random() < 0.3:  # breaks off
                unheard = True
                continue
            follow(deltas.take_page(items[cut:]))
            follow(deltas.end_list())
            unheard = False
            assert known == server
            continue
        name, upsert = step
        if upsert:
            kind = "MODIFIED" if name in server else "ADDED"
            server[name] = clock
        elif name in server:
            kind = "DELETED"
            del server[name]
        else:
            continue
        unheard = unheard or chance.random() < 0.2
        if not unheard:
            heard = deltas.take_events([Event(kind, raw(name, clock))])
            assert heard.version == str(clock)
            follow(heard.changes)


def test_an_item_without_metadata_costs_that_item() -> None:
    deltas: DeltaTracker[Any] = DeltaTracker(json.decode)
    deltas.begin_list()
    changes = deltas.take_page([Raw(b"{}"), raw("a", 1)])
    assert [type(change) for change in changes] == [Undecodable, Upserted]
    assert deltas.end_list() == [Synced(1)]


def test_a_broken_object_is_told_once_a_version() -> None:
    def refuse(data: bytes) -> None:
        raise ValueError("spec: bad")

    deltas = DeltaTracker(refuse)
    for expected in ([Undecodable("a", "spec: bad")], []):
        deltas.begin_list()
        assert deltas.take_page([raw("a", 1)]) == expected
        deltas.end_list()
    assert deltas.take_events([Event("MODIFIED", raw("a", 2))]).changes == [Undecodable("a", "spec: bad")]
    assert deltas.take_events([Event("DELETED", raw("a", 3))]).changes == [Deleted("a")]


@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=10), st.randoms())
def test_lines_are_the_same_however_the_network_cuts_them(lines: list[bytes], chance: Any) -> None:
    text = b"".join(line + b"\n" for line in lines) + b"unfinished"
    splitter, found = LineSplitter(), []
    position = 0
    while position < len(text):
        size = chance.randint(1, 7)
        found += splitter.feed(text[position : position + size])
        position += size
    assert found == [line for line in lines if line.strip()]


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=30))
def test_waits_grow_to_a_cap_and_differ(chances: list[float]) -> None:
    rolls = iter(chances)
    backoff = Backoff(0.25, 20.0, random_share=lambda: next(rolls))
    for number in range(len(chances)):
        base_s = min(20.0, 0.25 * 2**number)
        assert base_s / 2 <= backoff.next_s() <= base_s


def test_what_the_server_asks_for_is_a_minimum_but_not_any_nonsense() -> None:
    backoff = Backoff(0.25, 20.0, random_share=lambda: 0.0)
    assert 7.0 < backoff.next_s(7.0) < 8.0
    assert backoff.next_s(1e9) < 301.0
    for _ in range(10):
        backoff.next_s()
    assert backoff.next_s(0.1) == 10.0
    backoff.reset()
    assert backoff.next_s() == 0.125


def test_reading_a_page_costs_less_than_parsing_it() -> None:
    images = [{"names": [f"image-{number}@sha256:{'0' * 64}"], "sizeBytes": 123_456_789} for number in range(40)]
    labels = {f"example.com/label-{number}": f"value-{number}" for number in range(25)}
    nodes = [
        {
            "metadata": {"name": f"n{number}", "resourceVersion": str(number), "labels": labels},
            "status": {"capacity": {"cpu": "64", "nvidia.com/gpu": "8"}, "images": images},
        }
        for number in range(500)
    ]
    data = json.encode({"metadata": {"resourceVersion": "1"}, "items": nodes})
    assert len(data) > 500 * 5_000

    def read() -> None:
        deltas = DeltaTracker(decode_node)
        deltas.begin_list()
        assert len(deltas.take_page(read_page(data).items)) == 500

    assert fastest_s(read) < 1.0 * fastest_s(lambda: loads(data))


def fastest_s(work: Callable[[], object], times: int = 5) -> float:
    def once_s() -> float:
        began_s = time.process_time()
        work()
        return time.process_time() - began_s

    return min(once_s() for _ in range(times))

"""Answers to writes and the watch tell of the same objects, in any order: what is known never goes back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from joulie.cluster.decoding.decoders import DECODERS
from joulie.cluster.port import NODE_TWINS, NODES, Deleted, Resource, Undecodable
from joulie.cluster.watch.deltas import DeltaTracker
from joulie.cluster.watch.list_watch import Event
from joulie.operator.state import ClusterState


def _twin(version: int, profile: str) -> bytes:
    return _object("NodeTwin", version, spec={"nodeName": "a", "profile": profile})


def _node(version: int, **labels: str) -> bytes:
    return _object("Node", version, labels=labels)


def _object(kind: str, version: int, labels: dict[str, str] | None = None, **parts: Any) -> bytes:
    metadata = {"name": "a", "resourceVersion": str(version), "labels": labels or {}}
    return msgspec.json.encode({"kind": kind, "metadata": metadata, **parts})


class Watched:
    """A state that hears of objects as through a watch."""

    def __init__(self) -> None:
        self.state = ClusterState(lambda *_: None)
        self._ledgers: dict[Resource, DeltaTracker[Any]] = {
            kind: DeltaTracker(DECODERS[kind]) for kind in (NODES, NODE_TWINS)
        }

    def hears(self, resource: Resource, body: bytes, type_: str = "MODIFIED") -> None:
        events = [Event(type_, msgspec.Raw(body))]
        self.state.take(resource, self._ledgers[resource].take_events(events).changes)

    @property
    def profile(self) -> str | None:
        spec = self.state.twins["a"].spec
        return None if spec is None else spec.profile


def test_what_the_watch_tells_late_does_not_undo_an_answer() -> None:
    watched = Watched()
    watched.state.written(NODE_TWINS, "a", _twin(5, "performance"))
    watched.state.written(NODE_TWINS, "a", _twin(8, "eco"))
    watched.hears(NODE_TWINS, _twin(5, "performance"), "ADDED")
    assert watched.profile == "eco"
    watched.hears(NODE_TWINS, _twin(8, "eco"))
    watched.hears(NODE_TWINS, _twin(9, "performance"))
    assert watched.profile == "performance"


def test_an_answer_that_the_watch_has_overtaken_is_left_out() -> None:
    watched = Watched()
    watched.hears(NODE_TWINS, _twin(9, "performance"), "ADDED")
    watched.state.written(NODE_TWINS, "a", _twin(8, "eco"))
    assert watched.profile == "performance"


def test_an_answer_counts_although_the_watch_spoke_of_something_older_meanwhile() -> None:
    watched = Watched()
    watched.hears(NODES, _node(3), "ADDED")
    watched.hears(NODES, _node(4, other="changed"))
    watched.state.written(NODES, "a", _node(5, other="changed", ours="yes"))
    assert watched.state.nodes["a"].labels == {"other": "changed", "ours": "yes"}


def test_a_node_that_the_watch_does_not_know_is_on_its_way_out() -> None:
    watched = Watched()
    watched.state.written(NODES, "a", _node(5))
    assert watched.state.nodes == {}


def test_a_server_that_was_restored_from_a_backup_is_believed() -> None:
    watched = Watched()
    watched.hears(NODE_TWINS, _twin(900, "eco"), "ADDED")
    watched.hears(NODE_TWINS, _twin(30, "performance"))  # its versions begin at an earlier one again
    assert watched.profile == "performance"


@pytest.mark.parametrize("ending", [Deleted("a"), Undecodable("a", "spec: nonsense")], ids=["deleted", "broken"])
def test_what_is_gone_may_come_back_with_any_version(ending: Deleted | Undecodable) -> None:
    watched = Watched()
    watched.state.written(NODE_TWINS, "a", _twin(8, "eco"))
    watched.state.take(NODE_TWINS, [ending])
    assert watched.state.twins == {}
    watched.hears(NODE_TWINS, _twin(2, "performance"), "ADDED")
    assert watched.profile == "performance"


def test_an_answer_that_cannot_be_read_makes_the_object_a_broken_one() -> None:
    watched = Watched()
    watched.state.written(NODE_TWINS, "a", _object("NodeTwin", 8, spec=["nonsense"]))
    assert watched.state.twins == {}
    assert list(watched.state.undecodable.reasons) == [("NodeTwin", "a")]

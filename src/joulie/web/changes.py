"""What changed in the last hour, found by comparing what was seen with what is seen."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from msgspec import Struct

from joulie.model.snapshot import Pin
from joulie.overview.findings import Finding
from joulie.overview.nodes import NodeOverview
from joulie.overview.summary import ClusterView

KEPT_S = 3600.0
MOST = 500  # lines kept
TOGETHER = 8  # more alike at one moment are one line
LASTING_S = 60.0  # what needs attention for less is no news: a new cap takes an agent a moment

Kind = Literal["state", "pin", "attention", "node", "leader", "note"]
Why = Callable[[str], str]  # the reason for a node's state, if known


class Change(Struct, frozen=True, rename="camel"):
    """One line of the story. `before` and `after` are states, where a state changed."""

    number: int
    at_s: float
    kind: Kind
    node: str  # "": the cluster, or many nodes
    text: str
    before: str = ""
    after: str = ""
    good: bool | None = None  # attention: whether it was resolved


class _Event(Struct, frozen=True):
    kind: Kind
    node: str
    text: str
    before: str = ""
    after: str = ""
    good: bool | None = None


class ChangeLog:
    """Bounded in time and number. The first look is where the story starts, and tells nothing."""

    def __init__(self) -> None:
        self._lines: deque[Change] = deque(maxlen=MOST)
        self._views: Mapping[str, NodeOverview] | None = None
        self._pins: Mapping[str, Pin] = {}
        self._attention = _Attention()
        self._leader = ""
        self._notes: tuple[str, ...] = ()
        self._number = 0

    def lines(self, most: int) -> list[Change]:
        """Newest first."""
        newest = list(self._lines)[-most:]
        return newest[::-1]

    def compare(
        self, views: Mapping[str, NodeOverview], pins: Mapping[str, Pin], cluster: ClusterView, why: Why
    ) -> list[Change]:
        """The new lines, oldest first; what is compared with next is kept."""
        events: list[_Event] = []
        if self._views is not None:
            events += _joined_and_left(self._views, views)
            events += _states(self._views, views, why)
            events += _pins(self._pins, pins)
        events += self._attention.compare(cluster.attention, cluster.now_s)
        events += _leader(self._leader, cluster.facts.leader, started=self._views is None)
        events += [_Event("note", "", note) for note in cluster.facts.notes if note not in self._notes]
        self._views, self._pins = dict(views), dict(pins)
        self._leader, self._notes = cluster.facts.leader, cluster.facts.notes
        fresh = [self._line(event, cluster.now_s) for event in _gathered(events)]
        self._lines.extend(fresh)
        while self._lines and self._lines[0].at_s < cluster.now_s - KEPT_S:
            self._lines.popleft()
        return fresh

    def _line(self, event: _Event, now_s: float) -> Change:
        self._number += 1
        return Change(self._number, now_s, event.kind, event.node, event.text, event.before, event.after, event.good)


def _joined_and_left(before: Mapping[str, NodeOverview], after: Mapping[str, NodeOverview]) -> Iterable[_Event]:
    yield from (_Event("node", name, "joined the cluster") for name in sorted(after.keys() - before.keys()))
    yield from (_Event("node", name, "left the cluster") for name in sorted(before.keys() - after.keys()))


def _states(before: Mapping[str, NodeOverview], after: Mapping[str, NodeOverview], why: Why) -> Iterable[_Event]:
    for name, view in after.items():
        old = before.get(name)
        if old is not None and old.has_twin and old.state != view.state:  # first contact is no change
            yield _Event("state", name, why(name), old.state, view.state)


def _pins(before: Mapping[str, Pin], after: Mapping[str, Pin]) -> Iterable[_Event]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if new is not None and (old is None or (old.profile, old.name) != (new.profile, new.name)):
            yield _Event("pin", name, f"pinned to {new.profile} by NodePowerProfile/{new.name}")
        elif new is None and old is not None:
            yield _Event("pin", name, f"no longer pinned to {old.profile}")


class _Attention:
    """Which findings last, so that they are told once when they have lasted, and once when they are over."""

    def __init__(self) -> None:
        self._since_s: dict[tuple[str, str], float] = {}
        self._told: dict[tuple[str, str], str] = {}  # with the words that were used

    def compare(self, found: Iterable[Finding], now_s: float) -> Iterable[_Event]:
        """By node and kind: the words may change, as ages grow."""
        lasting = {(one.node, one.kind): one for one in found}
        self._since_s = {key: self._since_s.get(key, now_s) for key in lasting}
        for key, since_s in self._since_s.items():
            if key not in self._told and not 0 <= now_s - since_s < LASTING_S:
                self._told[key] = lasting[key].text
                yield _Event("attention", lasting[key].node, lasting[key].text, good=False)
        for key in sorted(self._told.keys() - lasting.keys()):
            yield _Event("attention", key[0], f"resolved: {self._told.pop(key)}", good=True)


def _leader(before: str, after: str, *, started: bool) -> Iterable[_Event]:
    if before != after and not started:
        yield _Event("leader", "", f"{after} leads" if after else "no leader")


def _gathered(events: Iterable[_Event]) -> Iterable[_Event]:
    """A thousand nodes that do the same at one moment are one line."""
    groups: dict[tuple[str, ...], list[_Event]] = {}
    for event in events:
        same = (event.kind, event.before, event.after, str(event.good), "" if event.node else event.text)
        groups.setdefault(same, []).append(event)
    for group in groups.values():
        if len(group) <= TOGETHER:
            yield from group
            continue
        first = group[0]
        names = ", ".join(event.node for event in group[:3])
        text = first.text if first.kind != "state" else ""
        said = f"{len(group):,} nodes: {names}, …" + (f" ({text})" if text else "")
        yield _Event(first.kind, "", said, first.before, first.after, first.good)

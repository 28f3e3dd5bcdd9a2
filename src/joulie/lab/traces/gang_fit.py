"""Whether all pods of a gang can stand on the empty cluster at once, where they are not alike.

No gang is refused that could stand: sums and counts are bounds, and a search that was cut short proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from joulie.lab.model.shapes import MILLI
from joulie.lab.traces.room import Room

MAX_SEARCHED = 64  # pods of a gang that a search is made for
TRIES, ALL_TRIES = 2_000, 50_000  # for one gang, for all: then it is let pass
MAX_PAIRED = 32


class AlikePods(NamedTuple):
    """Pods of a gang that are alike."""

    mcores: int
    gpus: int
    on: frozenset[int]  # kinds of nodes that can hold one
    pods: int


class Reason(NamedTuple):
    """Why a gang cannot stand, and which of its parts (places in what was asked) are too much."""

    parts: list[int]
    by_gpus: bool  # else by cores
    words: str


def size_words(cores: float, gpus: int) -> str:
    return f"{cores:g} cores, {gpus} GPU{'s' * (gpus != 1)}" if gpus else f"{cores:g} cores"


class Together:
    """Gangs on an empty cluster."""

    def __init__(self, room: Room) -> None:
        self._nodes = room.nodes
        self._left = ALL_TRIES

    def reason(self, asked: Sequence[AlikePods]) -> Reason | None:
        """None: they can stand, or it is not known."""
        return self._sums(asked) or self._counts(asked) or self._search(asked)

    def _sums(self, asked: Sequence[AlikePods]) -> Reason | None:
        """Boards and cores that are asked for, against all that those nodes have which may hold the pods."""
        each = {one.on for one in asked}
        pairs = {one | other for one in each for other in each} if len(each) <= MAX_PAIRED else each
        for kinds in sorted({*pairs, frozenset[int]().union(*each)}, key=sorted):
            parts = [place for place, one in enumerate(asked) if one.on <= kinds]
            nodes = [self._nodes[kind] for kind in kinds]
            gpus = sum(asked[place].pods * asked[place].gpus for place in parts)
            has_gpus = sum(n.machines * n.gpus for n in nodes)
            if gpus > has_gpus:
                return Reason(
                    parts, True, f"asks for {gpus:,} GPUs, more than the {has_gpus:,} that these pods may use"
                )
            mcores = sum(asked[place].pods * asked[place].mcores for place in parts)
            has_mcores = sum(n.machines * n.mcores for n in nodes)
            if mcores > has_mcores:
                words = f"asks for {mcores / MILLI:,.12g} cores, more than the {has_mcores / MILLI:,.12g} that "
                return Reason(parts, False, words + "these pods may use")
        return None

    def _counts(self, asked: Sequence[AlikePods]) -> Reason | None:
        """Pods of at least some size, against how many of just that size there is room for."""
        by_boards = sorted(range(len(asked)), key=lambda place: (-asked[place].gpus, -asked[place].mcores))
        by_cores = sorted(range(len(asked)), key=lambda place: (-asked[place].mcores, -asked[place].gpus))
        for order in (by_boards, by_cores):
            mcores, gpus, on, pods = asked[order[0]]
            for place, larger in enumerate(order):
                one = asked[larger]
                mcores, gpus, on = min(mcores, one.mcores), min(gpus, one.gpus), on | one.on
                pods += one.pods if place else 0
                nodes = [self._nodes[kind] for kind in on]
                fit = sum(n.machines * n.holds(mcores / MILLI, gpus) for n in nodes)
                if pods > fit:
                    by_gpus = pods > sum(n.machines * n.holds(0, gpus) for n in nodes)
                    words = f"has {pods:,} pods of at least {size_words(mcores / MILLI, gpus)}"
                    more = f"{words}, more than the {fit:,} that the empty cluster holds"
                    return Reason(order[: place + 1], by_gpus, more)
        return None

    def _search(self, asked: Sequence[AlikePods]) -> Reason | None:
        """Every way to place them, the largest pod first, each on the fullest node that holds it."""
        pods = [one for one in sorted(asked, key=lambda a: (-a.gpus, -a.mcores)) for _ in range(one.pods)]
        if len(pods) > MAX_SEARCHED:
            return None
        empty = {(kind, n.mcores, n.gpus): n.machines for kind, n in enumerate(self._nodes)}
        ways, seen = [(0, empty)], set()
        for _ in range(min(TRIES, self._left)):
            if not ways:
                words = f"has {len(pods):,} pods that find no place all at once, in whatever order they are placed"
                return Reason(list(range(len(asked))), any(one.gpus for one in asked), words)
            self._left -= 1
            placed, free = ways.pop()
            if placed == len(pods):
                return None
            pod = pods[placed]
            for node in sorted(free, key=lambda node: (node[2], node[1]), reverse=True):
                kind, mcores, gpus = node
                if kind not in pod.on or mcores < pod.mcores or gpus < pod.gpus:
                    continue
                after = dict(free)
                after[node] -= 1
                if not after[node]:
                    del after[node]
                rest = (kind, mcores - pod.mcores, gpus - pod.gpus)
                after[rest] = after.get(rest, 0) + 1
                way = (placed + 1, frozenset(after.items()))
                if way not in seen:
                    seen.add(way)
                    ways.append((placed + 1, after))
        return None

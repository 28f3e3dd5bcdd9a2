"""Load from a file: comma-separated lines `time_s,node,cpu,gpu`, each valid from its time until the node's next one.

time_s,node,cpu,gpu
0,*,0.2,0
60,gpu-1,0.9,1.0
120,gpu-1,,        # an empty field: what the node's pods make

`*` is every node. Loads are from 0 to 1; `gpu` goes to all boards of the node. More columns are allowed:
`memory`, `io`, `feed`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from joulie.errors import InputError
from joulie.simulator.loads import NodeLoad

EVERY_NODE = "*"
_NEEDED = ("time_s", "node", "cpu", "gpu")
_MORE = ("memory", "io", "feed")


class LoadOverride(NamedTuple):
    """What a line says of a node; None: nothing."""

    cpu: float | None = None
    gpu: float | None = None
    memory: float | None = None
    io: float | None = None
    feed: float | None = None

    def over(self, load: NodeLoad, boards: int) -> NodeLoad:
        """The load with what is told in the place of what was there."""
        return NodeLoad(
            cpu=load.cpu if self.cpu is None else self.cpu,
            gpus=load.gpus if self.gpu is None else (self.gpu,) * boards,
            memory_intensity=load.memory_intensity if self.memory is None else self.memory,
            io_intensity=load.io_intensity if self.io is None else self.io,
            feed_intensity=load.feed_intensity if self.feed is None else self.feed,
        )


class Line(NamedTuple):
    """One line of a load file."""

    time_s: float
    node: str
    told: LoadOverride


NOTHING_TOLD = LoadOverride()


class LoadTimeline:
    """Lines in the order of their times, taken as time passes."""

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self._lines = sorted(lines, key=lambda line: line.time_s)
        self._next = 0
        self._of_all = NOTHING_TOLD
        self._of_node: dict[str, LoadOverride] = {}

    def advance(self, now_s: float) -> set[str]:
        """Takes everything up to a time; the nodes it is about, `*` among them for all."""
        changed = set()
        while self._next < len(self._lines) and self._lines[self._next].time_s <= now_s:
            line = self._lines[self._next]
            self._next += 1
            changed.add(line.node)
            if line.node == EVERY_NODE:
                self._of_all = line.told
                self._of_node.clear()
            else:
                self._of_node[line.node] = line.told
        return changed

    def told(self, node: str) -> LoadOverride:
        return self._of_node.get(node, self._of_all)


def parse_load_file(text: str, origin: str) -> LoadTimeline:
    """InputError names file, line and field."""
    rows = csv.reader(line.partition("#")[0] for line in text.splitlines())
    header: list[str] | None = None
    lines: list[Line] = []
    for number, row in enumerate(rows, start=1):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if header is None:
            header = _header(cells, f"{origin}:{number}")
            continue
        if len(cells) != len(header):
            raise InputError(f"{origin}:{number}: {len(cells)} fields, but the header names {len(header)}")
        lines.append(_line(dict(zip(header, cells, strict=True)), f"{origin}:{number}"))
    if header is None:
        raise InputError(f"{origin}: holds no header: {','.join(_NEEDED)}")
    return LoadTimeline(lines)


def _header(cells: list[str], place: str) -> list[str]:
    missing = [name for name in _NEEDED if name not in cells]
    unknown = [name for name in cells if name not in (*_NEEDED, *_MORE)]
    if missing or unknown or len(set(cells)) != len(cells):
        raise InputError(f"{place}: the header must be {','.join(_NEEDED)}, and may add {','.join(_MORE)}")
    return cells


def _line(cells: Mapping[str, str], place: str) -> Line:
    if not cells["node"]:
        raise InputError(f"{place}: node: missing")
    time_s = _number(cells["time_s"], f"{place}: time_s")
    if time_s < 0:
        raise InputError(f"{place}: time_s: {time_s:g} is before the start")
    return Line(
        time_s,
        cells["node"],
        LoadOverride(*(_share(cells.get(name, ""), f"{place}: {name}") for name in LoadOverride._fields)),
    )


def _share(text: str, place: str) -> float | None:
    if not text:
        return None
    value = _number(text, place)
    if not 0 <= value <= 1:
        raise InputError(f"{place}: {text} is not from 0 to 1")
    return value


def _number(text: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{place}: {text!a} is not a number")
    return value

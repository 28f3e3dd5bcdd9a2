"""Nodes in the chosen sort order, one line each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.console import Console
from rich.text import Text

from joulie.cli.style import QUIET, fixed, percent, state_cell, watts
from joulie.cli.tables import Cell, TableColumn, TextTable
from joulie.cli.views.overview import Overview
from joulie.cli.views.overview_text import header
from joulie.overview.colours import FAULT
from joulie.overview.findings import FindingThresholds, cap, enforced
from joulie.overview.nodes import NodeOverview

_COLUMNS = (
    TableColumn("node"),
    TableColumn("state"),
    TableColumn("power", right=True),
    TableColumn("allowed", right=True),
    TableColumn("headroom", right=True),
    TableColumn("heat", right=True),
    TableColumn("CPU cap", right=True),
    TableColumn("GPU cap", right=True, optional=True),
    TableColumn("enforced"),
    TableColumn("pods", right=True, optional=True),
    TableColumn("rack", optional=True),
    TableColumn("hardware", optional=True),
)
_ORDERS: dict[str, Callable[[NodeOverview], float]] = {
    "power": lambda node: -(node.power_w or 0.0),
    "headroom": lambda node: 1e9 if node.headroom is None else node.headroom,
    "heat": lambda node: -(node.cooling_stress or 0.0),
    "name": lambda node: 0.0,
}


def in_order(nodes: Iterable[NodeOverview], sort: str) -> list[NodeOverview]:
    """Managed nodes, ties sorted by name."""
    managed = [node for node in nodes if node.managed]
    return sorted(managed, key=lambda node: (_ORDERS[sort](node), node.name))


def print_once(console: Console, view: Overview, sort: str) -> None:
    for line in header(view.cluster):
        console.print(line, soft_wrap=True)
    console.print()
    node_table(in_order(view.nodes.values(), sort), view.cluster.now_s).print(console)


def frame(view: Overview, sort: str, width: int, height: int, heard_s: float) -> Text:
    """As many nodes as fit the terminal, with the keys at the bottom."""
    top = list(header(view.cluster))
    room = max(1, height - len(top) - 4)
    nodes = in_order(view.nodes.values(), sort)
    table = list(node_table(nodes[:room], view.cluster.now_s).lines(width))
    left = len(nodes) - room
    more = f" · {left:,} more nodes" if left > 0 else ""
    keys = Text(f"by {sort}{more} · updated {heard_s:.0f} s ago · p power, h headroom, t heat, n name, q quit", QUIET)
    lines = [*top, Text(), *table, Text(), keys]
    for line in lines:
        line.truncate(width)
    return Text("\n").join(lines)


def node_table(nodes: Sequence[NodeOverview], now_s: float) -> TextTable:
    table = TextTable(_COLUMNS)
    for node in nodes:
        table.add(_cells(node, now_s))
    return table


def _cells(node: NodeOverview, now_s: float) -> list[Cell]:
    held = enforced(node, now_s, FindingThresholds())
    name = f"{node.name} (pinned)" if node.pin else node.name
    return [
        f"{name} (cordoned)" if node.scope == "cordoned" else name,
        state_cell(node.state),
        _or_dash(node.power_w, watts),
        _or_dash(node.capped_w, watts),
        _or_dash(node.headroom, fixed),
        _or_dash(node.cooling_stress, lambda value: percent(round(value))),
        cap(node, "CPU"),
        cap(node, "GPU") if node.gpus else "–",
        (held, FAULT) if held in ("no", "silent") else held,
        f"{node.pods:,}",
        node.rack,
        node.hardware,
    ]


def _or_dash(value: float | None, shown: Callable[[float], str]) -> str:
    return "–" if value is None else shown(value)

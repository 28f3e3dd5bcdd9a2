"""The operator at 5,000 nodes and 50,000 pods on a real API server, and how its cost grows from 1,000 to 10,000.

Objects are put straight into etcd, as the API server would keep them (a pod of 4 KB, a node of 7 KB): what is measured
begins when the operator starts. Operator, API server, etcd and this program share the machine.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from bench.extender.bare_client import JOULIE, Loaded, json_loads, write_rate_per_s
from bench.figures import Figure
from bench.operator.run import FirstContact, OneChange, OperatorRun, Steady
from testbed.control_plane import ControlPlane
from testbed.objects import load

NODES, PODS_PER_NODE = 5_000, 10
GROWTH = (1_000, 2_000, NODES, 10_000)
STEADY_TICKS = 7
BARE_NODES = 2_500
MAX_MEMORY_MB = 500.0


class Refreshing(NamedTuple):
    """How often the operator decides, how often a twin is refreshed, and how many decisions are looked at."""

    tick_s: float = 10.0
    interval_s: float = 600.0
    ticks: int = 3

    def due(self, nodes: int) -> float:
        """How many refreshes fall due in that time."""
        return nodes * self.ticks * self.tick_s / self.interval_s


REFRESHING = Refreshing()
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "joulie-system"}}


@dataclass(frozen=True)
class Size:
    """One operator on one cluster."""

    nodes: int
    contact: FirstContact
    steady: Steady
    peak_mb: float


@dataclass(frozen=True)
class Whole:
    """Everything that is measured at the main size."""

    bares_per_s: tuple[float, float]  # before and after
    loaded: Loaded
    change: OneChange
    node: str
    refreshing: Steady

    @property
    def bare_per_s(self) -> float:
        return sum(self.bares_per_s) / len(self.bares_per_s)


def operator_figures(console: Console) -> list[Figure]:
    """the operator on a real API server"""
    began_s = time.monotonic()
    sizes: list[Size] = []
    whole: Whole | None = None
    with console.status("") as status:
        for nodes in GROWTH:

            def say(what: str, nodes: int = nodes) -> None:
                passed_s = time.monotonic() - began_s
                status.update(f"operator at {nodes:,} nodes: {what} ({passed_s // 60:.0f}:{passed_s % 60:02.0f})")

            with ControlPlane() as plane:
                size, more = measure(plane, nodes, PODS_PER_NODE, say, REFRESHING if nodes == NODES else None)
            sizes.append(size)
            whole = more or whole
            console.print(_line(size), highlight=False)
    if whole is None:
        raise ValueError(f"{NODES} is none of the sizes measured")
    _print_growth(console, sizes, time.monotonic() - began_s)
    main = next(size for size in sizes if size.nodes == NODES)
    return [*_counts(main, whole), *_costs(main, whole), *_growth(sizes)]


def measure(
    plane: ControlPlane,
    nodes: int,
    pods_per_node: int,
    say: Callable[[str], None],
    in_full: Refreshing | None = None,
) -> tuple[Size, Whole | None]:
    """Fill the cluster, then watch an operator at work; in full with yardsticks, a changed node and refreshes."""
    say("filling the cluster")
    plane.install_crds()
    plane.apply([NAMESPACE])
    load(plane, nodes, pods_per_node)
    bare_nodes = min(nodes, BARE_NODES)
    say("a bare client writes")
    bare_before_per_s = write_rate_per_s(plane, bare_nodes) if in_full else 0.0
    say("first contact")
    run = OperatorRun(plane, nodes, tick_s=max(2.0, nodes / 2_000))
    node, change = f"node-{nodes // 2:05d}", None
    with run.process:
        contact = run.first_contact()
        say("steady ticks")
        steady = run.steady(STEADY_TICKS)
        if in_full:
            say("one changed node")
            change = run.one_change(node)
        peak_mb = run.process.peak_mb()
    size = Size(nodes, contact, steady, peak_mb)
    if in_full is None or change is None:
        return size, None
    say("refreshes")
    run = OperatorRun(plane, nodes, in_full.tick_s, refresh=f"{in_full.interval_s:.0f}s")
    with run.process:
        refreshing = run.steady(in_full.ticks)
    say("json.loads, and the bare client once more")
    loaded = json_loads(plane)
    plane.api.delete(f"{JOULIE}/nodetwins")
    bares_per_s = (bare_before_per_s, write_rate_per_s(plane, bare_nodes))
    return size, Whole(bares_per_s, loaded, change, node, refreshing)


def _counts(size: Size, whole: Whole) -> list[Figure]:
    """By the API server's own metrics."""
    steady, refreshing, change = size.steady, whole.refreshing, whole.change
    others = sorted(name for name in change.objects if whole.node not in name)
    due = REFRESHING.due(size.nodes)
    return [
        Figure(
            "first contact: writes", "nodes", size.contact.writes / size.nodes, 3, f"{size.contact.writes:,} writes"
        ),
        Figure("steady: GETs and LISTs", "none", steady.reads + refreshing.reads, 0, f"in {steady.ticks} ticks"),
        Figure("steady, nothing due: writes", "none", steady.writes, 0, f"in {steady.ticks} ticks"),
        Figure(
            "steady: writes besides refreshes",
            "none",
            refreshing.writes - refreshing.refreshes,
            0,
            f"in {refreshing.ticks} ticks",
        ),
        Figure("refreshes", "due", refreshing.refreshes / due, 1.2, f"{refreshing.refreshes} of {due:.0f}"),
        Figure("one changed node: writes", "node", change.writes, 4, "label, status, spec, event"),
        Figure("one changed node: others written", "none", len(others), 0, ", ".join(others[:3])),
    ]


def _costs(size: Size, whole: Whole) -> list[Figure]:
    steady, loaded, rate_per_s = size.steady, whole.loaded, size.contact.rate_per_s
    before, after = (f"{bare:.0f}" for bare in whole.bares_per_s)
    return [
        Figure(
            "first contact: time for a write",
            "bare client",
            whole.bare_per_s / rate_per_s,
            1 / 0.7,
            f"{rate_per_s / whole.bare_per_s:.0%}: {rate_per_s:.0f} writes/s; bare {before} before, {after} after",
        ),
        Figure(
            "steady tick: CPU",
            "json.loads",
            steady.cpu_s / loaded.cpu_s,
            0.5,
            f"{steady.cpu_s:.2f} s of {loaded.cpu_s:.2f} s ({loaded.megabytes:.0f} MB)",
        ),
        Figure(
            "memory, peak",
            f"{MAX_MEMORY_MB:.0f} MB",
            size.peak_mb / MAX_MEMORY_MB,
            1,
            f"{size.peak_mb:.0f} MB, first contact included",
        ),
    ]


def _growth(sizes: list[Size]) -> list[Figure]:
    """Twice the nodes may cost 2.3 times as much; another factor as much as that many doublings."""
    figures = []
    for few, many in itertools.pairwise(sizes):
        limit = 2.3 ** math.log2(many.nodes / few.nodes)
        detail = f"{many.nodes / few.nodes:g} × the nodes"
        what = f"{few.nodes:,} → {many.nodes:,} nodes"
        figures += [
            Figure(f"steady tick: CPU, {what}", "itself", many.steady.cpu_s / few.steady.cpu_s, limit, detail),
            Figure(f"memory, {what}", "itself", many.peak_mb / few.peak_mb, limit, detail),
        ]
    return figures


def _line(size: Size) -> str:
    return (
        f"{size.nodes:>6,} nodes: {size.contact.writes:,} writes at {size.contact.rate_per_s:.0f}/s, "
        f"steady tick {size.steady.cpu_s:.3f} s of CPU, peak {size.peak_mb:.0f} MB"
    )


def _print_growth(console: Console, sizes: list[Size], took_s: float) -> None:
    table = Table(title=f"The operator's process on a real API server; measured in {took_s / 60:.1f} minutes")
    headings = (
        "nodes",
        "pods",
        "first contact",
        "writes/node",
        "writes/s",
        "steady tick CPU",
        "per node",
        "peak memory",
    )
    for heading in headings:
        table.add_column(heading, justify="right")
    for size in sizes:
        contact, steady = size.contact, size.steady
        table.add_row(
            f"{size.nodes:,}",
            f"{size.nodes * PODS_PER_NODE:,}",
            f"{contact.writes / contact.rate_per_s:.1f} s",
            f"{contact.writes / size.nodes:.3f}",
            f"{contact.rate_per_s:.0f}",
            f"{steady.cpu_s * 1e3:.0f} ms",
            f"{steady.cpu_s / size.nodes * 1e6:.0f} µs",
            f"{size.peak_mb:.0f} MB",
        )
    console.print(table)

"""`allocate` for many nodes in overlapping groups, against `decide` on the same cluster."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np

from bench.figures import Figure
from bench.timing import interleaved
from joulie.control.budget.allocation import Allocation, Groups, Loads, allocate
from joulie.control.budget.filling import Membership
from joulie.control.cycle import BUILTIN_CATALOGUE
from joulie.model.snapshot import Snapshot
from joulie.physics.hardware import machine_of
from joulie.settings import DecisionSettings

NODES, RACKS, ROWS, FEEDS = 10_000, 250, 47, 2  # and the cluster: 300 groups, four of them for every node
RATIO = 0.1


def budget_figures(
    snapshots: dict[int, Snapshot], decision: Callable[[Snapshot], Callable[[], object]]
) -> list[Figure]:
    """one sharing out of watts, against one decision"""
    seconds = interleaved(
        {
            f"{what} {nodes}": job
            for nodes, snapshot in snapshots.items()
            for what, job in (("allocate", allocation(snapshot)), ("decide", decision(snapshot)))
        }
    )
    figures = []
    for nodes in snapshots:
        share, base = seconds[f"allocate {nodes}"], seconds[f"decide {nodes}"]
        detail = f"{share * 1e3:.1f} ms of {base * 1e3:.0f} ms, {RACKS + ROWS + FEEDS + 1} groups"
        figures.append(Figure(f"allocate, {nodes:,} nodes", "decide", share / base, RATIO, detail))
    few, many = min(snapshots), max(snapshots)
    grown = seconds[f"allocate {many}"] / seconds[f"allocate {few}"]
    figures.append(Figure(f"allocate, {few:,} → {many:,} nodes", "itself", grown, 1.25 * many / few, "same groups"))
    return figures


def allocation(snapshot: Snapshot) -> Callable[[], Allocation]:
    """Nine racks of ten lack watts, in different degrees: hardly any two groups are full at the same level."""
    loads, groups = _loads(snapshot), _groups(len(snapshot.nodes))
    room = groups.membership.sums(loads.ceiling_w)
    drawn = Random(1)
    share = np.array([drawn.uniform(0.6, 1.05) for _ in groups.names])
    tight = Groups(groups.names, room * share, room * share, groups.restarts, groups.membership)
    return lambda: allocate(loads, tight)


def _loads(snapshot: Snapshot) -> Loads:
    drawn, settings = Random(2), DecisionSettings().hardware
    machines = [
        machine_of(node, snapshot.hardware.get(name), settings, BUILTIN_CATALOGUE)
        for name, node in sorted(snapshot.nodes.items())
    ]
    top = np.array([machine.max_w for machine in machines])
    floor = np.array([machine.cpu_watts_floor_w + machine.gpu_count * machine.gpu_min_w_each for machine in machines])
    demand = floor + (top - floor) * np.array([drawn.random() for _ in machines])
    weight = np.array([drawn.choice((0, 1, 1, 2)) for _ in machines])
    return Loads([machine.node for machine in machines], floor, demand, top, top, weight)


def _groups(nodes: int) -> Groups:
    drawn = Random(3)
    members: list[list[int]] = [[] for _ in range(RACKS + ROWS + FEEDS)]
    for row in range(nodes):
        rack = drawn.randrange(RACKS)
        for group in (rack, RACKS + rack % ROWS, RACKS + ROWS + row % FEEDS):
            members[group].append(row)
    members.append(list(range(nodes)))
    names = [f"group-{number:03d}" for number in range(len(members))]
    nothing = np.zeros(len(names))
    return Groups(names, nothing, nothing, np.ones(len(names), dtype=np.intp), Membership.of(members, nodes))

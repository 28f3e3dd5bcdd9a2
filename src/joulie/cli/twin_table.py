"""The twins for people: one line a node."""

from __future__ import annotations

from rich.console import Console

from joulie.cli.style import fixed, kilowatts, percent, plural, state_cell, watts
from joulie.cli.tables import Column, Table
from joulie.control.twins import TwinTable

_COLUMNS = (
    Column("node"),
    Column("state"),
    Column("headroom", right=True),
    Column("cooling", right=True),
    Column("supply", right=True),
    Column("draws", right=True),
    Column("budget", right=True),
    Column("hardware", right=True, optional=True),
    Column("CPU cap", right=True, optional=True),
    Column("GPU cap", right=True, optional=True),
    Column("source", optional=True),
)


def print_twins(console: Console, twins: TwinTable) -> None:
    """Every node in scope, sorted by name, and the sums."""
    if not len(twins):
        console.print("no node in scope")
        return
    table = Table(_COLUMNS)
    columns = twins.columns
    for row, node in enumerate(twins.nodes):
        at = {name: column[row] for name, column in columns.items()}
        table.add(
            [
                node,
                state_cell(twins.states[row]),
                fixed(at["headroom"]),
                fixed(at["cooling_stress"]) + " %",
                fixed(at["psu_stress"]) + " %",
                watts(at["measured_w"]),
                watts(at["capped_w"]),
                watts(at["max_w"]),
                percent(at["cpu_pct"]),
                percent(at["gpu_pct"]) if twins.has_gpu[row] else "–",
                twins.sources[row],
            ]
        )
    table.print(console)
    drawn, capped, full = (kilowatts(sum(columns[name])) for name in ("measured_w", "capped_w", "max_w"))
    console.print()
    console.print(f"{plural(len(twins), 'node')} draw {drawn} of the {capped} that caps allow; hardware {full}")

"""`joulie twin`: what each node's digital twin predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from joulie.cli.options import ambient_option, prints_result, reads_objects

if TYPE_CHECKING:
    from rich.console import Console

    from joulie.cli.options import ObjectSource
    from joulie.cli.output import Output
    from joulie.control.twins import TwinTable

_EPILOG = """\b
Examples:
  kubectl get nodes,pods -A -o json | joulie twin -f - --selector ''
  joulie twin -f cluster.yaml --ambient 35
  joulie twin -f cluster.yaml -o json

\b
How to read it:
  headroom  room for more work: how far the caps are open × how much cooling is left; 100 is the maximum
  cooling   share of the cooling capacity that the node would use at its caps
  supply    share of the rack's power capacity in use
  draws     current power; from files always an estimate from caps and requests (source: static)
  budget    what the caps allow; hardware: what the node can draw without caps
"""

_COLUMNS = (  # heading, right-aligned, optional on a narrow terminal
    ("node", False, False),
    ("state", False, False),
    ("headroom", True, False),
    ("cooling", True, False),
    ("supply", True, False),
    ("draws", True, False),
    ("budget", True, False),
    ("hardware", True, True),
    ("CPU cap", True, True),
    ("GPU cap", True, True),
    ("source", False, True),
)


@click.command(epilog=_EPILOG)
@reads_objects
@ambient_option
@prints_result
def command(source: ObjectSource, out: Output) -> None:
    """What each node's digital twin predicts.

    Plans like `joulie plan` and shows, for every node in scope, the status that the operator would write to its
    NodeTwin: power headroom, cooling and supply stress, power drawn and allowed.
    """
    from joulie.cli.context import read_cluster, warn_of_empty_scope

    cluster = read_cluster(source)
    twins = cluster.plan.twins
    if not len(twins):
        warn_of_empty_scope(cluster)
    if not out.for_people:
        out.document([{"node": node, "status": twins.status(row)} for row, node in enumerate(twins.nodes)])
        return
    _print(out.console(), twins)


def _print(console: Console, twins: TwinTable) -> None:
    """Every node in scope, sorted by name, and the sums."""
    from joulie.cli.style import fixed, kilowatts, percent, plural, state_cell, watts
    from joulie.cli.tables import TableColumn, TextTable

    if not len(twins):
        console.print("no node in scope")
        return
    table = TextTable([TableColumn(name, right, optional) for name, right, optional in _COLUMNS])
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

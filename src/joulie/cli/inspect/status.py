"""`joulie status`: power, states and what needs attention, at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from joulie.cli.options import prints_result, reads_objects

if TYPE_CHECKING:
    from joulie.cli.options import ObjectSource
    from joulie.cli.output import Output

_EPILOG = """\b
Examples:
  joulie status
  joulie status -o json | jq .attention
  joulie status --context production

\b
How to read it:
  enforced   nodes whose agent reports that the desired caps are applied, of all nodes with a desired cap
  racks      power drawn now, of RACK_CAPACITY_WATTS
  attention  problems; joulie doctor checks more
"""


@click.command(epilog=_EPILOG)
@reads_objects
@prints_result
def command(source: ObjectSource, out: Output) -> None:
    """Power, states, racks and what needs attention, at a glance.

    Shows the current state, as last written by the operator and the agents: power drawn and allowed, how many nodes
    are in each state, whether caps are enforced, and what needs attention.
    """
    from joulie.cli.context import read_cluster
    from joulie.cli.views.overview import overview_of

    view = overview_of(read_cluster(source)).cluster
    if not out.for_people:
        out.document(view)
        return
    from joulie.cli.views.overview_text import print_status

    print_status(out.console(), view)

"""`joulie status`: power, states and what needs attention, at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from joulie.cli.options import prints_result, reads_objects

if TYPE_CHECKING:
    from joulie.cli.options import Source
    from joulie.cli.output import Output

_EPILOG = """\b
Examples:
  joulie status
  joulie status -o json | jq .attention
  joulie status --context production

\b
How to read it:
  enforced   nodes whose agent says that the wanted caps are applied, of those with a wanted cap
  racks      power drawn now, of RACK_CAPACITY_WATTS
  attention  what is not as it should be; joulie doctor looks deeper
"""


@click.command(epilog=_EPILOG)
@reads_objects
@prints_result
def command(source: Source, out: Output) -> None:
    """Power, states, racks and what needs attention, at a glance.

    Shows what is, as the operator and the agents last wrote it: power drawn and allowed, how many nodes are what,
    whether caps are enforced, and what needs a person.
    """
    from joulie.cli.context import read_cluster
    from joulie.cli.status_view import seen

    view = seen(read_cluster(source)).cluster
    if not out.for_people:
        out.document(view)
        return
    from joulie.cli.status_lines import print_status

    print_status(out.console(), view)

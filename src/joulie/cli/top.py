"""`joulie top`: the nodes, live, by power, headroom or heat."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from joulie.cli.options import prints_result, reads_objects

if TYPE_CHECKING:
    from joulie.cli.options import Source
    from joulie.cli.output import Output

_EPILOG = """\b
Keys:
  p  by power drawn      h  by headroom, least first      t  by heat (cooling stress)
  n  by name             q  quit

\b
Examples:
  joulie top
  joulie top --sort heat
  joulie top --once --sort headroom | head
"""


@click.command(epilog=_EPILOG)
@click.option("--sort", type=click.Choice(["power", "headroom", "heat", "name"]), default="power", show_default=True)
@click.option("--once", is_flag=True, help="Print once and end; so it is also where there is no terminal.")
@reads_objects
@prints_result
def command(source: Source, out: Output, sort: str, once: bool) -> None:
    """The nodes, live, by power, headroom or heat.

    Keeps itself up to date by watching the cluster, so it shows a change within a second of its being written.
    """
    from joulie.cli.context import read_cluster
    from joulie.cli.status_view import seen
    from joulie.cli.top_lines import in_order, print_once

    interactive = out.for_people and not once and not source.filenames and sys.stdout.isatty() and sys.stdin.isatty()
    if interactive:
        from joulie.cli.top_live import run

        run(source, out.console(), sort)
        return
    view = seen(read_cluster(source))
    if out.for_people:
        print_once(out.console(), view, sort)
    else:
        out.document(in_order(view.nodes.values(), sort))

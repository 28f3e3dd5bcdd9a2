"""`joulie top`: the nodes, live, by power, headroom or heat."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from joulie.cli.options import prints_result, reads_objects

if TYPE_CHECKING:
    from joulie.cli.options import ObjectSource
    from joulie.cli.output import Output

_EPILOG = """\b
Keys:
  p  by power drawn      h  by headroom, lowest first      t  by heat (cooling stress)
  n  by name             q  quit

\b
Examples:
  joulie top
  joulie top --sort heat
  joulie top --once --sort headroom | head
"""


@click.command(epilog=_EPILOG)
@click.option("--sort", type=click.Choice(["power", "headroom", "heat", "name"]), default="power", show_default=True)
@click.option("--once", is_flag=True, help="Print once and exit; the default without a terminal.")
@reads_objects
@prints_result
def command(source: ObjectSource, out: Output, sort: str, once: bool) -> None:
    """The nodes, live, by power, headroom or heat.

    Watches the cluster and shows a change within a second after it was written.
    """
    from joulie.cli.context import read_cluster
    from joulie.cli.inspect.top_table import in_order, print_once
    from joulie.cli.views.overview import overview_of

    interactive = out.for_people and not once and not source.filenames and sys.stdout.isatty() and sys.stdin.isatty()
    if interactive:
        from joulie.cli.inspect.top_live import run

        run(source, out.console(), sort)
        return
    view = overview_of(read_cluster(source))
    if out.for_people:
        print_once(out.console(), view, sort)
    else:
        out.document(in_order(view.nodes.values(), sort))

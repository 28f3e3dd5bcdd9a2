"""`joulie pin`: one node at full power, or capped, whatever the policy thinks; with a time limit if wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from joulie.cli.complete import complete_node
from joulie.cli.options import above_zero, duration_option, prints_result, reads_cluster

if TYPE_CHECKING:
    from joulie.cli.options import Source
    from joulie.cli.output import Output

_EPILOG = """\b
Examples:
  joulie pin gpu-b2 performance --for 2h
  joulie pin gpu-b2 eco --gpu-pct 70 --reason "noisy fan, ticket 4711"
  joulie pin gpu-b2 eco --wait
  joulie unpin gpu-b2

\b
A pin is a NodePowerProfile: kubectl get nodepowerprofiles shows them all. Caps that it does not name come
from the settings. A node with performance-only pods drains first, at full power until the last has left.
"""

_WATTS, _PCT = above_zero(1e6), above_zero(100)


@click.command(epilog=_EPILOG)
@click.argument("node", metavar="NODE", shell_complete=complete_node)
@click.argument("profile", type=click.Choice(["performance", "eco"]))
@duration_option("--for", "for_s", help="When it ends by itself, such as 2h or 30m.  [default: never]")
@click.option("--cpu-watts", type=_WATTS, metavar="W", help="CPU cap of the whole node in watts.")
@click.option("--cpu-pct", type=_PCT, metavar="PCT", help="CPU cap in percent of the maximum.")
@click.option("--gpu-watts", type=_WATTS, metavar="W", help="Cap of each GPU in watts.")
@click.option("--gpu-pct", type=_PCT, metavar="PCT", help="Cap of each GPU in percent of the maximum.")
@click.option("--reason", default="", metavar="TEXT", help="Why, for whoever asks `joulie explain node` later.")
@click.option("--wait", is_flag=True, help="Until the node's twin shows it; exit code 1 where it does not in time.")
@duration_option("--timeout", "timeout_s", default="2m", help="How long --wait waits.", show_default=True)
@reads_cluster
@prints_result
def command(source: Source, out: Output, node: str, wait: bool, timeout_s: float, **wanted: Any) -> None:
    """Hold one node at full power, or capped, whatever the policy thinks.

    Says what will happen and when. Pinning again replaces what was pinned before. The node goes back to the policy with
    `joulie unpin`, or by itself after --for.
    """
    from joulie.cli.pinning import Wanted, pin_node

    for device in ("cpu", "gpu"):
        if wanted[f"{device}_watts"] is not None and wanted[f"{device}_pct"] is not None:
            raise click.UsageError(f"--{device}-watts and --{device}-pct say the same thing: give one of them")
    document = pin_node(source, node, Wanted(**wanted), timeout_s if wait else None, out.tell)
    if not out.for_people:
        out.document(document)
    if document["shown"] is False:
        raise click.exceptions.Exit(1)

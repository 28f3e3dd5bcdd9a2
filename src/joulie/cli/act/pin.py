"""`joulie pin`: hold one node at full power or under a cap, regardless of the policy, optionally with a time limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from joulie.cli.name_completion import complete_node
from joulie.cli.options import above_zero, duration_option, prints_result, reads_cluster

if TYPE_CHECKING:
    from joulie.cli.options import ObjectSource
    from joulie.cli.output import Output

_EPILOG = """\b
Examples:
  joulie pin gpu-b2 performance --for 2h
  joulie pin gpu-b2 eco --gpu-pct 70 --reason "noisy fan, ticket 4711"
  joulie pin gpu-b2 eco --wait
  joulie unpin gpu-b2

\b
A pin is a NodePowerProfile; kubectl get nodepowerprofiles lists them all. Caps that it does not set come
from the settings. A node with performance-only pods drains first, at full power until the last has left.

\b
Exit code 1 means that the pin is stored but not in effect: there is no leading operator, the cluster
lacks Joulie's definitions, or with --wait the twin did not show it in time.
"""

_WATTS, _PCT = above_zero(1e6), above_zero(100)


@click.command(epilog=_EPILOG)
@click.argument("node", metavar="NODE", shell_complete=complete_node)
@click.argument("profile", type=click.Choice(["performance", "eco"]))
@duration_option("--for", "for_s", help="How long the pin lasts, such as 2h or 30m.  [default: until unpinned]")
@click.option("--cpu-watts", type=_WATTS, metavar="W", help="CPU cap per package in watts.")
@click.option("--cpu-pct", type=_PCT, metavar="PCT", help="CPU cap in percent of the maximum.")
@click.option("--gpu-watts", type=_WATTS, metavar="W", help="Cap per GPU in watts.")
@click.option("--gpu-pct", type=_PCT, metavar="PCT", help="Cap per GPU in percent of the maximum.")
@click.option("--reason", default="", metavar="TEXT", help="Why the node is pinned; `joulie explain node` shows it.")
@click.option("--wait", is_flag=True, help="Wait until the node's twin shows it; exit code 1 if it does not in time.")
@duration_option("--timeout", "timeout_s", default="2m", help="How long --wait waits.", show_default=True)
@reads_cluster
@prints_result
def command(source: ObjectSource, out: Output, node: str, wait: bool, timeout_s: float, **wanted: Any) -> None:
    """Hold one node at full power or under a cap, regardless of the policy.

    Says what will happen and when. Pinning again replaces the previous pin. The policy takes over again after
    `joulie unpin`, or after the time given with --for.
    """
    from joulie.cli.act.pinning import PinRequest, pin_node

    for device in ("cpu", "gpu"):
        if wanted[f"{device}_watts"] is not None and wanted[f"{device}_pct"] is not None:
            raise click.UsageError(f"--{device}-watts and --{device}-pct exclude each other: pass only one")
    document = pin_node(source, node, PinRequest(**wanted), timeout_s if wait else None, out.tell)
    if not out.for_people:
        out.document(document)
    not_in_effect = document["state"] is not None and not document["takesEffect"]
    if not_in_effect if document["shown"] is None else not document["shown"]:
        raise click.exceptions.Exit(1)

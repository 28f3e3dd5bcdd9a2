"""`joulie explain`: how a node's target or a pod's place comes about."""

from __future__ import annotations

import click

from joulie.cli.lazy import LazyGroup, Listed

_WHAT = "What to explain"

TABLE = {
    "node": Listed("joulie.cli.explain_node", _WHAT, "Hardware, rank, pin, guard, caps and twin of one node."),
    "pod": Listed("joulie.cli.explain_pod", _WHAT, "Where a pod would go, and why not elsewhere."),
}

_EPILOG = """\b
Examples:
  joulie explain node gpu-b2
  joulie explain node gpu-b2 -f cluster.yaml
  joulie explain pod ml/finetune-0 -f cluster.yaml --what-if
"""


@click.group(cls=LazyGroup, table=TABLE, no_args_is_help=False, subcommand_metavar="node|pod NAME …", epilog=_EPILOG)
def command() -> None:
    """How a node's target or a pod's place comes about.

    Shows each number with what it was made of, so that it can be checked by hand.
    """

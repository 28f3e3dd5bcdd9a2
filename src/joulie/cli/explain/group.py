"""`joulie explain`: why a node has its target, or why a pod goes where it goes."""

from __future__ import annotations

import click

from joulie.cli.lazy import LazyCommand, LazyGroup

_WHAT = "What to explain"

TABLE = {
    "node": LazyCommand("joulie.cli.explain.node", _WHAT, "Hardware, rank, pin, guard, caps and twin of one node."),
    "pod": LazyCommand("joulie.cli.explain.pod", _WHAT, "Where a pod would go, and why not elsewhere."),
}

_EPILOG = """\b
Examples:
  joulie explain node gpu-b2
  joulie explain node gpu-b2 -f cluster.yaml
  joulie explain pod ml/finetune-0 -f cluster.yaml --what-if
"""


@click.group(cls=LazyGroup, table=TABLE, no_args_is_help=False, subcommand_metavar="node|pod NAME …", epilog=_EPILOG)
def command() -> None:
    """Why a node has its target, or why a pod goes where it goes.

    Shows how each number is calculated, so that it can be checked by hand.
    """

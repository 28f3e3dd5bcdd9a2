"""`joulie cleanup`: undo everything that Joulie wrote to a cluster; also what the chart runs before it is removed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from joulie.cli.options import duration_option, reads_cluster

if TYPE_CHECKING:
    from joulie.cli.options import Source

_EPILOG = """\b
Examples:
  joulie cleanup --dry-run          what there is to do
  joulie cleanup                    asks before it begins
  joulie cleanup --crds --yes       everything, your pins and telemetry profiles included

\b
What it does, in this order; it can be run again at any time:
  1. scales the operator down to nothing, and takes its lease, so that no operator writes any more
  2. ends the agents, which put every device back as they found it
  3. removes Joulie's two labels from nodes, all NodeTwins and NodeHardwares, and the lease
  4. with --crds: removes the definitions, and with them every object of Joulie's

\b
What people wrote stays: pins and telemetry profiles (but with --crds), and labels such as managed or rack.
"""


@click.command(epilog=_EPILOG)
@click.option("--crds", is_flag=True, help="Remove the custom resource definitions too, and all objects with them.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Say what there is to do, and do nothing.")
@click.option(
    "--namespace", default="joulie-system", show_default=True, envvar="POD_NAMESPACE", help="Where Joulie is installed."
)
@duration_option(
    "--timeout", "timeout_s", default="2m", show_default=True, help="How long operator and agents get to end."
)
@reads_cluster
def command(source: Source, crds: bool, yes: bool, dry_run: bool, namespace: str, timeout_s: float) -> None:
    """Undo everything that Joulie wrote to a cluster.

    Nodes end as they were found: agents restore caps when they end, labels and objects are removed. The chart runs this
    before it is uninstalled.
    """
    from joulie.cli.cleaning import Cleaning, clean, look
    from joulie.cli.connection import on_connection

    def say(line: str) -> None:
        click.echo(line)

    cleaning = Cleaning(namespace, crds, timeout_s, say)
    there = on_connection(source.kubeconfig, source.context, lambda connection: look(connection, cleaning))
    for line in there.lines():
        say(line)
    if dry_run or there.nothing:
        return
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("nobody can be asked here: say --yes, or --dry-run to look only")
        click.confirm("go on?", abort=True)
    try:
        complete = on_connection(
            source.kubeconfig, source.context, lambda connection: clean(connection, cleaning, there)
        )
    except KeyboardInterrupt:
        click.echo("joulie: stopped half-way: run the same command again to finish", err=True)
        raise
    raise click.exceptions.Exit(0 if complete else 1)

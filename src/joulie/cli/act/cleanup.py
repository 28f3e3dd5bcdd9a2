"""`joulie cleanup`: undo everything that Joulie wrote to a cluster. The chart runs it before it is uninstalled."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from joulie.cli.options import duration_option, reads_cluster

if TYPE_CHECKING:
    from joulie.cli.options import ObjectSource

_EPILOG = """\b
Examples:
  joulie cleanup --dry-run          show what would be done
  joulie cleanup                    ask, then clean up
  joulie cleanup --crds --yes       everything, including your pins and telemetry profiles

\b
What it does, in this order; it is safe to run again:
  1. scales the operator to zero and takes its lease, so that no operator writes any more
  2. stops the agents, which restore every device to its original state
  3. removes from nodes Joulie's two labels, taints of joulie.io/ and the resource joulie.io/watts (and the
     admission policy's binding that makes pods ask for it), all NodeTwins and NodeHardwares, and the lease
  4. with --crds: removes the definitions, and with them every object of these kinds
  5. lists what remains installed: roles, admission policies, workloads; helm uninstall removes them

\b
What people wrote stays: pins and telemetry profiles (except with --crds), and labels like managed or rack.
"""


@click.command(epilog=_EPILOG)
@click.option("--crds", is_flag=True, help="Also remove the custom resource definitions and all their objects.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@click.option(
    "--namespace", default="joulie-system", show_default=True, envvar="POD_NAMESPACE", help="Where Joulie is installed."
)
@duration_option(
    "--timeout", "timeout_s", default="2m", show_default=True, help="How long to wait for operator and agents to stop."
)
@reads_cluster
def command(source: ObjectSource, crds: bool, yes: bool, dry_run: bool, namespace: str, timeout_s: float) -> None:
    """Undo everything that Joulie wrote to a cluster.

    Nodes return to their original state: agents restore power limits when they stop, and labels and objects are
    removed. The chart runs this before it is uninstalled.
    """
    from joulie.cli.act.cleanup_steps import CleanupRequest, clean, remaining, take_inventory
    from joulie.cli.connection import on_connection

    def say(line: str) -> None:
        click.echo(line)

    request = CleanupRequest(namespace, crds, timeout_s, say)
    inventory = on_connection(source.kubeconfig, source.context, lambda connection: take_inventory(connection, request))
    for line in inventory.lines():
        say(line)
    if inventory.empty and crds:  # asked to remove everything, so say what this command does not remove
        for line in on_connection(source.kubeconfig, source.context, lambda one: remaining(one, request)):
            say(line)
    if dry_run or inventory.empty:
        return
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("not a terminal; pass --yes, or --dry-run to change nothing")
        click.confirm("continue?", abort=True)
    try:
        complete = on_connection(
            source.kubeconfig, source.context, lambda connection: clean(connection, request, inventory)
        )
    except KeyboardInterrupt:
        click.echo("joulie: interrupted; run the same command again to finish", err=True)
        raise
    raise click.exceptions.Exit(0 if complete else 1)

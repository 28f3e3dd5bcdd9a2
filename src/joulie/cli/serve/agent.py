"""`joulie agent`: hold this node, or a pool of nodes, to its target; `joulie agent restore` undoes it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from joulie.cli.lazy import LazyCommand, LazyGroup
from joulie.cli.live import on_cluster
from joulie.cli.options import kubeconfig_options, log_level_option

if TYPE_CHECKING:
    from joulie.settings import AgentSettings

TABLE = {
    "restore": LazyCommand(
        "joulie.cli.serve.agent_restore", "Afterwards", "Restore every device to its original state."
    ),
}
_EPILOG = """\b
Examples:
  NODE_NAME=node-1 joulie agent               hold this machine to its target
  SIMULATE_ONLY=true joulie agent             dry run: decide and report, write to no device
  AGENT_MODE=pool joulie agent                many nodes over HTTP, such as the simulator's
  joulie agent restore                        restore every device, in a preStop hook or by hand

\b
Settings are environment variables: joulie config agent
Needed in the cluster: joulie crds | kubectl apply -f -, and the permissions in deploy/rbac/agent.yaml
"""


@click.group(
    cls=LazyGroup,
    table=TABLE,
    invoke_without_command=True,
    subcommand_metavar="[restore]",
    epilog=_EPILOG,
)
@kubeconfig_options
@log_level_option
@click.pass_context
def command(ctx: click.Context, kubeconfig: str, context: str, log_level: str) -> None:
    """Turn a node's target into power caps on its devices, and report the result.

    Enforces NodeTwin.spec (or a NodePowerProfile if no operator runs), corrects drift, publishes NodeHardware and
    NodeTwin.status.controlStatus, and restores the devices when it stops, when there is no cap to hold any more, or
    when it has lost contact for longer than CAP_LEASE.
    """
    if ctx.invoked_subcommand is not None:
        return
    from joulie.logs import start_logging
    from joulie.settings import AgentSettings, load

    start_logging(log_level)
    sys.exit(_run(load(AgentSettings, os.environ), kubeconfig, context))


def _run(settings: AgentSettings, kubeconfig: str, context: str) -> int:
    import socket

    from joulie.agent.process import run
    from joulie.cluster.watch.log import ContactLog
    from joulie.model.names import AGENT_MANAGER
    from joulie.sources.catalogue_file import read_catalogue

    catalogue = read_catalogue(settings.hardware.hardware_catalog_path)
    reporter_name = settings.pod_name or socket.gethostname()
    contact = ContactLog("agent")
    return on_cluster(
        kubeconfig,
        context,
        contact,
        AGENT_MANAGER,
        lambda cluster: run(cluster, contact, settings, catalogue, reporter_name=reporter_name),
    )

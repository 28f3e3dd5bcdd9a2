"""`joulie agent`: hold this node, or a pool of nodes, to its target; `joulie agent restore` puts everything back."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from joulie.cli.lazy import LazyGroup, Listed
from joulie.cli.live import on_cluster
from joulie.cli.options import kubeconfig_options, log_level_option

if TYPE_CHECKING:
    from joulie.settings import AgentSettings

_TABLE = {
    "restore": Listed("joulie.cli.agent_restore", "Afterwards", "Puts every device back as it was found."),
}
_EPILOG = """\b
Examples:
  NODE_NAME=node-1 joulie agent               hold this machine to its target
  SIMULATE_ONLY=true joulie agent             decide and report, write to no device
  AGENT_MODE=pool joulie agent                many nodes over HTTP, as the simulator offers them
  joulie agent restore                        put everything back, for a pre-stop hook or by hand

\b
Settings are environment variables: joulie config agent
Needed in the cluster: joulie crds | kubectl apply -f -, and the rights in deploy/rbac/agent.yaml
"""


@click.group(
    cls=LazyGroup,
    table=_TABLE,
    invoke_without_command=True,
    subcommand_metavar="[restore]",
    epilog=_EPILOG,
)
@kubeconfig_options
@log_level_option
@click.pass_context
def command(ctx: click.Context, kubeconfig: str, context: str, log_level: str) -> None:
    """Turn a node's target into power caps on its devices, and say what became of them.

    It enforces NodeTwin.spec (or a NodePowerProfile where no operator runs), corrects drift, publishes NodeHardware and
    NodeTwin.status.controlStatus, and puts everything back when it ends, when nobody wants a cap any more, or when it
    has been without contact for CAP_LEASE.
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
    from joulie.cluster.watch_log import ContactLog
    from joulie.sources.catalogue_file import read_catalogue

    catalogue = read_catalogue(settings.hardware.hardware_catalog_path)
    reporter_name = settings.pod_name or socket.gethostname()
    contact = ContactLog("agent")
    return on_cluster(
        kubeconfig,
        context,
        contact,
        lambda cluster: run(cluster, contact, settings, catalogue, reporter_name=reporter_name),
    )

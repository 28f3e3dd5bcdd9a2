"""The commands of `joulie`, by name. A new one is a module with a click command called `command`, and a line here."""

from __future__ import annotations

import click

from joulie import __version__
from joulie.cli.lazy import LazyGroup, Listed

COMPLETION_VARIABLE = "_JOULIE_COMPLETE"

LOOK = "Look at a cluster"
ACT = "Act on a cluster"
RUN = "See it run"
SET_UP = "Set up"

TABLE = {
    "plan": Listed("joulie.cli.plan", LOOK, "Which nodes to cap, by how much, and why."),
    "twin": Listed("joulie.cli.twin", LOOK, "What each node's digital twin predicts."),
    "score": Listed("joulie.cli.score", LOOK, "What every node scores for one pod."),
    "explain": Listed("joulie.cli.explain", LOOK, "How a node's target or a pod's place comes about."),
    "status": Listed("joulie.cli.status", LOOK, "Power, states and what needs attention, at a glance."),
    "top": Listed("joulie.cli.top", LOOK, "The nodes, live, by power, headroom or heat."),
    "doctor": Listed("joulie.cli.doctor", LOOK, "What is wrong with an installation, and what to do."),
    "catalogue": Listed("joulie.cli.catalogue", LOOK, "The CPUs and GPUs that Joulie knows."),
    "pin": Listed("joulie.cli.pin", ACT, "Hold a node at full power or capped, for a time."),
    "unpin": Listed("joulie.cli.unpin", ACT, "Let the policy decide about a node again."),
    "cleanup": Listed("joulie.cli.cleanup", ACT, "Undo everything that Joulie wrote to a cluster."),
    "demo": Listed("joulie.cli.demo", RUN, "A live cluster in this terminal and in a browser."),
    "tour": Listed("joulie.cli.tour", RUN, "What Joulie decides, printed on a bundled example."),
    "lab": Listed("joulie.cli.lab", RUN, "Policies on simulated data centres, compared fairly."),
    "operator": Listed("joulie.cli.operator", RUN, "Decides for a live cluster and writes it."),
    "agent": Listed("joulie.cli.agent", RUN, "Holds a node, or a pool of nodes, to its target."),
    "simulator": Listed("joulie.cli.simulator", RUN, "Simulated hardware behind HTTP."),
    "extender": Listed("joulie.cli.extender", RUN, "Tells kube-scheduler where pods may go and which node is best."),
    "config": Listed("joulie.cli.config", SET_UP, "Every setting with value, default and meaning."),
    "crds": Listed("joulie.cli.crds", SET_UP, "The custom resource definitions, for kubectl apply."),
    "completion": Listed("joulie.cli.completion", SET_UP, "Tab completion for bash, zsh or fish."),
}

_EPILOG = """\b
Examples:
  joulie demo
  kubectl get nodes,pods -A -o json | joulie plan -f -
  joulie explain node gpu-b2 -f cluster.yaml

\b
Each command explains itself: joulie plan --help
Wrong input ends with exit code 2 and one line that names file, object and field.
"""


@click.group(
    cls=LazyGroup,
    table=TABLE,
    invoke_without_command=True,
    subcommand_metavar="COMMAND …",
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="joulie %(version)s")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Energy management for Kubernetes.

    Some nodes run at full power (performance), others under a power cap (eco). Joulie decides which node should be
    which, predicts how much power and cooling each has left, and scores nodes for pods. Every decision comes with its
    reason. Nothing has to be installed in a cluster to see what it would do.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())

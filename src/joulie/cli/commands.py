"""The commands of `joulie`, by name. A new one is a module with a click command called `command`, plus a line here."""

from __future__ import annotations

import click

from joulie import __version__
from joulie.cli.lazy import LazyCommand, LazyGroup

LOOK = "Look at a cluster"
ACT = "Act on a cluster"
RUN = "See it run"
SET_UP = "Set up"

TABLE = {
    "plan": LazyCommand("joulie.cli.inspect.plan", LOOK, "Which nodes to cap, by how much, and why."),
    "twin": LazyCommand("joulie.cli.inspect.twin", LOOK, "What each node's digital twin predicts."),
    "score": LazyCommand("joulie.cli.inspect.score", LOOK, "What every node scores for one pod."),
    "explain": LazyCommand(
        "joulie.cli.explain.group", LOOK, "Why a node has its target, or why a pod goes where it goes."
    ),
    "status": LazyCommand("joulie.cli.inspect.status", LOOK, "Power, states and what needs attention, at a glance."),
    "top": LazyCommand("joulie.cli.inspect.top", LOOK, "The nodes, live, by power, headroom or heat."),
    "budget": LazyCommand("joulie.cli.inspect.budget", LOOK, "Limits in watts: allocated and drawn, by group."),
    "doctor": LazyCommand("joulie.cli.doctor.command", LOOK, "What is wrong with an installation, and how to fix it."),
    "catalogue": LazyCommand("joulie.cli.inspect.catalogue", LOOK, "The CPUs and GPUs that Joulie knows."),
    "pin": LazyCommand("joulie.cli.act.pin", ACT, "Hold a node at full power or under a cap."),
    "unpin": LazyCommand("joulie.cli.act.unpin", ACT, "Let the policy decide about a node again."),
    "pause": LazyCommand("joulie.cli.act.pause", ACT, "Stop raising caps under power budgets; cuts go on."),
    "resume": LazyCommand("joulie.cli.act.resume", ACT, "Let power budgets raise caps again."),
    "cleanup": LazyCommand("joulie.cli.act.cleanup", ACT, "Undo everything that Joulie wrote to a cluster."),
    "demo": LazyCommand("joulie.cli.demo.command", RUN, "A live cluster in this terminal and in a browser."),
    "tour": LazyCommand("joulie.cli.demo.tour", RUN, "What Joulie decides, shown on a bundled example."),
    "lab": LazyCommand("joulie.cli.lab.group", RUN, "Compare policies on simulated data centres."),
    "operator": LazyCommand("joulie.cli.serve.operator", RUN, "Plans a live cluster and writes the result."),
    "agent": LazyCommand("joulie.cli.serve.agent", RUN, "Holds a node, or a pool of nodes, to its target."),
    "simulator": LazyCommand("joulie.cli.serve.simulator", RUN, "Simulated hardware behind HTTP."),
    "extender": LazyCommand("joulie.cli.serve.extender", RUN, "Filters and scores nodes for kube-scheduler."),
    "config": LazyCommand("joulie.cli.setup.config", SET_UP, "Every setting with value, default and meaning."),
    "crds": LazyCommand("joulie.cli.setup.crds", SET_UP, "The custom resource definitions, for kubectl apply."),
    "completion": LazyCommand("joulie.cli.setup.completion", SET_UP, "Tab completion for bash, zsh or fish."),
}

_EPILOG = """\b
Examples:
  joulie demo
  kubectl get nodes,pods -A -o json | joulie plan -f -
  joulie explain node gpu-b2 -f cluster.yaml

\b
Every command has its own help: joulie plan --help
Invalid input exits with code 2 and one line that names file, object and field.
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

    Some nodes run at full power (performance), others under a power cap (eco). Joulie decides which nodes
    run in which mode, predicts how much power and cooling each has left, and scores nodes for pods. Every decision
    comes with its reason. Nothing has to be installed in a cluster to see what Joulie would do.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())

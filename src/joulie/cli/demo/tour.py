"""`joulie tour`: plan, power budget and a pod's placement on a bundled example cluster, and what to try next."""

from __future__ import annotations

import math

import click
from rich.console import Console
from rich.text import Text

from joulie import demo
from joulie.cli.context import LoadedCluster, read_cluster
from joulie.cli.options import ObjectSource, no_color_option
from joulie.cli.style import QUIET, STRONG, kilowatts
from joulie.cli.views.candidates import candidates
from joulie.cli.views.plan_table import plan_table, summary
from joulie.cli.views.pod_placement import print_story
from joulie.model.rfc3339 import parse_time_s

TRY_NEXT = (
    ("joulie tour --print | joulie explain node gpu-b2 -f -", "why a node is draining"),
    ("STATIC_HP_FRAC=0.25 joulie tour", "fewer nodes at full power"),
    ("kubectl get nodes,pods -A -o json | joulie plan -f - --selector ''", "your own cluster"),
)


_EPILOG = """\b
Examples:
  joulie tour
  STATIC_HP_FRAC=0.25 joulie tour
  joulie tour --print > cluster.yaml
  joulie tour --print | joulie twin -f - --ambient 35
"""


@click.command(epilog=_EPILOG)
@click.option("--print", "print_yaml", is_flag=True, help="Print the example's manifests.")
@click.option("--files", is_flag=True, help="Print the path of the example's manifests.")
@no_color_option
def command(print_yaml: bool, files: bool, no_color: bool) -> None:
    """A tour on a bundled example cluster.

    Thirteen nodes in three racks: which nodes would be capped and why, how that changes the power budget, and where a
    pod that waits for GPUs would go. Nothing is installed or changed. Settings are read from the environment, so you
    can try out any of them.
    """
    if files:
        click.echo(demo.example_path())
    elif print_yaml:
        click.echo(demo.example_yaml(), nl=False)
    else:
        from joulie.cli.output import Output

        show_tour(Output("table", no_color).console())


def show_tour(console: Console) -> None:
    """Uses the same code as the commands that it mentions."""
    source = ObjectSource((str(demo.example_path()),), parse_time_s(demo.NOW))
    cluster = read_cluster(source)
    nodes = cluster.snapshot.nodes
    racks = {node.labels.get("joulie.io/rack") for node in nodes.values()}
    console.print(Text.assemble(("Joulie", STRONG), f" · example cluster · {len(nodes)} nodes in {len(racks)} racks"))

    _chapter(console, "Which nodes to cap, and why", "joulie plan")
    plan_table(cluster.plan, cluster).print(console)
    console.print()
    console.print(summary(cluster.plan), soft_wrap=True)
    console.print(power_change(cluster), soft_wrap=True)

    _chapter(console, "Where a waiting pod would go under this plan", "joulie explain pod")
    print_story(console, candidates(source, demo.PENDING_POD, None, what_if=True), None)

    _chapter(console, "Try next", "")
    widest = max(len(command) for command, _ in TRY_NEXT)
    for command, meaning in TRY_NEXT:
        console.print(Text.assemble(f"  {command:<{widest}}  ", (meaning, QUIET)), soft_wrap=True)


def power_change(cluster: LoadedCluster) -> str:
    """The power that the nodes in scope may draw: according to their current twins, and as planned."""
    twins = cluster.plan.twins
    full_w, planned_w = math.fsum(twins.columns["max_w"]), math.fsum(twins.columns["capped_w"])
    now_w = math.fsum(
        _allowed_now_w(cluster, node, max_w) for node, max_w in zip(twins.nodes, twins.columns["max_w"], strict=True)
    )
    return f"caps allow: {kilowatts(now_w)} now → {kilowatts(planned_w)} planned, of {kilowatts(full_w)} uncapped"


def _allowed_now_w(cluster: LoadedCluster, node: str, max_w: float) -> float:
    twin = cluster.snapshot.twins.get(node)
    power = twin.status.power_measurement if twin and twin.status else None
    allowed_w = power.node_capped_power_w if power else None
    return max_w if allowed_w is None else allowed_w


def _chapter(console: Console, title: str, command: str) -> None:
    console.print()
    console.print(Text.assemble((title, STRONG), (f"   {command}" if command else "", QUIET)))

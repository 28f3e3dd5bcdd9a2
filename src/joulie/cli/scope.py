"""Says why a plan is empty, and what to do about it."""

from __future__ import annotations

import click

from joulie.cli.context import Cluster


def say_that_no_node_is_in_scope(cluster: Cluster) -> None:
    """On standard error: an empty plan is no fault, but it is seldom what a person wants to see."""
    nodes = cluster.snapshot.nodes
    settings = cluster.settings.plan
    taken = [node for node in nodes.values() if settings.node_selector.matches(node.labels)]
    count = f"{len(nodes)} node{'s' * (len(nodes) != 1)}"
    if not nodes:
        said = "there is no Node among the objects"
    elif taken:
        said = f"all nodes that the selector takes ({len(taken)} of {count}) are reserved or cordoned"
    else:
        said = f"the selector {settings.node_selector.text!r} matches none of {count}; to plan all nodes: --selector ''"
    click.echo(f"joulie: {said}", err=True)

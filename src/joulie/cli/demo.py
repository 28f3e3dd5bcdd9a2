"""`joulie demo`: the decision core on a bundled example cluster."""

from __future__ import annotations

import click

from joulie.cli.options import no_color_option

_EPILOG = """\b
Examples:
  joulie demo
  STATIC_HP_FRAC=0.25 joulie demo
  joulie demo --print > cluster.yaml
  joulie demo --print | joulie twin -f - --ambient 35
"""


@click.command(epilog=_EPILOG)
@click.option("--print", "print_yaml", is_flag=True, help="Print the example's manifests, to play with.")
@click.option("--files", is_flag=True, help="Print where the example's manifests lie.")
@no_color_option
def command(print_yaml: bool, files: bool, no_color: bool) -> None:
    """A tour on a bundled example cluster.

    Thirteen nodes in three racks: what would be capped and why, what that does to the power budget, and where a pod
    that waits for GPUs would go. Nothing is installed and nothing is changed. Settings come from the environment, so
    each can be tried out.
    """
    from joulie import demo

    if files:
        click.echo(demo.example_path())
    elif print_yaml:
        click.echo(demo.example_yaml(), nl=False)
    else:
        from joulie.cli.output import Output
        from joulie.cli.tour import show_tour

        show_tour(Output("table", no_color).console())

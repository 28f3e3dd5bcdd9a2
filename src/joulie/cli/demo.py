"""`joulie demo`: a live cluster with everything that Joulie has, in one command."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from joulie.cli.demo_options import NumberRange, policy_option, seed_option
from joulie.cli.lazy import LazyGroup, Listed
from joulie.cli.options import duration_option, no_color_option

if TYPE_CHECKING:
    from joulie.cli.demo_live_screen import LiveScreen
    from joulie.cli.demo_screen import PlainScreen
    from joulie.demo.looking import Options
    from joulie.demo.performance import Performed
    from joulie.demo.tuning import Ports

UNATTENDED_S = 120.0  # without a terminal nobody would stop it


class Given(NamedTuple):
    """What was asked for on the command line."""

    speed: float
    for_s: float | None
    seed: int
    port: int
    no_browser: bool
    scene: str
    policy: str | None
    metrics_ports: int | None
    show_ports: bool
    verbose: bool
    no_color: bool


TABLE = {"replay": Listed("joulie.cli.demo_replay", "Check its claim", "The demo's energy, with Joulie and without.")}

_EPILOG = """\b
Examples:
  joulie demo                             until Ctrl-C, at 20 × speed
  joulie demo --speed 60 --for 1m
  joulie demo --scene afternoon --policy static_partition
  STATIC_HP_FRAC=0.5 joulie demo --policy static_partition
  joulie demo replay --seed 7             the summary's numbers once more

\b
Settings of operator and extender that are in the environment count here, too.
"""


@click.group(cls=LazyGroup, table=TABLE, invoke_without_command=True, subcommand_metavar="[replay …]", epilog=_EPILOG)
@click.option(
    "--speed",
    type=NumberRange(1, 120),
    default=20.0,
    show_default=True,
    help="Simulated seconds in a real one; a day of the demo takes 40 simulated minutes.",
)
@duration_option("--for", "for_s", help="Stop by itself after this time.  [default: 2m, on a terminal never]")
@seed_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8090,
    show_default=True,
    help="Of the dashboard on 127.0.0.1; 0 takes any, and one that is taken the next.",
)
@click.option("--no-browser", is_flag=True, help="Do not open the dashboard in a browser.")
@click.option(
    "--scene",
    default="day",
    show_default=True,
    metavar="NAME",
    help="What is played, again and again: day, morning, afternoon or night.",
)
@policy_option
@click.option(
    "--metrics-ports",
    type=click.IntRange(1024, 65500),
    metavar="BASE",
    help="Metrics at BASE (operator), BASE+1 (agent), BASE+2 (extender), BASE+3 (simulator), BASE+4… (more agents).",
)
@click.option("--ports", "show_ports", is_flag=True, help="Print where each part answers.")
@click.option("--verbose", is_flag=True, help="The parts' own logs on standard error, and --ports.")
@no_color_option
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """A live cluster in this terminal and in a browser.

    Forty simulated nodes in four racks with real operator, agents, extender and dashboard; pods come, run and end over
    a short day on which it gets hot, an agent dies and somebody pins a node. Nothing is installed. At the end it says
    what was used, and what the same work takes without Joulie.
    """
    if ctx.invoked_subcommand is None:
        _live(Given(**given))
    elif any(ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in given):
        name = ctx.invoked_subcommand
        raise click.UsageError(f"options of {name} come after it, and those of the live demo do not go with it")


def _live(given: Given) -> None:
    from joulie import plugins
    from joulie.cli.demo_summary import port_lines, summary_text
    from joulie.demo.day import scene_named
    from joulie.demo.looking import Options
    from joulie.demo.ports import choose_ports
    from joulie.demo.tuning import pool_agents, replay_settings
    from joulie.logs import start_logging

    options = Options(given.speed, given.seed, scene_named(given.scene), given.policy)
    plugins.policy(replay_settings(os.environ, given.policy)[0].decision.plan.policy_type)  # wrong ones are said first
    start_logging("info" if given.verbose else "error")
    ports = choose_ports(given.port, given.metrics_ports, pool_agents(given.speed))
    if given.port not in (0, ports.dashboard):
        click.echo(f"port {given.port} is taken, so the dashboard is at {ports.dashboard}")
    url = f"http://127.0.0.1:{ports.dashboard}/"
    click.echo(f"Joulie demo · dashboard at {url} · seed {given.seed}, {given.speed:g} × speed · Ctrl-C ends it")
    if given.show_ports or given.verbose:
        click.echo(port_lines(ports))
    sys.stdout.flush()
    terminal = sys.stdout.isatty()
    browse = terminal and not given.no_browser and not os.environ.get("CI") and _has_windows()
    until_s = UNATTENDED_S if given.for_s is None and not terminal else given.for_s
    performed = _perform(options, ports, until_s, _screen(url, given.no_color), url if browse else None)
    click.echo(summary_text(performed, options, os.environ))


def _has_windows() -> bool:
    """Else a browser for text might take over the terminal."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _screen(url: str, no_color: bool) -> LiveScreen | PlainScreen:
    from joulie.cli.demo_screen import PlainScreen

    if not sys.stdout.isatty():
        return PlainScreen()
    from joulie.cli.demo_live_screen import LiveScreen
    from joulie.cli.output import Output

    return LiveScreen(Output("table", no_color).console(), url)


def _perform(
    options: Options, ports: Ports, for_s: float | None, screen: LiveScreen | PlainScreen, browse: str | None
) -> Performed:
    import asyncio
    import threading
    import webbrowser

    from joulie.demo.performance import perform

    def ready() -> None:
        if browse is not None:  # which may take its time
            threading.Thread(target=webbrowser.open, args=(browse,), daemon=True).start()

    with screen:
        performed = asyncio.run(perform(options, ports, os.environ, screen, for_s, ready))
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends: one more Ctrl-C must not cut the summary short
        return performed

"""`joulie demo`: a live cluster with all of Joulie's components, in one command."""

from __future__ import annotations

import math
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from joulie.cli.lazy import LazyCommand, LazyGroup
from joulie.cli.options import duration_option, no_color_option

if TYPE_CHECKING:
    from joulie.cli.demo.screens import LiveScreen, PlainScreen
    from joulie.demo.live.interface import DemoOptions
    from joulie.demo.live.session import SessionResult
    from joulie.demo.settings import DemoPorts

UNATTENDED_S = 120.0  # without a terminal there may be no way to stop it


class NumberRange(click.FloatRange):
    """A float range that rejects `nan`, which passes every comparison with a bound."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


class DemoArguments(NamedTuple):
    """The options of the live demo."""

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


seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    default=7,
    show_default=True,
    help="Random seed: which pods arrive when.",
)
policy_option = click.option("--policy", metavar="NAME", help="The policy to plan with.  [default: queue_aware_v1]")

TABLE = {
    "replay": LazyCommand(
        "joulie.cli.demo.replay", "Check the claim", "Compare the demo's energy with and without Joulie."
    )
}

_EPILOG = """\b
Examples:
  joulie demo                             until Ctrl-C, at 20 × speed
  joulie demo --speed 60 --for 1m
  joulie demo --scene afternoon --policy static_partition
  joulie demo --scene feed-cut            one of two feeds is cut by 30 % for a while
  STATIC_HP_FRAC=0.5 joulie demo --policy static_partition
  joulie demo replay --seed 7             compute the summary's numbers again
  joulie demo replay --scene feed-cut     whether the limits held, and what the cut cost

\b
Settings of operator and extender in the environment apply here, too.
"""


@click.group(cls=LazyGroup, table=TABLE, invoke_without_command=True, subcommand_metavar="[replay …]", epilog=_EPILOG)
@click.option(
    "--speed",
    type=NumberRange(1, 120),
    default=20.0,
    show_default=True,
    help="Simulated seconds per real second; the demo's day lasts 40 simulated minutes.",
)
@duration_option("--for", "for_s", help="Stop after this time.  [default: never on a terminal, else 2m]")
@seed_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8090,
    show_default=True,
    help="Dashboard port on 127.0.0.1; 0 picks any free port. If it is in use, the next free one is taken.",
)
@click.option("--no-browser", is_flag=True, help="Do not open the dashboard in a browser.")
@click.option(
    "--scene",
    default="day",
    show_default=True,
    metavar="NAME",
    help="The scene to repeat: day, morning, afternoon, night or feed-cut.",
)
@policy_option
@click.option(
    "--metrics-ports",
    type=click.IntRange(1024, 65500),
    metavar="BASE",
    help="Metrics at BASE (operator), BASE+1 (agent), BASE+2 (extender), BASE+3 (simulator), BASE+4… (more agents).",
)
@click.option("--ports", "show_ports", is_flag=True, help="Print the address of each component.")
@click.option("--verbose", is_flag=True, help="Show the components' logs on standard error; implies --ports.")
@no_color_option
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """A live cluster in this terminal and in a browser.

    Forty simulated nodes in four racks, with the real operator, agents, extender and dashboard. Over a short day pods
    arrive, run and finish; it gets hot, an agent crashes, a node is pinned, and one of two feeds is cut by 30 % for a
    while: the caps follow, and later its watts are shared again. Nothing is installed. At the end it shows the energy
    used, how the cut went, and what the same work would take without Joulie.
    """
    if ctx.invoked_subcommand is None:
        _live(DemoArguments(**given))
    elif any(ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in given):
        name = ctx.invoked_subcommand
        raise click.UsageError(f"options of {name} go after it; options of the live demo do not apply to it")


def _live(given: DemoArguments) -> None:
    from joulie import plugins
    from joulie.cli.demo.summary import port_lines, summary_text
    from joulie.demo.live.interface import DemoOptions
    from joulie.demo.ports import choose_ports
    from joulie.demo.scenario.day import scene_named
    from joulie.demo.settings import pool_agents, replay_settings
    from joulie.logs import start_logging

    options = DemoOptions(given.speed, given.seed, scene_named(given.scene), given.policy)
    plugins.policy(
        replay_settings(os.environ, given.policy)[0].decision.plan.policy_type
    )  # reports an unknown policy before anything starts
    start_logging("info" if given.verbose else "error")
    ports = choose_ports(given.port, given.metrics_ports, pool_agents(given.speed))
    if given.port not in (0, ports.dashboard):
        click.echo(f"port {given.port} is in use; the dashboard is on port {ports.dashboard}")
    url = f"http://127.0.0.1:{ports.dashboard}/"
    click.echo(f"Joulie demo · dashboard at {url} · seed {given.seed}, {given.speed:g} × speed · Ctrl-C to stop")
    if given.show_ports or given.verbose:
        click.echo(port_lines(ports))
    sys.stdout.flush()
    terminal = sys.stdout.isatty()
    browse = terminal and not given.no_browser and not os.environ.get("CI") and _has_display()
    until_s = UNATTENDED_S if given.for_s is None and not terminal else given.for_s
    performed = _perform(options, ports, until_s, _screen(url, given.no_color), url if browse else None)
    click.echo(summary_text(performed, options, os.environ))


def _has_display() -> bool:
    """Whether there is a graphical session; without one, a text browser might take over the terminal."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _screen(url: str, no_color: bool) -> LiveScreen | PlainScreen:
    from joulie.cli.demo.screens import PlainScreen

    if not sys.stdout.isatty():
        return PlainScreen()
    from joulie.cli.demo.screens import LiveScreen
    from joulie.cli.output import Output

    return LiveScreen(Output("table", no_color).console(), url)


def _perform(
    options: DemoOptions, ports: DemoPorts, for_s: float | None, screen: LiveScreen | PlainScreen, browse: str | None
) -> SessionResult:
    import asyncio
    import threading
    import webbrowser

    from joulie.demo.live.session import perform

    def ready() -> None:
        if browse is not None:  # may take a while
            threading.Thread(target=webbrowser.open, args=(browse,), daemon=True).start()

    with screen:
        performed = asyncio.run(perform(options, ports, os.environ, screen, for_s, ready))
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # shutting down: another Ctrl-C must not cut the summary short
        return performed

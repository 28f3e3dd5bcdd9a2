"""The demo in plain lines, for pipes, logs and CI, and what both kinds of screens say."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from joulie.cli.style import kilowatts
from joulie.demo.summary import clock
from joulie.model.names import DRAINING, ECO, PERFORMANCE

if TYPE_CHECKING:
    from joulie.demo.looking import Look

LINE_EVERY_S = 5.0  # real
STATES = (PERFORMANCE, ECO, DRAINING)


def figures(look: Look) -> tuple[str, str]:
    """The cluster in two lines: what it draws, and what it does."""
    cluster = look.cluster
    budget_w = cluster.facts.budget_w
    power = kilowatts(cluster.power_w) + (f" of {kilowatts(budget_w)}" if budget_w else "")
    pue = f"PUE {look.pue:.2f}" if look.pue else "PUE –"
    states = ", ".join(f"{cluster.states.get(state, 0)} {state}" for state in STATES)
    pods = f"pods {look.running} running, {look.waiting} waiting, {look.done} done"
    air = f"{look.inlet_c:.1f} °C inlet, {look.outside_c:.0f} °C outside"
    return f"{power} · {pue} · {air}", f"{states} · enforced {cluster.enforced}/{cluster.asked} · {pods}"


class PlainScreen:
    """Lines with the simulated time, for pipes, logs and CI."""

    def __init__(self) -> None:
        self._now = "0:00"
        self._next_line_s = 0.0

    def __enter__(self) -> PlainScreen:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left to do."""

    def told(self, line: str) -> None:
        self._say(f"· {line}")

    def changed(self, node: str, before: str, after: str) -> None:
        self._say(f"  {node}: {before} → {after}")

    def show(self, look: Look) -> None:
        self._now = clock(look.elapsed_s)
        if time.monotonic() >= self._next_line_s:
            self._next_line_s = time.monotonic() + LINE_EVERY_S
            self._say(f"{look.part:<9} {' · '.join(figures(look))}")

    def waiting_for_replays(self) -> None:
        click.echo("waiting for the replays with and without Joulie …")

    def _say(self, line: str) -> None:
        click.echo(f"{self._now:>6}  {line}")

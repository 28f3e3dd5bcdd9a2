"""The demo in the terminal: a live view for people, and plain lines for pipes, logs and CI."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from joulie.cli.style import kilowatts
from joulie.demo.summary import clock
from joulie.model.names import DRAINING, ECO, PERFORMANCE, UNKNOWN
from joulie.overview.colours import FAULT, STATE_COLOURS

if TYPE_CHECKING:
    from joulie.demo.live.interface import DemoView
    from joulie.overview.budgets import GroupView

LINE_EVERY_S = 5.0  # in real time
STATES = (PERFORMANCE, ECO, DRAINING)
KEPT_LINES, SHOWN_FINDINGS = 8, 3
TILES = {PERFORMANCE: "■", ECO: "□", DRAINING: "◧", UNKNOWN: "·"}  # distinguishable without colours, too
_BARS = "▁▂▃▄▅▆▇█"


def figures(look: DemoView) -> tuple[str, ...]:
    """The cluster in a few lines: power and temperatures, budgets where there are any, then states and pods."""
    cluster = look.cluster
    power = kilowatts(cluster.power_w)
    pue = f"PUE {look.pue:.2f}" if look.pue else "PUE –"
    states = ", ".join(f"{cluster.states.get(state, 0)} {state}" for state in STATES)
    pods = f"pods {look.running} running, {look.waiting} waiting, {look.done} done"
    air = f"{look.inlet_c:.1f} °C inlet, {look.outside_c:.0f} °C outside"
    limits = [f"{group.name} {_drawn(group)} of {kilowatts(group.limit_w)}" for group in _groups(look)]
    budgets = [" · ".join(limits)] if limits else []
    return f"{power} · {pue} · {air}", *budgets, f"{states} · enforced {cluster.enforced}/{cluster.asked} · {pods}"


def _groups(look: DemoView) -> list[GroupView]:
    return [group for budget in look.cluster.budgets for group in budget.groups]


def _drawn(group: GroupView) -> str:
    return "–" if group.measured_w is None else kilowatts(group.measured_w)


class PlainScreen:
    """Lines with the simulated time, for pipes, logs and CI."""

    def __init__(self) -> None:
        self._now = "0:00"
        self._next_line_s = 0.0

    def __enter__(self) -> PlainScreen:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to clean up."""

    def told(self, line: str) -> None:
        self._say(f"· {line}")

    def changed(self, node: str, before: str, after: str) -> None:
        self._say(f"  {node}: {before} → {after}")

    def show(self, look: DemoView) -> None:
        self._now = clock(look.elapsed_s)
        if time.monotonic() >= self._next_line_s:
            self._next_line_s = time.monotonic() + LINE_EVERY_S
            self._say(f"{look.part:<9} {' · '.join(figures(look))}")

    def waiting_for_replays(self) -> None:
        click.echo("waiting for the replays with and without Joulie …")

    def _say(self, line: str) -> None:
        click.echo(f"{self._now:>6}  {line}")


class LiveScreen:
    """Power, racks as coloured tiles, what needs attention, and recent events."""

    def __init__(self, console: Console, url: str) -> None:

        self._url = url
        self._live = Live(console=console, refresh_per_second=4, transient=True)
        self._lines: deque[tuple[str, str]] = deque(maxlen=KEPT_LINES)
        self._power_w: deque[float] = deque(maxlen=30)
        self._now = "0:00"
        self._sampled_s = 0.0

    def __enter__(self) -> LiveScreen:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def told(self, line: str) -> None:
        self._lines.append((self._now, line))

    def changed(self, node: str, before: str, after: str) -> None:
        self._lines.append((self._now, f"{node}: {before} → {after}"))

    def waiting_for_replays(self) -> None:
        self._live.stop()
        click.echo("stopped; waiting for the replays with and without Joulie (Ctrl-C to skip) …")

    def show(self, look: DemoView) -> None:
        self._now = clock(look.elapsed_s)
        if time.monotonic() - self._sampled_s >= 1.0:
            self._sampled_s = time.monotonic()
            self._power_w.append(look.cluster.power_w)
        self._live.update(self._view(look))

    def _view(self, look: DemoView) -> Group:

        head = Text.assemble(
            ("Joulie", "bold"), f" · {look.part} · {self._now} simulated · {self._url} · ", self._curve()
        )
        history = [Text.assemble((f"{at:>6}  ", "dim"), line, overflow="ellipsis") for at, line in self._lines]
        return Group(
            head,
            *(Text(line) for line in figures(look)),
            Text(),
            *self._racks(look),
            _legend(),
            *(Text(f"! {one.node}: {one.text}", style=FAULT) for one in look.cluster.attention[:SHOWN_FINDINGS]),
            Text(),
            *history,
        )

    def _curve(self) -> str:
        most_w = max(self._power_w, default=0.0) or 1.0
        return "".join(_BARS[min(7, int(8 * watts / most_w))] for watts in self._power_w)

    def _racks(self, look: DemoView) -> list[Text]:

        faults = {finding.node for finding in look.cluster.attention if finding.severity == "fault"}
        lines = []
        for rack in look.cluster.racks:
            line = Text(f"{rack.name:<8} {kilowatts(rack.power_w):>8} of {kilowatts(rack.capacity_w)}  ")
            for name in rack.nodes:
                line.append_text(_tile(look.nodes[name].state, name in faults))
            lines.append(line)
        return lines


def _tile(state: str, fault: bool) -> Text:
    return Text("▨ ", FAULT) if fault else Text(f"{TILES[state]} ", STATE_COLOURS[state])


def _legend() -> Text:
    line = Text(" " * 28)
    for state in STATES:
        line.append(f"{TILES[state]} {state}  ", style=STATE_COLOURS[state])
    line.append("▨ needs attention", style=FAULT)
    return line

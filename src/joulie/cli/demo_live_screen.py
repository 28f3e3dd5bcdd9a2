"""The demo on a terminal: a compact live view."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from joulie.cli.demo_screen import STATES, figures
from joulie.cli.style import kilowatts
from joulie.demo.summary import clock
from joulie.model.names import DRAINING, ECO, PERFORMANCE, UNKNOWN
from joulie.overview.colours import FAULT, STATE_COLOURS

if TYPE_CHECKING:
    from joulie.demo.looking import Look

KEPT_LINES, SHOWN_FINDINGS = 8, 3
TILES = {PERFORMANCE: "■", ECO: "□", DRAINING: "◧", UNKNOWN: "·"}  # told apart without colours, too
_BARS = "▁▂▃▄▅▆▇█"


class LiveScreen:
    """Power, racks as coloured tiles, what needs attention, and what happened."""

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
        click.echo("stopped; waiting for the replays with and without Joulie (Ctrl-C: do not wait) …")

    def show(self, look: Look) -> None:
        self._now = clock(look.elapsed_s)
        if time.monotonic() - self._sampled_s >= 1.0:
            self._sampled_s = time.monotonic()
            self._power_w.append(look.cluster.power_w)
        self._live.update(self._view(look))

    def _view(self, look: Look) -> Group:

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

    def _racks(self, look: Look) -> list[Text]:

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

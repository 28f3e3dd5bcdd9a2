"""The live view of `top`: watches keep the state, a clock draws, keys change the order."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import sys
import termios
import time
import tty
from collections.abc import Iterator

from rich.console import Console
from rich.live import Live as Screen

from joulie.cli.connection import Connection, on_connection
from joulie.cli.context import Cluster, live_cluster
from joulie.cli.live import read_live, telemetry_of
from joulie.cli.options import Source
from joulie.cli.status_view import seen
from joulie.cli.top_lines import frame
from joulie.cluster.port import Resource, Synced
from joulie.cluster.slim import DECODERS
from joulie.operator.state import WATCHED, ClusterState

DRAW_S = 0.5
KEYS = {"p": "power", "h": "headroom", "t": "heat", "n": "name"}


class Top:
    """What is known, and how it is shown."""

    def __init__(self, cluster: Cluster, sort: str) -> None:
        self.cluster = cluster
        self.sort = sort
        self.quit = asyncio.Event()
        self.state = ClusterState(lambda resource, key, reason: None)  # what is broken is doctor's to tell
        self.heard_at_s = time.monotonic()

    async def watch(self, connection: Connection, resource: Resource) -> None:
        async for changes in connection.cluster.watch(resource, DECODERS[resource]):
            self.state.take(resource, changes)
            self.heard_at_s = time.monotonic()

    def press(self, key: str) -> None:
        if key in ("q", "\x03", "\x1b"):
            self.quit.set()
        self.sort = KEYS.get(key, self.sort)

    def now(self) -> Cluster:
        """The cluster as the watches know it; before they do, as it was read."""
        snapshot = self.cluster.snapshot
        if self.state.synced:
            snapshot = self.state.snapshot(telemetry_of({}))
        return dataclasses.replace(self.cluster, snapshot=snapshot, now_s=time.time())


def run(source: Source, console: Console, sort: str) -> None:
    """Until q or Ctrl-C; the terminal is left as it was."""

    async def work(connection: Connection) -> None:
        top = Top(live_cluster(source, await read_live(connection)), sort)
        missing = top.cluster.live.missing if top.cluster.live else ()
        watched = [resource for resource in WATCHED if resource.kind not in missing]
        for resource in WATCHED:
            if resource not in watched:  # there is none, and that is known
                top.state.take(resource, [Synced(0)])
        tasks = [asyncio.create_task(top.watch(connection, resource)) for resource in watched]
        try:
            await _draw(top, console)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    on_connection(source.kubeconfig, source.context, work)


async def _draw(top: Top, console: Console) -> None:
    loop = asyncio.get_running_loop()
    with _single_keys() as keyboard, Screen(console=console, screen=True, auto_refresh=False) as screen:
        loop.add_reader(keyboard, lambda: top.press(sys.stdin.read(1)))
        try:
            while not top.quit.is_set():
                began_s, size = time.monotonic(), console.size
                silent_s = began_s - top.heard_at_s
                screen.update(frame(seen(top.now()), top.sort, size.width, size.height, silent_s), refresh=True)
                took_s = time.monotonic() - began_s
                with contextlib.suppress(TimeoutError):  # a large cluster is drawn less often
                    await asyncio.wait_for(top.quit.wait(), max(DRAW_S, 4 * took_s))
        finally:
            loop.remove_reader(keyboard)


@contextlib.contextmanager
def _single_keys() -> Iterator[int]:
    """The terminal gives each key at once and does not show it."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard)
        yield keyboard
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)

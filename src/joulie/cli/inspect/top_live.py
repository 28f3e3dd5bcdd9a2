"""The live view of `top`: watches update the state, a timer redraws, keys change the sort order."""

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

from joulie.cli.connection import ClusterConnection, on_connection
from joulie.cli.context import LoadedCluster, live_cluster
from joulie.cli.inspect.top_table import frame
from joulie.cli.live import read_live, telemetry_of
from joulie.cli.options import ObjectSource
from joulie.cli.views.overview import overview_of
from joulie.cluster.decoding.decoders import DECODERS
from joulie.cluster.port import Resource, Synced
from joulie.operator.state import WATCHED, ClusterState

DRAW_S = 0.5
KEYS = {"p": "power", "h": "headroom", "t": "heat", "n": "name"}


class TopScreen:
    """The watched state and the sort order."""

    def __init__(self, cluster: LoadedCluster, sort: str) -> None:
        self.cluster = cluster
        self.sort = sort
        self.quit = asyncio.Event()
        self.state = ClusterState(lambda resource, key, reason: None)  # `doctor` reports undecodable objects
        self.heard_at_s = time.monotonic()

    async def watch(self, connection: ClusterConnection, resource: Resource) -> None:
        async for changes in connection.cluster.watch(resource, DECODERS[resource]):
            self.state.take(resource, changes)
            self.heard_at_s = time.monotonic()

    def press(self, key: str) -> None:
        if key in ("q", "\x03", "\x1b"):
            self.quit.set()
        self.sort = KEYS.get(key, self.sort)

    def now(self) -> LoadedCluster:
        """The cluster as last watched; until the watches have synced, as it was listed."""
        snapshot = self.cluster.snapshot
        if self.state.synced:
            snapshot = self.state.snapshot(telemetry_of({}))
        return dataclasses.replace(self.cluster, snapshot=snapshot, now_s=time.time())


def run(source: ObjectSource, console: Console, sort: str) -> None:
    """Runs until q or Ctrl-C; restores the terminal."""

    async def work(connection: ClusterConnection) -> None:
        top = TopScreen(live_cluster(source, await read_live(connection)), sort)
        missing = top.cluster.live.missing if top.cluster.live else ()
        watched = [resource for resource in WATCHED if resource.kind not in missing]
        for resource in WATCHED:
            if resource not in watched:  # not served, so there are none
                top.state.take(resource, [Synced(0)])
        tasks = [asyncio.create_task(top.watch(connection, resource)) for resource in watched]
        try:
            await _draw(top, console)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    on_connection(source.kubeconfig, source.context, work)


async def _draw(top: TopScreen, console: Console) -> None:
    loop = asyncio.get_running_loop()
    with _single_keys() as keyboard, Screen(console=console, screen=True, auto_refresh=False) as screen:
        loop.add_reader(keyboard, lambda: top.press(sys.stdin.read(1)))
        try:
            while not top.quit.is_set():
                began_s, size = time.monotonic(), console.size
                silent_s = began_s - top.heard_at_s
                screen.update(frame(overview_of(top.now()), top.sort, size.width, size.height, silent_s), refresh=True)
                took_s = time.monotonic() - began_s
                with contextlib.suppress(TimeoutError):  # redraw a large cluster less often
                    await asyncio.wait_for(top.quit.wait(), max(DRAW_S, 4 * took_s))
        finally:
            loop.remove_reader(keyboard)


@contextlib.contextmanager
def _single_keys() -> Iterator[int]:
    """Makes the terminal deliver each key at once, without echo."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard)
        yield keyboard
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)

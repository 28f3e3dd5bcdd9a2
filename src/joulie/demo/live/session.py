"""One session of the live demo: start, show, stop by time or signal, and the replays that accompany it."""

from __future__ import annotations

import asyncio
import signal
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from joulie.demo.live.interface import DemoMeasurements, DemoOptions, DemoView
from joulie.demo.live.live_demo import LiveDemo
from joulie.demo.live.replay_process import Replays, ReplaysFailedError, run_replays
from joulie.demo.settings import DemoPorts

POLL_S = 0.25  # between two looks at the cluster


class DemoScreen(Protocol):
    """Where the demo is shown."""

    def told(self, line: str) -> None:
        """An event of the story happened."""

    def changed(self, node: str, before: str, after: str) -> None:
        """A node's state changed."""

    def show(self, look: DemoView) -> None: ...

    def waiting_for_replays(self) -> None: ...


class SessionResult(msgspec.Struct, frozen=True):
    """What a session leaves behind."""

    measured: DemoMeasurements
    replays: Replays | None  # None: they were not waited for
    why_none: str = ""


async def perform(
    options: DemoOptions,
    ports: DemoPorts,
    env: Mapping[str, str],
    screen: DemoScreen,
    for_s: float | None,
    ready: Callable[[], None],
) -> SessionResult:
    """Until the time is over or a signal comes; a second signal ends the wait for the replays, too."""
    stop, hurry = asyncio.Event(), asyncio.Event()

    def end() -> None:
        (hurry if stop.is_set() else stop).set()

    def leave() -> None:
        stop.set()
        hurry.set()

    _on_signals(end, leave)
    told: deque[str] = deque()
    demo = LiveDemo(options, ports, env, told.append)
    replays = asyncio.create_task(run_replays(options))
    showing = asyncio.create_task(_show(demo, told, screen))
    showing.add_done_callback(lambda _: stop.set())  # the screen failed, so nothing can be seen any more
    announcing = asyncio.create_task(_announce(demo, ready))
    if for_s is not None:
        asyncio.get_running_loop().call_later(for_s, stop.set)
    try:
        await demo.run(stop)
        if showing.done():
            showing.result()
        await _end(showing, announcing)
        if not replays.done():
            screen.waiting_for_replays()
        hurried = asyncio.create_task(hurry.wait())
        await asyncio.wait({replays, hurried}, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        if not replays.done():
            return SessionResult(demo.measured(), None, "they were not waited for")
        return SessionResult(demo.measured(), replays.result())
    except ReplaysFailedError as error:
        return SessionResult(demo.measured(), None, str(error))
    finally:
        await _end(showing, announcing, replays)


async def _end(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _show(demo: LiveDemo, told: deque[str], screen: DemoScreen) -> None:
    states: dict[str, str] = {}
    while True:
        await asyncio.sleep(POLL_S)
        while told:
            screen.told(told.popleft())
        look = demo.look()
        if look is None:
            continue
        for node in look.nodes.values():
            before = states.get(node.name)
            if before is not None and before != node.state and "unknown" not in (before, node.state):
                screen.changed(node.name, before, node.state)
            states[node.name] = node.state
        screen.show(look)


async def _announce(demo: LiveDemo, ready: Callable[[], None]) -> None:
    """As soon as the page answers."""
    while True:
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", demo.ports.dashboard)
            writer.close()
            await writer.wait_closed()
            break
        await asyncio.sleep(0.05)
    ready()


def _on_signals(end: Callable[[], None], leave: Callable[[], None]) -> None:
    """`leave`: the terminal was closed, so there is nothing to wait for; `nohup` is respected.

    SIGINT gets a handler of the process, not of the loop: a closing loop puts Python's own back, and one more
    Ctrl-C in that moment would end the process before its summary.
    """
    loop = asyncio.get_running_loop()

    def end_soon(*_: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: it ends already
            loop.call_soon_threadsafe(end)

    signal.signal(signal.SIGINT, end_soon)
    loop.add_signal_handler(signal.SIGTERM, end)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, leave)

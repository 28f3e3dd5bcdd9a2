"""One performance of the live demo: start, show, stop by time or signal, and the replays that go with it."""

from __future__ import annotations

import asyncio
import signal
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from joulie.demo.live import LiveDemo
from joulie.demo.looking import Look, Measured, Options
from joulie.demo.outcome import Comparison
from joulie.demo.replays_beside import ReplaysFailedError, replays_beside
from joulie.demo.tuning import Ports

LOOK_S = 0.25  # between two looks at the cluster


class Screen(Protocol):
    """Where it is shown."""

    def told(self, line: str) -> None:
        """Something of the story happened."""

    def changed(self, node: str, before: str, after: str) -> None:
        """A node's state changed."""

    def show(self, look: Look) -> None: ...

    def waiting_for_replays(self) -> None: ...


class Performed(msgspec.Struct, frozen=True):
    """What is left at the end."""

    measured: Measured
    comparisons: list[Comparison] | None  # None: the replays were not waited for
    why_none: str = ""


async def perform(
    options: Options,
    ports: Ports,
    env: Mapping[str, str],
    screen: Screen,
    for_s: float | None,
    ready: Callable[[], None],
) -> Performed:
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
    replays = asyncio.create_task(replays_beside(options))
    showing = asyncio.create_task(_show(demo, told, screen))
    showing.add_done_callback(lambda _: stop.set())  # nobody can see it any more
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
            return Performed(demo.measured(), None, "they were not waited for")
        return Performed(demo.measured(), replays.result())
    except ReplaysFailedError as error:
        return Performed(demo.measured(), None, str(error))
    finally:
        await _end(showing, announcing, replays)


async def _end(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _show(demo: LiveDemo, told: deque[str], screen: Screen) -> None:
    states: dict[str, str] = {}
    while True:
        await asyncio.sleep(LOOK_S)
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
    """`leave`: the terminal was closed, so nobody waits for anything; `nohup` is obeyed."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, leave)

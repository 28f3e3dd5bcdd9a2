"""How a process of Joulie lives and ends: by signals, and by the first of its parts that fails."""

from __future__ import annotations

import asyncio
import signal


def stop_on_signals() -> asyncio.Event:
    """Set when the process is told to end (SIGTERM, SIGINT)."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


async def first_to_end(main: asyncio.Task[None], *others: asyncio.Task[None]) -> None:
    """Wait for the main task; if another ends first it has failed, and its failure is ours."""
    try:
        await asyncio.wait({main, *others}, return_when=asyncio.FIRST_COMPLETED)
        for task in others:
            if task.done():
                task.result()
        await main
    finally:
        main.cancel()
        await asyncio.gather(main, return_exceptions=True)

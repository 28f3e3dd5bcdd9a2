"""The same write for many objects: some at a time, again where the API server was busy, and failures by name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from joulie.cluster.port import ClusterError, NotFoundError
from joulie.cluster.watch.backoff import Backoff

AT_ONCE = 32
ATTEMPTS = 8  # for transient errors: about half a minute


async def for_each(what: str, names: Iterable[str], work: Callable[[str], Awaitable[Any]]) -> list[str]:
    """Runs the work for each name, retrying transient errors; returns the failures. What is gone is no failure."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> str:
        backoff = Backoff(0.5, 10.0)
        async with slots:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    await work(name)
                except NotFoundError:
                    break
                except ClusterError as error:
                    if attempt == ATTEMPTS or not error.is_transient:
                        return f"{what} {name}: {error}"
                    await asyncio.sleep(backoff.next_s(error.retry_after_s))
                else:
                    break
        return ""

    return [fault for fault in await asyncio.gather(*map(one, names)) if fault]

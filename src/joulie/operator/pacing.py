"""How fast writes may go: a token bucket that is asked before every write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

LOOK_S = 0.2  # so often whoever waits looks whether there is still a reason to


class TokenBucket:
    """So many calls a second on average, so many at once at most."""

    def __init__(self, rate_per_s: float, burst: int, clock: Callable[[], float]) -> None:
        self.rate_per_s = rate_per_s
        self._burst = float(burst)
        self._tokens = float(burst)
        self._clock = clock
        self._filled_at = clock()

    async def take(self, wanted: Callable[[], bool] = lambda: True) -> None:
        """Wait for one's turn, or until it is no longer wanted; turns are given in the order of asking."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self.rate_per_s)
        self._filled_at = now
        self._tokens -= 1
        if self._tokens < 0:
            await pause(-self._tokens / self.rate_per_s, wanted)


async def pause(seconds: float, wanted: Callable[[], bool]) -> None:
    """Sleep, but not much longer than it is wanted: a process that is to end does not wait for its turn first."""
    left_s = seconds
    while left_s > 0 and wanted():
        await asyncio.sleep(min(left_s, LOOK_S))
        left_s -= LOOK_S


def write_rate_per_s(qps: float | None, nodes: int) -> float:
    """The configured rate, or one that grows with the cluster (SPEC 13)."""
    return 50.0 + nodes / 20.0 if qps is None else qps

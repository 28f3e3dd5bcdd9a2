"""Client-side rate limiting: a token bucket for writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

CHECK_INTERVAL_S = 0.2  # how often a waiting task checks whether it is still wanted


class TokenBucket:
    """Allows `rate_per_s` calls per second on average, `burst` at once."""

    def __init__(self, rate_per_s: float, burst: int, clock: Callable[[], float]) -> None:
        self.rate_per_s = rate_per_s
        self._burst = float(burst)
        self._tokens = float(burst)
        self._clock = clock
        self._filled_at = clock()

    async def take(self, wanted: Callable[[], bool] = lambda: True) -> None:
        """Waits for a token, or until it is no longer wanted; first come, first served."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self.rate_per_s)
        self._filled_at = now
        self._tokens -= 1
        if self._tokens < 0:
            await pause(-self._tokens / self.rate_per_s, wanted)


async def pause(seconds: float, wanted: Callable[[], bool]) -> None:
    """Sleeps, but wakes soon after it is no longer wanted, so that shutdown does not wait."""
    left_s = seconds
    while left_s > 0 and wanted():
        await asyncio.sleep(min(left_s, CHECK_INTERVAL_S))
        left_s -= CHECK_INTERVAL_S


def write_rate_per_s(qps: float | None, nodes: int) -> float:
    """The configured rate, or one that grows with the cluster (docs/reference/behaviour.md, 'Writing less')."""
    return 50.0 + nodes / 20.0 if qps is None else qps

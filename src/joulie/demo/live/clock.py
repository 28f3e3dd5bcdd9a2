"""The demo's one clock. Every time stamp, age and trend in the demo's cluster follows it; sockets and leases do not.

It starts at the real time and runs `speed` times as fast, so that five minutes are five minutes for every part: a twin
grows stale, a trend is watts a simulated minute, a pin ends, all at the pace of the simulated hardware.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class DemoClock:
    """Seconds since 1970 as the demo counts them."""

    def __init__(
        self,
        speed: float,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self.speed = speed
        self._steady = steady
        self._began_s = steady()
        self.started_s = wall()

    def now_s(self) -> float:
        return self.started_s + self.elapsed_s

    @property
    def elapsed_s(self) -> float:
        """Simulated time since the start."""
        return (self._steady() - self._began_s) * self.speed

    def real_s(self, simulated_s: float) -> float:
        return simulated_s / self.speed

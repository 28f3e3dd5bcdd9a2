"""Exponential backoff with jitter and a cap."""

from __future__ import annotations

import random
from collections.abc import Callable


class Backoff:
    """Doubles from `initial_s` to `cap_s`; each wait is a random part of that, at least half."""

    def __init__(
        self, initial_s: float = 0.25, cap_s: float = 20.0, *, random_share: Callable[[], float] = random.random
    ) -> None:
        self._initial_s = initial_s
        self._cap_s = cap_s
        self._random_share = random_share
        self._next_s = initial_s

    def next_s(self, at_least_s: float | None = None) -> float:
        """The next wait; what the server asked for (`Retry-After`) is a minimum, with jitter on top."""
        spread = 0.5 + 0.5 * self._random_share()
        wait_s = self._next_s * spread
        self._next_s = min(self._cap_s, self._next_s * 2.0)
        if at_least_s is not None and at_least_s > wait_s:
            return min(at_least_s, _MAX_RETRY_AFTER_S) + self._initial_s * spread
        return wait_s

    def reset(self) -> None:
        self._next_s = self._initial_s


_MAX_RETRY_AFTER_S = 300.0  # a server cannot make us sleep for a day

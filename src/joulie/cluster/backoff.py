"""How long to wait before trying again: longer each time, never beyond a cap, and never in step with others."""

from __future__ import annotations

import random
from collections.abc import Callable


class Backoff:
    """Doubles from `initial_s` to `cap_s`; each wait is between half and all of that, by chance."""

    def __init__(
        self, initial_s: float = 0.25, cap_s: float = 20.0, *, chance: Callable[[], float] = random.random
    ) -> None:
        self._initial_s = initial_s
        self._cap_s = cap_s
        self._chance = chance
        self._next_s = initial_s

    def next_s(self, at_least_s: float | None = None) -> float:
        """The next wait; what the server asked for (`Retry-After`) is a minimum, with chance on top."""
        spread = 0.5 + 0.5 * self._chance()
        wait_s = self._next_s * spread
        self._next_s = min(self._cap_s, self._next_s * 2.0)
        if at_least_s is not None and at_least_s > wait_s:
            return min(at_least_s, _LONGEST_ASKED_S) + self._initial_s * spread
        return wait_s

    def reset(self) -> None:
        self._next_s = self._initial_s


_LONGEST_ASKED_S = 300.0  # nobody may talk us into sleeping through a day

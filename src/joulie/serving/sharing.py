"""How much of the process a part of its HTTP may take: there is a lease to renew, or a cap to hold."""

from __future__ import annotations

import math

MAX_SHARE = 0.5  # of the time, over more than a moment
MOMENT_S = 2.0


class Share:
    """Work that was done is owed time; requests while too much is owed are told to come back."""

    def __init__(self, largest: float = MAX_SHARE, moment_s: float = MOMENT_S) -> None:
        self._largest, self._moment_s = largest, moment_s
        self._paid_at_s = -math.inf

    def is_used_up(self, now_s: float) -> bool:
        return self._paid_at_s > now_s

    def use(self, now_s: float, took_s: float) -> None:
        self._paid_at_s = max(self._paid_at_s, now_s - self._moment_s) + took_s / self._largest

"""How much of the process the API may take: its host has a lease to renew and a cluster to decide about."""

from __future__ import annotations

import math

LARGEST_SHARE = 0.5  # of the time, over more than a moment
MOMENT_S = 2.0


class Share:
    """Work that was done is owed time; who asks while too much is owed is asked to come back."""

    def __init__(self) -> None:
        self._paid_at_s = -math.inf

    def is_used_up(self, now_s: float) -> bool:
        return self._paid_at_s > now_s

    def use(self, now_s: float, took_s: float) -> None:
        self._paid_at_s = max(self._paid_at_s, now_s - MOMENT_S) + took_s / LARGEST_SHARE

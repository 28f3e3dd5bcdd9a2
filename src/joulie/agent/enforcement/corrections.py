"""Another program changes a cap of ours: put it back, but do not fight for ever.

The rules: docs/reference/behaviour.md, 'Drift'.
"""

from __future__ import annotations

from collections import deque

from joulie.devices.interface import LockedError

MAX_CORRECTIONS = 3
WINDOW_S = 600.0


class ContestedError(LockedError):
    """Another program keeps setting the same value: Joulie has stopped, and a person should find it."""


class Corrections:
    """When a backend's values were last put back.

    After three corrections in ten minutes a further change is left standing. Ten minutes after the last correction it
    is tried again; the other program may be gone.
    """

    def __init__(self) -> None:
        self.total = 0
        self._at_s: deque[float] = deque(maxlen=MAX_CORRECTIONS)
        self._contested_until_s = 0.0

    def correct(self, now_s: float, what: str) -> None:
        """Count one more; a ContestedError instead where it would be one too many."""
        if now_s < self._contested_until_s:
            raise ContestedError(self._told(what))
        if len(self._at_s) == MAX_CORRECTIONS and now_s - self._at_s[0] < WINDOW_S:
            self._contested_until_s = self._at_s[-1] + WINDOW_S
            self._at_s.clear()
            raise ContestedError(self._told(what))
        self._at_s.append(now_s)
        self.total += 1

    def _told(self, what: str) -> str:
        return (
            f"contested: {what} was changed by another program more than {MAX_CORRECTIONS} times in"
            f" {WINDOW_S / 60:g} minutes; find out what sets it; it is tried again later"
        )

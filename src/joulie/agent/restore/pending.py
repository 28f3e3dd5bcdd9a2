"""What an Event said of caps that could not be removed, kept true: said again before it is forgotten, and taken back.

API servers forget Events after an hour, and readers cannot see from outside whether a device is still capped.
"""

from __future__ import annotations

from joulie.agent.outcome import Notice

INCOMPLETE, COMPLETE = "RestoreIncomplete", "CapsRestored"
AGAIN_S = 1800.0


class PendingRestore:
    """Of one node; `inherited`: an earlier process may have said it."""

    def __init__(self, *, inherited: bool) -> None:
        self._inherited = inherited
        self._said: tuple[Notice, float] | None = None

    def said(self, notice: Notice, now_s: float) -> None:
        if notice.reason == INCOMPLETE:
            self._said = notice, now_s

    def due(self, now_s: float, *, left: bool, is_empty: bool) -> Notice | None:
        """What to say now. `left`: a cap could not be removed (yet); `is_empty`: the journal holds nothing."""
        if left:
            return self._said[0] if self._said is not None and now_s - self._said[1] >= AGAIN_S else None
        if self._said is None and not (self._inherited and is_empty):
            return None
        self._said, self._inherited = None, False
        return Notice(COMPLETE, "no cap is left that could not be removed", event=True)

"""When a backend that failed is tried again, and when the next one takes its place."""

from __future__ import annotations

from msgspec import Struct

from joulie.devices.interface import BadReadingError, DeviceError, DeviceFaultError

PATIENCE = 3  # ticks in which a fault that may pass is waited out, before another backend takes over
MIN_PAUSE_S = 60.0
MAX_PAUSE_S = 900.0
MAX_RESTORE_PAUSE_S = 60.0  # an unwanted cap must go soon after its device is back


class RetryDelay:
    """When to retry what must be retried for ever: at once, then less and less often, up to a limit."""

    def __init__(self, first_s: float) -> None:
        self._first_s = first_s
        self._longest_s = max(first_s, MAX_RESTORE_PAUSE_S)
        self._pause_s = 0.0
        self._at_s = 0.0

    def is_due(self, now_s: float) -> bool:
        return now_s >= self._at_s

    def failed(self, now_s: float) -> None:
        self._pause_s = min(max(2.0 * self._pause_s, self._first_s), self._longest_s)
        self._at_s = now_s + self._pause_s

    def reset(self) -> None:
        self._pause_s = self._at_s = 0.0


class _Trouble(Struct):
    error: DeviceError
    target: float
    in_a_row: int = 1
    pause_s: float = 0.0
    retry_at_s: float = 0.0


class Attempts:
    """The failures of a node's backends, by owner.

    A backend that is absent is looked for at every tick, which is cheap. One that is there but rejects what is written
    is left alone for a while, longer each time, because trying it means giving up the other backend first.
    """

    def __init__(self) -> None:
        self._troubles: dict[str, _Trouble] = {}

    def waiting(self, owner: str, target: float, now_s: float) -> DeviceError | None:
        """Why this backend is not to be tried now; another target is tried at once."""
        trouble = self._troubles.get(owner)
        if trouble is None or trouble.target != target or now_s >= trouble.retry_at_s:
            return None
        return trouble.error

    def failed(self, owner: str, target: float, error: DeviceError, now_s: float, *, in_use: bool, tried: bool) -> bool:
        """Whether to wait for this backend (True) or to go on to the next one."""
        before = self._troubles.get(owner)
        trouble = _Trouble(error, target)
        if before is not None:
            trouble.in_a_row, trouble.pause_s = before.in_a_row + 1, before.pause_s
        self._troubles[owner] = trouble
        if in_use and isinstance(error, DeviceFaultError | BadReadingError) and trouble.in_a_row <= PATIENCE:
            return True
        if tried:
            trouble.pause_s = min(max(2.0 * trouble.pause_s, MIN_PAUSE_S), MAX_PAUSE_S)
            trouble.retry_at_s = now_s + trouble.pause_s
        return False

    def succeeded(self, owner: str) -> None:
        self._troubles.pop(owner, None)

"""The errors that say: this cannot be had on this machine, and why."""

from __future__ import annotations


class Unavailable(Exception):  # noqa: N818 - it says what is the case, and callers skip rather than fail
    """Something that the test bed needs is not to be had here."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ControlPlaneUnavailable(Unavailable):
    """The control plane cannot be had here: no Go, no network, or a build that failed."""

"""The one error that says: no control plane on this machine, and why."""

from __future__ import annotations


class ControlPlaneUnavailable(Exception):  # noqa: N818 - it says what is the case, and callers skip rather than fail
    """The control plane cannot be had here: no Go, no network, or a build that failed."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

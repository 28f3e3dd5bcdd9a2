"""Scores computed ahead of the request for them.

After a filter, kube-scheduler requests scores for the nodes that passed. So they are computed while it still decodes
the filter's response, and are usually ready in time. For a client that only filters this would be wasted: after one
miss nothing is computed ahead until a request comes that would have been a hit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulie.control.scoring import Prepared
from joulie.extender.requests import ExtenderArgs
from joulie.model.snapshot import Pod

if TYPE_CHECKING:
    from joulie.extender.answers import Scored


class SpeculativeScores:
    """At most one response, and whether computing ahead is worthwhile."""

    def __init__(self) -> None:
        self.worthwhile = False
        self._next: tuple[bytes, Pod] | None = None
        self._scored: tuple[Prepared, Scored] | None = None

    def expect(self, args: ExtenderArgs, kept: bytes) -> None:
        """A filter was answered. Two in a row mean that no scores were requested for the first."""
        if self._next is not None:
            self.worthwhile = False
        self._next = (kept, args.pod) if len(kept) > len(b"[]") else None
        self._scored = None

    def put(self, prepared: Prepared, scored: Scored) -> None:
        self._scored = (prepared, scored)

    def take(self, args: ExtenderArgs, prepared: Prepared) -> Scored | None:
        """The response, if it is for this request and nothing has changed since."""
        speculated, ready = self._next, self._scored
        self._next = self._scored = None
        if speculated is None or speculated != (args.listed, args.pod):
            return None
        self.worthwhile = True
        return ready[1] if ready is not None and ready[0] is prepared else None

    def bodies(self) -> list[bytes]:
        """The response that is ready, for tests."""
        return [self._scored[1].body] if self._scored is not None else []

"""The answer to the question that will come next.

kube-scheduler asks what the nodes that passed the filter are worth as soon as it has that answer. So the scores are
computed while it still reads the names, and most often are there when it asks. Whoever only filters, as a client that
measures does, shall not wait for what nobody asks: after one miss nothing is computed ahead until a question comes that
would have been a hit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulie.control.scoring import Prepared
from joulie.extender.requests import Question
from joulie.model.snapshot import Pod

if TYPE_CHECKING:
    from joulie.extender.answers import Scored


class Foreseen:
    """At most one answer, and whether it pays to have it."""

    def __init__(self) -> None:
        self.worthwhile = False
        self._next: tuple[bytes, Pod] | None = None
        self._scored: tuple[Prepared, Scored] | None = None

    def expect(self, question: Question, kept: bytes) -> None:
        """A filter was answered. Two in a row: nobody asked about the first."""
        if self._next is not None:
            self.worthwhile = False
        self._next = (kept, question.pod) if len(kept) > len(b"[]") else None
        self._scored = None

    def put(self, prepared: Prepared, scored: Scored) -> None:
        self._scored = (prepared, scored)

    def take(self, question: Question, prepared: Prepared) -> Scored | None:
        """The answer, if this is the question and nothing has changed since."""
        foreseen, ready = self._next, self._scored
        self._next = self._scored = None
        if foreseen is None or foreseen != (question.listed, question.pod):
            return None
        self.worthwhile = True
        return ready[1] if ready is not None and ready[0] is prepared else None

    def bodies(self) -> list[bytes]:
        """What is ready to be asked for, to look at."""
        return [self._scored[1].body] if self._scored is not None else []

"""Answers to kube-scheduler as bytes: which nodes a pod may use, what each is worth, whom it may displace.

An answer is put together from what was rendered when a node first came (`Entries`), or from the bytes of the question:
rendering 5,000 scores anew would cost more than computing them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, repeat
from operator import add
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

from joulie.control.board import ScoreBoard, schedulable_class
from joulie.control.placement import rejection
from joulie.control.scoring import CLASS_CODES, NEUTRAL_SCORE, Prepared, score, wire_scores
from joulie.extender.entries import Entries
from joulie.extender.foreseen import Foreseen
from joulie.extender.requests import Question, node_labels
from joulie.extender.rows import RowTable
from joulie.model.names import PERFORMANCE, UNKNOWN
from joulie.model.snapshot import Pod

# By class code: why a performance pod is kept off, and whether.
_REASONS = np.array([rejection(PERFORMANCE, name) or "" for name in CLASS_CODES], dtype=object)
_REFUSED_CODES = np.array([rejection(PERFORMANCE, name) is not None for name in CLASS_CODES])
_REFUSED_ENDS = np.array([b'":' + msgspec.json.encode(reason) for reason in _REASONS], dtype=object)
_UNKNOWN = CLASS_CODES[UNKNOWN]
_FILTER_END = b',"FailedNodes":{},"Error":"","FailedAndUnresolvableNodes":'


class Scored(NamedTuple):
    """The answer, and what it says of which row."""

    body: bytes
    rows: NDArray[np.intp]
    points: NDArray[np.int64]  # by candidate, as the rows
    marginal_w: NDArray[np.float64]  # by row of the board


class Filtered(NamedTuple):
    """The answer, and the names in it as they will come back (empty with whole nodes)."""

    body: bytes
    kept: bytes


class Answers:
    """From a question and the board to the bytes of an answer."""

    def __init__(self, board: ScoreBoard, score_max: int) -> None:
        self._board = board
        self._rows = RowTable(board)
        self.foreseen = Foreseen()
        self._score_max = score_max
        self._entries = Entries(board, score_max)
        self._neutral = int(wire_scores(np.array([NEUTRAL_SCORE]), score_max)[0])

    def filter(self, question: Question) -> Filtered:
        """All nodes but those that are eco or draining, if the pod's class is performance.

        Displacing pods would not help there, so refused nodes are said to be beyond preemption.
        """
        pod = question.pod
        if pod.workload_class != PERFORMANCE and question.is_plain:
            return _named(question.listed, b"{}")
        pieces = question.pieces
        rows = self._rows.find(pieces) if pieces is not None else None
        if pieces is not None and rows is not None:
            return _without(question.listed, pieces, self._board.columns.class_code[rows])
        refused = self._refused(pod, question.names, question.wholes)
        told = msgspec.json.encode(refused)
        if question.wholes is None:
            return _named(msgspec.json.encode([name for name in question.names if name not in refused]), told)
        wholes = question.wholes
        if refused:
            wholes = [whole for whole, name in zip(wholes, question.names, strict=True) if name not in refused]
        head = b'{"NodeNames":null,"Nodes":{"metadata":{},"items":['
        return Filtered(_enclosed(head, wholes, b"]}" + _FILTER_END + told + b"}"), b"")

    def prioritize(self, question: Question, now_s: float) -> Scored:
        """A score for each candidate; of what is not known, the neutral one."""
        prepared = self._board.prepared(now_s)
        foreseen = self.foreseen.take(question, prepared)
        return foreseen or self._scored(question, prepared)

    def foresee(self, question: Question, kept: bytes, now_s: float) -> None:
        """After a filter's answer: what will be asked next."""
        self.foreseen.expect(question, kept)
        if self.foreseen.worthwhile:
            all_kept = kept is question.listed
            next_question = question if all_kept else Question(question.pod, question.exists, kept)
            prepared = self._board.prepared(now_s)
            self.foreseen.put(prepared, self._scored(next_question, prepared))

    def _scored(self, question: Question, prepared: Prepared) -> Scored:
        pod, unknown = question.pod, list[int]()
        scored = score(prepared, pod.cpu_cores, pod.gpus, pod.workload_class)
        rows = self._rows.find(question.pieces) if question.pieces is not None else None
        if rows is None:
            rows, unknown = self._looked_up(question.names)
        points = wire_scores(scored.score[rows], self._score_max)
        strangers = (self._entries.of_unknown(question.names[at], self._neutral) for at in unknown)
        entries = b"".join((self._entries.of(rows, points), *strangers))
        return Scored(b"[%b]" % entries[1:], rows, points, scored.marginal_w)

    def _looked_up(self, names: list[str]) -> tuple[NDArray[np.intp], list[int]]:
        """The rows of those that are known, in order, and the places of those that are not."""
        index = self._board.index
        try:  # nearly always all are, and then nothing has to be asked of each
            return np.fromiter(map(index.__getitem__, names), np.intp, len(names)), []
        except KeyError:
            rows = np.fromiter(map(index.get, names, repeat(-1)), np.intp, len(names))
            return rows[rows >= 0], np.flatnonzero(rows < 0).tolist()

    def preempt(self, pod: Pod, victims: dict[str, Raw]) -> bytes:
        """The nodes where displacing pods would help: not those that this pod will be refused on."""
        refused = self._refused(pod, list(victims), None)
        kept = {name: meta for name, meta in victims.items() if name not in refused}
        return msgspec.json.encode({"NodeNameToMetaVictims": kept})

    def _refused(self, pod: Pod, names: list[str], wholes: list[Raw] | None) -> dict[str, str]:
        """Why the pod may not go there, by name; nodes that came whole and are not known, or by a twin without a class
        alone, speak by their label.
        """
        if pod.workload_class != PERFORMANCE:
            return {}
        rows, unknown = self._looked_up(names)
        codes = self._board.columns.class_code[rows]
        hit = _REFUSED_CODES[codes]
        there = map(self._board.names.__getitem__, rows[hit].tolist())
        refused = dict(zip(there, _REASONS[codes[hit]].tolist(), strict=True))
        if wholes is None:
            return refused
        without_class = {
            self._board.names[row] for row in rows[codes == _UNKNOWN].tolist() if self._board.nodes[row] is None
        }
        if without_class:
            unknown += [at for at, name in enumerate(names) if name in without_class]
        for at in unknown:
            node_class = schedulable_class(None, node_labels(wholes[at]), self._board.profile_label)
            if (reason := rejection(pod.workload_class, node_class)) is not None:
                refused[names[at]] = reason
        return refused


def _named(kept: bytes, refused: bytes) -> Filtered:
    return Filtered(b"".join((b'{"Nodes":null,"NodeNames":', kept, _FILTER_END, refused, b"}")), kept)


def _without(listed: bytes, names: list[bytes], codes: NDArray[np.int8]) -> Filtered:
    """The names less those whose class is refused, and why those are."""
    hit = _REFUSED_CODES[codes]
    if not hit.any():
        return _named(listed, b"{}")
    kept = b'","'.join(compress(names, (~hit).tolist()))
    reasons = _REFUSED_ENDS[codes[hit]].tolist()
    refused = b',"'.join(map(add, compress(names, hit.tolist()), reasons))
    return _named(b'["%b"]' % kept if kept else b"[]", b'{"%b}' % refused)


def _enclosed(head: bytes, items: Sequence[Raw], tail: bytes) -> bytes:
    """The items with commas between, head and tail around them: megabytes, so they are copied but once."""
    if not items:
        return head + tail
    *others, last = items
    ends = b"".join((last, tail))
    if not others:
        return head + ends
    return b",".join((b"".join((head, others[0])), *others[1:], ends))

"""Responses to kube-scheduler as bytes: filter, prioritize and preempt.

A response is assembled from entries that were rendered when a node first appeared (`Entries`), or from the bytes of the
request: rendering 5,000 scores each time would cost more than computing them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

from joulie.control.placement.board import ScoreBoard, schedulable_class
from joulie.control.placement.score_table import rejection
from joulie.control.scoring import CLASS_CODES, NEUTRAL_SCORE, Prepared, integer_scores, score
from joulie.extender.entries import Entries
from joulie.extender.requests import ExtenderArgs, LabelReader
from joulie.extender.rows import UNKNOWN_ROW, Names, RowTable
from joulie.extender.speculative_scores import SpeculativeScores
from joulie.model.names import PERFORMANCE, UNKNOWN
from joulie.model.snapshot import Pod

# By class code: why a performance pod is rejected, and whether.
_REASONS = [rejection(PERFORMANCE, name) or "" for name in CLASS_CODES]
_REFUSED_CODES = np.array([rejection(PERFORMANCE, name) is not None for name in CLASS_CODES])
_UNKNOWN = CLASS_CODES[UNKNOWN]
_FILTER_END = b',"FailedNodes":{},"Error":"","FailedAndUnresolvableNodes":'


class Scored(NamedTuple):
    """A prioritize response, and the scores in it by row."""

    body: bytes
    rows: NDArray[np.intp]
    points: NDArray[np.int64]  # in the order of `rows`
    marginal_w: NDArray[np.float64]  # by row of the board


class FilterResult(NamedTuple):
    """A filter response, and its node names as the next request will list them (empty with whole nodes)."""

    body: bytes
    kept: bytes


class Answers:
    """Computes responses from the board."""

    def __init__(self, board: ScoreBoard, score_max: int) -> None:
        self._board = board
        self._rows = RowTable(board)
        self.speculative = SpeculativeScores()
        self._score_max = score_max
        self._entries = Entries(board, score_max, _REASONS)
        self._labels = LabelReader(board.profile_label)
        self._neutral = int(integer_scores(np.array([NEUTRAL_SCORE]), score_max)[0])

    def filter(self, args: ExtenderArgs) -> FilterResult:
        """All nodes, except eco and draining ones if the pod's class is performance.

        Preemption cannot help on those, so they are reported as unresolvable.
        """
        pod, block = args.pod, args.block
        if pod.workload_class != PERFORMANCE and block is not None:
            return _named(args.listed, b"{}")
        if block is not None:
            return self._without_refused(args.listed, block)
        refused = self._refused(pod, args)
        told = msgspec.json.encode(refused)
        if not args.is_whole:
            return _named(msgspec.json.encode([name for name in args.names if name not in refused]), told)
        wholes = args.wholes
        if refused:
            wholes = [whole for whole, name in zip(wholes, args.names, strict=True) if name not in refused]
        head = b'{"NodeNames":null,"Nodes":{"metadata":{},"items":['
        return FilterResult(_enclosed(head, wholes, b"]}" + _FILTER_END + told + b"}"), b"")

    def _without_refused(self, listed: bytes, names: Names) -> FilterResult:
        """The names without the rejected ones, and the reasons; unknown nodes pass."""
        rows = self._rows.find(names)
        codes = np.where(rows == UNKNOWN_ROW, _UNKNOWN, self._board.columns.class_code[rows])
        hit = _REFUSED_CODES[codes]
        if not hit.any():
            return _named(listed, b"{}")
        refused = self._entries.reasons_of(rows[hit], codes[hit])[1:]
        return _named(b"[]" if hit.all() else names.those(~hit), b"{", refused, b"}")

    def prioritize(self, args: ExtenderArgs, now_s: float) -> Scored:
        """A score for each candidate; the neutral one for unknown nodes."""
        prepared = self._board.prepared(now_s)
        return self.speculative.take(args, prepared) or self._scored(args, prepared)

    def speculate(self, args: ExtenderArgs, kept: bytes, now_s: float) -> None:
        """Called after a filter response: computes the scores that will be requested next."""
        self.speculative.expect(args, kept)
        if self.speculative.worthwhile:
            all_kept = kept is args.listed
            next_args = args if all_kept else ExtenderArgs(args.pod, args.exists, kept)
            prepared = self._board.prepared(now_s)
            self.speculative.put(prepared, self._scored(next_args, prepared))

    def _scored(self, args: ExtenderArgs, prepared: Prepared) -> Scored:
        pod, block, unknown = args.pod, args.block, list[bytes]()
        scored = score(prepared, pod.cpu_cores, pod.gpus, pod.workload_class)
        if block is not None:
            rows = self._rows.find(block)
            known = rows != UNKNOWN_ROW
            if not known.all():
                rows, unknown = rows[known], block.those(~known)[2:-2].split(b'","')
        else:
            rows, places = self._looked_up(args.names)
            unknown = [msgspec.json.encode(args.names[at])[1:-1] for at in places]
        points = integer_scores(scored.score[rows], self._score_max)
        entries = self._entries.of(rows, points), self._entries.of_unknown(unknown, self._neutral)
        body = b"".join((b"[", entries[0][1:], entries[1][0 if len(rows) else 1 :], b"]"))
        return Scored(body, rows, points, scored.marginal_w)

    def _looked_up(self, names: list[str]) -> tuple[NDArray[np.intp], list[int]]:
        """The rows of the known nodes, in order, and the positions of the unknown ones."""
        index = self._board.index
        try:  # nearly always all are known
            return np.fromiter(map(index.__getitem__, names), np.intp, len(names)), []
        except KeyError:
            rows = np.fromiter(map(index.get, names, repeat(-1)), np.intp, len(names))
            return rows[rows >= 0], np.flatnonzero(rows < 0).tolist()

    def preempt(self, pod: Pod, victims: dict[str, Raw]) -> bytes:
        """The nodes where preemption can help: without those that reject this pod."""
        refused = self._refused_known(pod, list(victims))[0]
        kept = {name: meta for name, meta in victims.items() if name not in refused}
        return msgspec.json.encode({"NodeNameToMetaVictims": kept})

    def _refused(self, pod: Pod, args: ExtenderArgs) -> dict[str, str]:
        """Reasons by name.

        Whole nodes that the board does not know, or knows only by a twin without a class, are judged by their label.
        """
        names = args.names
        refused, silent = self._refused_known(pod, names)
        for at in silent if args.is_whole else ():
            node_class = schedulable_class(None, self._labels.read(args.wholes[at]), self._board.profile_label)
            if (reason := rejection(pod.workload_class, node_class)) is not None:
                refused[names[at]] = reason
        return refused

    def _refused_known(self, pod: Pod, names: list[str]) -> tuple[dict[str, str], list[int]]:
        """The nodes that the board rejects, with reasons, and the positions of those whose class it does not know."""
        if pod.workload_class != PERFORMANCE:
            return {}, []
        board = self._board
        rows, silent = self._looked_up(names)
        codes = board.columns.class_code[rows]
        hit = _REFUSED_CODES[codes]
        there = [board.names[row] for row in rows[hit].tolist()]
        refused = dict(zip(there, (_REASONS[code] for code in codes[hit].tolist()), strict=True))
        without_class = {board.names[row] for row in rows[codes == _UNKNOWN].tolist() if board.nodes[row] is None}
        if without_class:
            silent += [at for at, name in enumerate(names) if name in without_class]
        return refused, silent


def _named(kept: bytes, *refused: bytes | memoryview) -> FilterResult:
    return FilterResult(b"".join((b'{"Nodes":null,"NodeNames":', kept, _FILTER_END, *refused, b"}")), kept)


def _enclosed(head: bytes, items: Sequence[Raw], tail: bytes) -> bytes:
    """The items joined with commas between head and tail. They are megabytes, so they are copied only once."""
    if not items:
        return head + tail
    *others, last = items
    ends = b"".join((last, tail))
    if not others:
        return head + ends
    return b",".join((b"".join((head, others[0])), *others[1:], ends))

"""Answers to kube-scheduler as bytes: which nodes a pod may use, what each is worth, whom it may displace.

An answer is put together from pieces that were rendered when a node first came, since rendering 5,000 scores anew would
cost more than computing them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

from joulie.control.board import ScoreBoard, schedulable_class
from joulie.control.placement import rejection
from joulie.control.scoring import CLASS_CODES, NEUTRAL_SCORE, score, wire_scores
from joulie.extender.requests import Question, node_labels
from joulie.model.names import PERFORMANCE, STANDARD
from joulie.model.snapshot import Pod, WorkloadClass

_CLASSES: tuple[WorkloadClass, ...] = (PERFORMANCE, STANDARD)
_REASONS = {code: rejection(PERFORMANCE, name) for name, code in CLASS_CODES.items()}
_REFUSED_CODES = np.array([_REASONS[code] is not None for code in range(len(_REASONS))])
_FILTER_END = b',"FailedNodes":{},"Error":"","FailedAndUnresolvableNodes":'


class Scored(NamedTuple):
    """The rows that were scored, for metrics, beside the answer."""

    body: bytes
    rows: NDArray[np.intp]
    scores: NDArray[np.int64]


class Answers:
    """From a question and the board to the bytes of an answer."""

    def __init__(self, board: ScoreBoard, score_max: int) -> None:
        self._board = board
        self._score_max = score_max
        self._hosts: dict[str, bytes] = {}  # the piece of an answer that names a node
        self._ends = [b"%d}" % number for number in range(score_max + 1)]
        self._neutral = self._ends[int(wire_scores(np.array([NEUTRAL_SCORE]), score_max)[0])]

    def filter(self, question: Question) -> bytes:
        """All nodes but those that are eco or draining, if the pod's class is performance.

        Displacing pods would not help there, so refused nodes are said to be beyond preemption.
        """
        refused = self._refused(question.pod, question.names, question.wholes)
        if question.wholes is None:
            kept = [name for name in question.names if name not in refused] if refused else question.names
            head = b'{"Nodes":null,"NodeNames":' + msgspec.json.encode(kept)
        else:
            keep: Iterable[bool] = (name not in refused for name in question.names)
            wholes = b",".join(compress(question.wholes, keep) if refused else question.wholes)
            head = b'{"NodeNames":null,"Nodes":{"metadata":{},"items":[%b]}' % wholes
        return b"".join((head, _FILTER_END, msgspec.json.encode(refused), b"}"))

    def prioritize(self, question: Question, now_s: float) -> Scored:
        """A score for each candidate; of what is not known, the neutral one."""
        board, pod, names = self._board, question.pod, question.names
        scored = score(board.prepared(now_s), pod.cpu_cores, pod.gpus, pod.workload_class)
        index, hosts = board.index, self._hosts
        try:
            rows = np.fromiter(map(index.__getitem__, names), np.intp, len(names))
            known = names
        except KeyError:
            known = [name for name in names if name in index]
            rows = np.fromiter(map(index.__getitem__, known), np.intp, len(known))
        points = wire_scores(scored.score[rows], self._score_max)
        try:
            heads = list(map(hosts.__getitem__, known))
        except KeyError:
            self._render(known)
            heads = list(map(hosts.__getitem__, known))
        pieces = list(map(bytes.__add__, heads, map(self._ends.__getitem__, points.tolist())))
        if known is not names:
            pieces += [host_piece(name) + self._neutral for name in names if name not in index]
        return Scored(b"[" + b",".join(pieces) + b"]", rows, points)

    def preempt(self, pod: Pod, victims: dict[str, Raw]) -> bytes:
        """The nodes where displacing pods would help: not those that this pod will be refused on."""
        refused = self._refused(pod, list(victims), None)
        kept = {name: meta for name, meta in victims.items() if name not in refused}
        return msgspec.json.encode({"NodeNameToMetaVictims": kept})

    def forget(self, name: str) -> None:
        """A node is gone."""
        self._hosts.pop(name, None)

    def _refused(self, pod: Pod, names: list[str], wholes: list[Raw] | None) -> dict[str, str]:
        """Why the pod may not go there, by name; nodes that came whole and are not known speak by their label."""
        if pod.workload_class != PERFORMANCE:
            return {}
        index, codes = self._board.index, self._board.columns.class_code
        unknown: list[int] = []
        try:
            rows = np.fromiter(map(index.__getitem__, names), np.intp, len(names))
        except KeyError:
            unknown = [at for at, name in enumerate(names) if name not in index]
            known = [name for name in names if name in index]
            refused = self._refused(pod, known, None)
        else:
            of_names = codes[rows]
            where = np.flatnonzero(_REFUSED_CODES[of_names])
            reasons = [_REASONS[code] or "" for code in of_names[where].tolist()]
            refused = dict(zip([names[at] for at in where.tolist()], reasons, strict=True))
        if wholes is None:
            return refused
        for at in unknown:
            node_class = schedulable_class(None, node_labels(wholes[at]), self._board.profile_label)
            if (reason := rejection(pod.workload_class, node_class)) is not None:
                refused[names[at]] = reason
        return refused

    def _render(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._hosts:
                self._hosts[name] = host_piece(name)


def host_piece(name: str) -> bytes:
    """The beginning of a node's entry in an answer."""
    return b'{"Host":%b,"Score":' % msgspec.json.encode(name)

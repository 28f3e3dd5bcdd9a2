"""The extender's metrics. Series for nodes are rendered on each scrape, some nodes at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from joulie.control.placement.board import ScoreBoard
from joulie.metrics import Described, Instruments, escaped, head
from joulie.model.names import PERFORMANCE, STANDARD

if TYPE_CHECKING:
    from prometheus_client import Counter, Histogram

CLASSES = (PERFORMANCE, STANDARD)
NODES_AT_ONCE = 50  # about 30 microseconds, after which pending requests are answered
COUNTED_AT_ONCE = 200
_NEVER = -1
_OF_NODES: dict[str, Described] = {
    name: Described(f"joulie_scheduler_{name}", "gauge", meaning, labels)
    for name, meaning, labels in (
        ("final_node_score", "Score in the last response to the scheduler.", ("node", "workload_class")),
        ("node_headroom_score", "Percent of the power budget that is free, with recent pods counted.", ("node",)),
        (
            "stale_twin_data",
            "1 if a node's twin is stale, undated or missing, so that its score is neutral.",
            ("node",),
        ),
    )
}
_BUCKETS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class ExtenderMetrics:
    """What Prometheus scrapes from the extender."""

    def __init__(self, board: ScoreBoard, now_s: Callable[[], float]) -> None:
        self.made = made = Instruments("joulie_scheduler")
        self._board, self._now_s = board, now_s
        self._last_scores = {name: np.zeros(0, dtype=np.int16) for name in CLASSES}
        self._uncounted: list[tuple[str, str, float]] = []
        self._answered = {verb: self._timed(verb) for verb in ("filter", "prioritize")}
        self.preempt_requests = made.counter("preempt_requests", "Preempt requests.")
        self.refused = made.counter(
            "refused_requests",
            "Requests that were refused, by status; failed TLS handshakes do not count.",
            "code",
        )
        self.undecodable = made.counter("broken_objects_seen", "Objects that could not be decoded.", "kind")
        self.relists = made.counter("relists", "Times that a kind was listed again after a gap.", "kind")
        self.watch_errors = made.counter("watch_errors", "Failures of watches; each was retried.", "kind")
        self.contact_age = made.gauge("api_contact_age_seconds", "Time since the last contact with the API server.")
        self.clock_ahead = made.gauge(
            "operator_clock_ahead_seconds",
            "Time in a twin minus local time when its refresh arrived; refreshes are spread over RECONCILE_INTERVAL.",
        )
        self.allocator_tuned = made.gauge("allocator_tuned", "1 if the C library keeps memory between requests.")

    def answered(self, verb: str, workload_class: str, seconds: float) -> None:
        """Recorded now and counted later in batches, at a fifth of the cost."""
        self._uncounted.append((verb, workload_class, seconds))
        if len(self._uncounted) == COUNTED_AT_ONCE:
            self._count()

    def _count(self) -> None:
        for verb, workload_class, seconds in self._uncounted:
            requests, durations = self._answered[verb][workload_class]
            requests.inc()
            durations.observe(seconds)
        self._uncounted.clear()

    def note_scores(self, workload_class: str, rows: NDArray[np.intp], scores: NDArray[np.int64]) -> None:
        """Remembers the last score of each node."""
        self._last(workload_class)[rows] = scores

    def forget(self, row: int) -> None:
        """The row will belong to another node."""
        for last in self._last_scores.values():
            last[row : row + 1] = _NEVER

    def page(self) -> Iterator[bytes]:
        """The text for a scrape, in chunks; all of it shows the moment of the call."""
        self._count()
        yield self.made.page()
        board = self._board
        rows = np.flatnonzero([node is not None for node in board.nodes])
        names = [node.name for node in board.nodes if node is not None]
        headroom, fresh = board.prepared(self._now_s()).headroom[rows], board.columns.fresh[rows]
        scores = {name: self._last(name)[rows] for name in CLASSES}
        yield _head("final_node_score")
        for name, last in scores.items():
            yield from _series("final_node_score", f'{{%s,workload_class="{name}"}} %d\n', names, last, last != _NEVER)
        yield _head("node_headroom_score")
        yield from _series("node_headroom_score", "{%s} %.6g\n", names, headroom, fresh)
        yield _head("stale_twin_data")
        yield from _series("stale_twin_data", "{%s} %d\n", names, ~fresh)

    def described(self) -> list[Described]:
        """Every metric, for the reference."""
        return [*self.made.described, *_OF_NODES.values()]

    def _last(self, workload_class: str) -> NDArray[np.int16]:
        """The last score sent to the scheduler, by row."""
        last = self._last_scores[workload_class]
        if len(last) < len(self._board.updated_s):
            more = np.full(len(self._board.updated_s) - len(last), _NEVER, dtype=np.int16)
            last = self._last_scores[workload_class] = np.append(last, more)
        return last

    def _timed(self, verb: str) -> dict[str, tuple[Counter, Histogram]]:
        requests = self.made.counter(f"{verb}_requests", f"{verb} requests, by the pod's class.", "workload_class")
        seconds = self.made.histogram(f"{verb}_duration_seconds", f"Time to answer {verb}.", _BUCKETS, "workload_class")
        return {each: (requests.labels(each), seconds.labels(each)) for each in CLASSES}


@lru_cache(maxsize=1 << 15)
def _label(node: str) -> str:
    return f'node="{escaped(node)}"'


def _head(name: str) -> bytes:
    metric, kind, meaning, _ = _OF_NODES[name]
    return head(metric, kind, meaning).encode()


def _series(
    name: str, form: str, nodes: list[str], values: NDArray[Any], shown: NDArray[np.bool_] | None = None
) -> Iterator[bytes]:
    """A line for each shown node, some nodes at a time."""
    line = _OF_NODES[name].name + form
    for start in range(0, len(nodes), NODES_AT_ONCE):
        part = slice(start, start + NODES_AT_ONCE)
        pairs = zip(map(_label, nodes[part]), values[part].tolist(), strict=True)
        chosen = pairs if shown is None else compress(pairs, shown[part].tolist())
        yield "".join([line % pair for pair in chosen]).encode()

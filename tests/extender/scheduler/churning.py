"""Nodes that change their state all the time, and the times at which the extender surely knew."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from tests.extender.scheduler.processes import RunningExtender, wait_until
from tests.extender.scheduler.recording import Exchange
from tests.extender.scheduler.scheduling import set_state

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

STATES = ("performance", "eco", "draining")
SEEN_S = 20.0


class Span(NamedTuple):
    """From the moment that the extender showed the node as eco or draining, to the moment before that was changed."""

    begin_s: float
    end_s: float

    def covers(self, exchange: Exchange) -> bool:
        return self.begin_s <= exchange.asked_at_s and exchange.answered_at_s <= self.end_s


class Knowledge:
    """When the extender surely knew which node as eco or draining; the judge of its answers."""

    def __init__(self) -> None:
        self.barred: dict[str, list[Span]] = defaultdict(list)

    def surely_barred(self, name: str, exchange: Exchange) -> bool:
        """Whether the extender knew the node as eco or draining from before the question until after the answer."""
        return any(span.covers(exchange) for span in self.barred.get(name, ()))

    def wrongly_kept(self, exchange: Exchange) -> set[str]:
        """The nodes that a filter answer leaves to a performance pod against better knowledge."""
        return {name for name in exchange.kept if self.surely_barred(name, exchange)}


class Churn:
    """Changes one node after the other while the block runs: the twin, then the labels, as the operator does.

    An API server's clients learn of a change a moment after it was made. What the extender knows when it is asked is
    therefore taken from itself: a change counts once `/debug/scoring` shows it, and counts no more before the next one
    is written. Within such a span its answer has no excuse.
    """

    def __init__(self, plane: ControlPlane, extender: RunningExtender, nodes: Sequence[str], seed: int = 1) -> None:
        self.known = Knowledge()
        self.changes = 0
        self.delays_s: list[float] = []  # from the API server's answer to the extender's knowledge
        self.fault: BaseException | None = None
        self._plane, self._extender, self._nodes = plane, extender, list(nodes)
        self._random = Random(seed)
        self._barred_since: dict[str, float] = {}
        self._states = dict.fromkeys(nodes, "performance")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        now_s = time.monotonic()
        for name, begin_s in self._barred_since.items():
            self.known.barred[name].append(Span(begin_s, now_s))
        if self.fault is not None:
            raise self.fault

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._change(self._random.choice(self._nodes))
        except BaseException as fault:  # noqa: BLE001 - raised again at the end of the block
            self.fault = fault

    def _change(self, name: str) -> None:
        state = self._random.choice([one for one in STATES if one != self._states[name]])
        before_s = time.monotonic()
        if state == "performance":
            self.known.barred[name].append(Span(self._barred_since.pop(name), before_s))
        set_state(self._plane, name, state)
        written_s = time.monotonic()
        wait_until(lambda: self._extender.classes()[name] == state, SEEN_S, f"the extender sees {name} as {state}")
        seen_s = time.monotonic()
        if state != "performance":
            self._barred_since.setdefault(name, seen_s)
        self._states[name] = state
        self.delays_s.append(seen_s - written_s)
        self.changes += 1

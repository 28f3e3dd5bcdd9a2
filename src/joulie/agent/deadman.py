"""Whether a node's target still counts: the dead-man switch (SPEC 14, "Dead man"). Pure.

A cap outlives neither the contact to the API server nor the operator that keeps it fresh by more than the lease. Nodes
let go at different moments, by their names, over half a lease: a rack that loses its caps at one instant is itself a
hazard. While it waits, the last target stays in force.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from joulie.agent.outcome import Notice
from joulie.agent.shards import share_of
from joulie.agent.targets import Target

TICKS_WITHOUT_TARGET = 2
INTERVALS_AFTER_START = 3


class Verdict(NamedTuple):
    """What to do now: enforce the target, hold the last one, or restore what was found; and why."""

    act: Literal["enforce", "hold", "restore"]
    reason: str
    notice: Notice | None = None  # only when the verdict changed


class DeadMan:
    """The dead-man switch of one node; `judge` is called once a tick, with times of one monotonic clock."""

    def __init__(
        self,
        node: str,
        *,
        lease_s: float,
        action: Literal["restore", "hold"] | str,
        interval_s: float,
        started_at_s: float,
    ) -> None:
        self._node = node
        self._lease_s = lease_s
        self._restores = action != "hold"
        self._interval_s = interval_s
        self._started_at_s = started_at_s
        self._delay_s = share_of(node) * lease_s / 2
        self._had_target = False
        self._ticks_without = 0
        self._without_since_s = math.inf
        self._let_go: float | None = None  # since when everything is restored, though a target may stand

    def judge(
        self, *, now_s: float, last_contact_s: float | None, target: Target | None, twin_age_s: float | None
    ) -> Verdict:
        """The verdict for this tick."""
        self._count(now_s, target)
        verdict = (
            self._of_contact(now_s, last_contact_s)
            or self._of_target(now_s, target)
            or self._of_twin(target, twin_age_s)
            or Verdict("enforce", "the target counts")
        )
        return self._announced(verdict, now_s)

    def _count(self, now_s: float, target: Target | None) -> None:
        if target is not None:
            self._had_target, self._ticks_without, self._without_since_s = True, 0, math.inf
            return
        self._ticks_without += 1
        self._without_since_s = min(self._without_since_s, now_s)

    def _of_contact(self, now_s: float, last_contact_s: float | None) -> Verdict | None:
        if last_contact_s is None:
            age_s, allowed_s = now_s - self._started_at_s, INTERVALS_AFTER_START * self._interval_s
            told = f"no contact to the API server since the start {_ago(age_s)} ago"
            if age_s < allowed_s:
                return Verdict("hold", told)
        else:
            age_s, allowed_s = now_s - last_contact_s, self._lease_s
            told = f"no contact to the API server for {_ago(age_s)}"
            if age_s < allowed_s:
                return None
        return self._expired(age_s, allowed_s, told)

    def _of_target(self, now_s: float, target: Target | None) -> Verdict | None:
        if target is not None:
            return None
        if not self._had_target:  # after a crash: caps of the process before may still be there
            if now_s - self._started_at_s < INTERVALS_AFTER_START * self._interval_s:
                return Verdict("hold", "no target yet")
            return Verdict("restore", f"no target within {INTERVALS_AFTER_START} intervals of the start")
        if self._ticks_without < TICKS_WITHOUT_TARGET:
            return Verdict("hold", "the target is missing, which counts from the second tick on")
        if now_s - self._without_since_s < self._delay_s:
            return Verdict("hold", "the target is gone; this node's turn to let go is yet to come")
        return Verdict("restore", "the target is gone: nobody wants a cap any more")

    def _of_twin(self, target: Target | None, twin_age_s: float | None) -> Verdict | None:
        if target is None or target.origin == "pin" or target.has_live_pin or twin_age_s is None:
            return None
        if twin_age_s <= self._lease_s:
            return None
        told = f"the operator has not refreshed the twin for {_ago(twin_age_s)}"
        return self._expired(twin_age_s, self._lease_s, told)

    def _expired(self, age_s: float, allowed_s: float, told: str) -> Verdict:
        if not self._restores:
            return Verdict("hold", f"{told}; CAP_LEASE_ACTION=hold keeps the last target")
        if age_s < allowed_s + self._delay_s:
            return Verdict("hold", f"{told}; this node's turn to let go is yet to come")
        return Verdict("restore", f"{told}: what was found is restored")

    def _announced(self, verdict: Verdict, now_s: float) -> Verdict:
        if verdict.act == "restore" and self._let_go is None:
            self._let_go = now_s
            return verdict._replace(notice=Notice("CapLeaseEnded", verdict.reason, "warning", event=True))
        if verdict.act == "enforce" and self._let_go is not None:
            told = f"the target counts again after {_ago(now_s - self._let_go)}, during which nothing was capped"
            self._let_go = None
            return verdict._replace(notice=Notice("CapLeaseResumed", told, event=True))
        return verdict


def _ago(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"

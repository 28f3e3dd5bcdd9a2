"""Whether a node's target still counts: caps are leased, and a lease that is not renewed ends.

A cap outlives neither contact with the API server nor the operator that refreshes it by more than the lease. Nodes let
go at different moments, spread by name over half a lease: a rack that loses all caps at one instant is itself a hazard.
Until its turn comes, the last target stays in force.

All times are of the agent's own monotonic clock, from when it saw something happen: wall clocks of two machines differ,
and a time stamp from the future would hold a cap for ever.

The rules: docs/reference/behaviour.md, 'Cap lease'.
"""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from joulie.agent.outcome import Notice
from joulie.agent.restore.durable import read_whole
from joulie.agent.shards import share_of
from joulie.agent.targets import CapTarget

TICKS_WITHOUT_TARGET = 2
INTERVALS_AFTER_START = 3
SAVE_S = 5.0  # at most this often
SAVES_A_LEASE = 10.0  # and at least this often
FORGET_LEASES = 100.0  # older ones belong to nodes that are gone
REFRESHES_FILE = "refreshes.json"


class Verdict(NamedTuple):
    """What to do now: enforce the target, hold the last one, or restore what was found; and why."""

    act: Literal["enforce", "hold", "restore"]
    reason: str
    notice: Notice | None = None  # only when the verdict changed


class CapLease:
    """The lease of one node's caps; `judge` is called once a tick, with times of one monotonic clock."""

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
        self._let_go: float | None = None  # since when everything is restored, though there may be a target

    def judge(
        self, *, now_s: float, last_contact_s: float | None, target: CapTarget | None, twin_age_s: float | None
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

    def _count(self, now_s: float, target: CapTarget | None) -> None:
        if target is not None:
            self._had_target, self._ticks_without, self._without_since_s = True, 0, math.inf
            return
        self._ticks_without += 1
        self._without_since_s = min(self._without_since_s, now_s)

    def _of_contact(self, now_s: float, last_contact_s: float | None) -> Verdict | None:
        if last_contact_s is None:
            age_s, allowed_s = now_s - self._started_at_s, INTERVALS_AFTER_START * self._interval_s
            told = f"no contact with the API server since the start {_ago(age_s)} ago"
            if age_s < allowed_s:
                return Verdict("hold", told)
        else:
            age_s, allowed_s = now_s - last_contact_s, self._lease_s
            told = f"no contact with the API server for {_ago(age_s)}"
            if age_s < allowed_s:
                return None
        return self._expired(age_s, allowed_s, told)

    def _of_target(self, now_s: float, target: CapTarget | None) -> Verdict | None:
        if target is not None:
            return None
        if not self._had_target:  # after a crash: caps of the process before may still be there
            if now_s - self._started_at_s < INTERVALS_AFTER_START * self._interval_s:
                return Verdict("hold", "no target yet")
            return Verdict("restore", f"no target within {INTERVALS_AFTER_START} intervals of the start")
        if self._ticks_without < TICKS_WITHOUT_TARGET:
            return Verdict("hold", "the target is missing, which counts from the second tick on")
        if now_s - self._without_since_s < self._delay_s:
            return Verdict("hold", "the target is gone; it is not yet this node's turn to restore")
        return Verdict("restore", "the target is gone: no cap is wanted any more")

    def _of_twin(self, target: CapTarget | None, twin_age_s: float | None) -> Verdict | None:
        if target is None or target.origin == "pin" or target.kept_by_pin or twin_age_s is None:
            return None
        if twin_age_s <= self._lease_s:
            return None
        told = f"the operator has not refreshed the twin for {_ago(twin_age_s)}"
        return self._expired(twin_age_s, self._lease_s, told)

    def _expired(self, age_s: float, allowed_s: float, told: str) -> Verdict:
        if not self._restores:
            return Verdict("hold", f"{told}; CAP_LEASE_ACTION=hold keeps the last target")
        if age_s < allowed_s + self._delay_s:
            return Verdict("hold", f"{told}; it is not yet this node's turn to restore")
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


class _Saved(Struct, rename="camel"):
    boot_id: str
    saved_at_s: float
    seen: dict[str, tuple[str, float]]


class Refreshes:
    """When this agent last saw the operator write each twin; remembered across restarts of the agent.

    Otherwise an agent that keeps restarting would keep the caps of an operator that is long dead. The monotonic clock
    runs on from one process to the next; after a reboot, counting continues from the age reached before. The file is
    only a hint: where it cannot be read or written, counting begins with the start.
    """

    def __init__(self, path: Path, boot_id: str, lease_s: float, now_s: float) -> None:
        self._path = path
        self._boot_id = boot_id
        self._lease_s = lease_s
        self._seen: dict[str, tuple[str, float]] = {}
        self._is_new = False
        self._saved_at_s = -math.inf
        with contextlib.suppress(OSError, msgspec.MsgspecError, ValueError):
            saved = msgspec.json.decode(read_whole(path), type=_Saved)
            behind_s = 0.0 if saved.boot_id == boot_id and saved.saved_at_s <= now_s else now_s - saved.saved_at_s
            self._seen = {
                node: (refresh, min(at_s + behind_s, now_s))
                for node, (refresh, at_s) in saved.seen.items()
                if now_s - at_s - behind_s < FORGET_LEASES * lease_s
            }

    def age_s(self, node: str, refresh: str, now_s: float) -> float:
        """How long ago the twin was seen to change to its current state; 0 where it just did, or is new."""
        known = self._seen.get(node)
        if known is None or known[0] != refresh:
            self._seen[node] = known = refresh, now_s
            self._is_new = True
        return now_s - known[1]

    def save(self, now_s: float) -> None:
        """Soon after something new, and otherwise from time to time: an age must survive a reboot."""
        since_s = now_s - self._saved_at_s
        if since_s < SAVE_S or (not self._is_new and since_s < self._lease_s / SAVES_A_LEASE):
            return
        self._saved_at_s, self._is_new = now_s, False
        data = msgspec.json.encode(_Saved(self._boot_id, now_s, self._seen))
        temporary = self._path.with_name(f"{self._path.name}.new")
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary.unlink(missing_ok=True)  # a link there would be written through
            with temporary.open("xb") as file:
                file.write(data)
            temporary.replace(self._path)

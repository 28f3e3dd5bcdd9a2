"""What has to hold at every moment, also while faults are played: looked at twice a second, past Joulie."""

from __future__ import annotations

import json
import threading
import time
from typing import Any, NamedTuple

from soak import objects
from soak.invariants import shown, wanted_pct
from soak.machines import HostMachine, Limit
from soak.scene import Scene
from testbed.api import ApiError

EVERY_S = 0.5
API_TIMEOUT_S = 3.0
FALSE_CLAIM_S = 6.0  # so long may an agent take to notice that it was wrong, or frozen


class _Mismatch(NamedTuple):
    """A device that does not hold what its twin asks for, and since when what is said of it is said."""

    wanted: str
    report: str
    since_s: float
    is_new: bool = False  # the report was written after this began


class Watch:
    """No limit outside a device's range, and no report of `applied` that is made while the device holds another."""

    def __init__(self, scene: Scene) -> None:
        self.looks = 0
        self.capped = 0  # devices that were seen to hold a cap, over all looks
        self.violations: set[str] = set()
        self._scene = scene
        self._mismatches: dict[tuple[str, str], _Mismatch] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join(30)

    def _watch(self) -> None:
        while not self._ended.wait(EVERY_S):
            self.looks += 1
            twins = self._twins()
            route = self._scene.route
            for simulator, machines in self._scene.machines.items():
                try:
                    held = machines.limits()
                except (OSError, ValueError, KeyError):
                    continue  # away or starting
                for node, limits in held.items():
                    self.capped += any(limit.held_w is not None for limit in limits.values())
                    self._judge_range(f"{simulator} {node}", limits)
                    if simulator == route == self._scene.route and node in twins:
                        self._judge_claims(node, twins[node], limits)
            for name, host in self._scene.hosts.items():
                try:
                    limits = self._judge_journal(name, host)
                except ValueError:
                    continue  # a file that is being written
                self._judge_range(name, limits)
                if name in twins:
                    self._judge_claims(name, twins[name], {"cpu": next(iter(limits.values()))})

    def _judge_journal(self, name: str, host: HostMachine) -> dict[str, Limit]:
        """What was found is noted before a device is first written, and until it was restored."""
        before = self._scene.states.has_journal(f"agent-{name}")
        limits = host.limits()
        changed = not host.is_as_found
        self.capped += changed
        if changed and not before and not self._scene.states.has_journal(f"agent-{name}"):
            self._violated(f"journal: {name} is capped, and what was found is not noted")
        return limits

    def _twins(self) -> dict[str, dict[str, Any]]:
        """None while the API server does not answer."""
        try:
            answer = json.loads(
                self._scene.plane.api.raw("GET", f"{objects.JOULIE}/nodetwins", timeout_s=API_TIMEOUT_S)
            )
        except (OSError, ApiError, ValueError):
            return {}
        return {twin["metadata"]["name"]: twin for twin in answer.get("items") or ()}

    def _judge_range(self, where: str, limits: dict[str, Limit]) -> None:
        for device, limit in limits.items():
            if not limit.in_range:
                self._violated(f"range: {where} {device} holds {shown(limit)}, lowest {limit.lowest_w:g}")

    def _judge_claims(self, node: str, twin: dict[str, Any], limits: dict[str, Limit]) -> None:
        """A report of `applied` that is written while the device holds another value, and stands."""
        for device in ("cpu", "gpu"):
            if device not in limits:
                continue
            key, now_s, pct = (node, device), time.monotonic(), wanted_pct(twin, device)
            report = twin.get("status", {}).get("controlStatus", {}).get(device) or {}
            told = json.dumps(report, sort_keys=True)
            wanted = json.dumps([twin.get("spec"), self._scene.route], sort_keys=True)
            before = self._mismatches.get(key)
            if limits[device].is_as_wanted(pct) or "throttle" in told:  # a throttle holds a cap without a limit
                self._mismatches.pop(key, None)
            elif before is None or before.wanted != wanted:
                self._mismatches[key] = _Mismatch(wanted, told, now_s)
            elif told != before.report:
                self._mismatches[key] = _Mismatch(wanted, told, now_s, is_new=True)
            elif before.is_new and report.get("result") == "applied" and now_s - before.since_s > FALSE_CLAIM_S:
                held = shown(limits[device])
                self._violated(f"claim: {node} {device} is reported as applied, wanted {pct:g} %, and holds {held}")

    def _violated(self, what: str) -> None:
        self.violations.add(what)

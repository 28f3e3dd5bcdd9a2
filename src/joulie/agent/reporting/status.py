"""What the agent reports of its nodes, and when: it changed, or readers would soon call the agent silent.

Pure: holds what is wanted and what was written; `reporting` sends the difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from joulie.agent.outcome import CapOutcome, Notice, ReportedCap
from joulie.agent.shards import share_of
from joulie.cluster.node_events import EventDetails, node_event
from joulie.cluster.port import (
    EVENTS,
    NODE_HARDWARE,
    NODE_POWER_PROFILES,
    NODE_TWINS,
    TELEMETRY_PROFILES,
    Resource,
)
from joulie.control.conditions import Statement, by_type, enforced, is_news, written
from joulie.control.pins import PIN_ACCEPTED, pin_verdicts
from joulie.model.api import NodeHardware, NodeHardwareStatus, NodeTwin
from joulie.model.api.orders import BudgetConfirmation
from joulie.model.api.results import ACCEPTED, DISCOVERED, ENFORCED, Condition, ControlState
from joulie.model.api.twin import TwinControlStatus
from joulie.model.names import API_VERSION
from joulie.model.rfc3339 import format_time, readable_time_s
from joulie.model.snapshot import Node, Pin

_HARDWARE_FIELDS = tuple(name for name in NodeHardwareStatus.__struct_encode_fields__ if name != "conditions")
REFRESH_S = 120.0  # how often an unchanged result is written again
MAX_MESSAGE_LENGTH = 1000  # the API takes 1,024


class StatusWrite(NamedTuple):
    """One call to the API server."""

    verb: Literal["create", "patch_status"]
    resource: Resource
    name: str
    body: dict[str, Any]
    owned: tuple[str, ...] = ()  # of a status: the fields that are the agent's, besides its conditions


class ControlResults(Struct, frozen=True):
    """The results of a node's caps, without the time: equal ones need not be written again."""

    cpu: ControlState
    gpu: ControlState | None = None
    generation: int | None = None  # of the spec that was acted on
    budget: BudgetConfirmation | None = None  # for twins alone

    @property
    def states(self) -> tuple[ControlState, ...]:
        return (self.cpu,) if self.gpu is None else (self.cpu, self.gpu)


def results_of(
    cpu: CapOutcome, gpu: CapOutcome, generation: int | None = None, budget: BudgetConfirmation | None = None
) -> ControlResults:
    """A node without GPUs and without a GPU target reports no GPUs."""
    silent = gpu.result == "none" and not gpu.message
    return ControlResults(_state(cpu), None if silent else _state(gpu), generation, budget)


def _state(outcome: CapOutcome) -> ControlState:
    message = " ".join(outcome.message.split())[:MAX_MESSAGE_LENGTH]
    capped = outcome.result == "applied" and not outcome.as_found
    return ControlState(
        backend=outcome.backend,
        result=outcome.result,
        message=message or None,
        cap_watts=round(outcome.held_w, 1) if capped and outcome.held_w is not None else None,
        throttle_pct=outcome.throttle_pct if capped else None,
    )


class PinReport(Struct, frozen=True):
    """What to report of a pin that the agent enforces itself, because there is no operator."""

    statements: tuple[Statement, ...]
    results: ControlResults | None = None  # of the pin in force


class _WrittenStatus(NamedTuple):
    results: ControlResults
    again_at_s: float
    enforced: Condition | None = None  # as it was written


class ControlReports:
    """The results of all nodes, for the objects of one kind (twins, or profiles of one node)."""

    def __init__(self) -> None:
        self._wanted: dict[str, ControlResults] = {}
        self._told: dict[str, _WrittenStatus] = {}

    def want(self, name: str, results: ControlResults) -> bool:
        """Report this from now on; True where it is news."""
        if self._wanted.get(name) == results:
            return False
        self._wanted[name] = results
        return True

    def wanted(self, name: str) -> ControlResults | None:
        """The latest report, written or not."""
        return self._wanted.get(name)

    def forget(self, name: str) -> None:
        """Report nothing of it any more."""
        self._wanted.pop(name, None)
        self._told.pop(name, None)

    def lost(self, name: str) -> None:
        """The object is gone, and its report with it."""
        self._told.pop(name, None)

    def already_there(self, name: str, there: TwinControlStatus | None, enforced: Condition | None = None) -> None:
        """What an object already reports, from before this process began."""
        if name in self._told or there is None or there.cpu is None:
            return
        said_at_s = _time_s(there.cpu.updated_at)
        gpu = None if there.gpu is None else replace(there.gpu, updated_at=None)
        generation = None if enforced is None else enforced.observed_generation
        results = ControlResults(replace(there.cpu, updated_at=None), gpu, generation, there.budget)
        self._told[name] = _WrittenStatus(results, said_at_s + REFRESH_S, enforced)

    def is_told(self, name: str) -> bool:
        """Whether the latest report has been written."""
        return name in self._told and self._told[name].results == self._wanted.get(name)

    def due(self, wall_s: float) -> list[tuple[str, ControlResults]]:
        """What must be written now: news, and what is about to look silent."""
        return [(name, results) for name, results in self._wanted.items() if self.is_due(name, wall_s)]

    def is_due(self, name: str, wall_s: float) -> bool:
        results, told = self._wanted[name], self._told.get(name)
        if told is None or (told.results is not results and told.results != results):
            return True
        return not is_ahead(told.again_at_s, wall_s, REFRESH_S)

    def written(self, name: str, results: ControlResults, wall_s: float, enforced: Condition | None = None) -> None:
        self._told[name] = _WrittenStatus(results, next_moment_s(name, wall_s), enforced)

    def enforced(self, name: str) -> Condition | None:
        """The condition as it was last written."""
        return self._told[name].enforced if name in self._told else None


def is_ahead(moment_s: float, wall_s: float, at_most_s: float) -> bool:
    """Whether a moment is still to come; one further away than it was ever set means that the clock was put back."""
    return 0 < moment_s - wall_s <= at_most_s


def next_moment_s(name: str, wall_s: float) -> float:
    """When to write it again: each name has its own moment in the interval, so writes are spread evenly."""
    phase_s = share_of(name) * REFRESH_S
    return (math.floor((wall_s - phase_s) / REFRESH_S) + 1) * REFRESH_S + phase_s


def pin_reports(
    node: Node, pins: Iterable[Pin], results: ControlResults, wall_s: float, *, in_scope: bool
) -> dict[str, PinReport]:
    """Of the pins that name a node without a twin; a cordoned node is no exception where nothing is planned."""
    nodes, scope = {node.name: replace(node, unschedulable=False)}, {node.name} if in_scope else ()
    reports: dict[str, PinReport] = {}
    for pin, reason, message in pin_verdicts(pins, nodes, scope, wall_s):
        accepted = reason == PIN_ACCEPTED
        said = enforced(results.states) if accepted else ("False", reason, message)
        reports[pin.name] = PinReport(
            (
                Statement(ACCEPTED, "True" if accepted else "False", reason, message, pin.generation),
                Statement(ENFORCED, *said, pin.generation),
            ),
            replace(results, generation=None) if accepted else None,
        )
    return reports


def enforced_condition(results: ControlResults, there: Condition | None, wall_s: float) -> Condition:
    return Statement(ENFORCED, *enforced(results.states), results.generation).condition(there, wall_s)


def twin_write(name: str, results: ControlResults, enforced: Condition, wall_s: float) -> StatusWrite:
    status = {"controlStatus": _timed(results, wall_s), "conditions": [to_builtins(enforced)]}
    return StatusWrite("patch_status", NODE_TWINS, name, {"status": status}, ("controlStatus",))


def profile_write(name: str, results: ControlResults, wall_s: float) -> StatusWrite:
    status = {"control": _timed(results, wall_s), "updatedAt": format_time(wall_s)}
    return StatusWrite("patch_status", TELEMETRY_PROFILES, name, {"status": status}, ("control", "updatedAt"))


def pin_write(name: str, report: PinReport, there: Mapping[str, Condition], wall_s: float) -> StatusWrite:
    control = {} if report.results is None else {"control": _timed(report.results, wall_s)}
    status = {**control, "conditions": written(report.statements, there, wall_s)}
    return StatusWrite("patch_status", NODE_POWER_PROFILES, name, {"status": status}, ("control",))


def _timed(results: ControlResults, wall_s: float) -> dict[str, Any]:
    cpu, gpu = (state and replace(state, updated_at=format_time(wall_s)) for state in (results.cpu, results.gpu))
    return dict(to_builtins(TwinControlStatus(cpu=cpu, gpu=gpu, budget=results.budget)))


def hardware_writes(
    name: str, uid: str | None, wanted: NodeHardwareStatus, there: NodeHardware | None, wall_s: float
) -> list[StatusWrite]:
    """Brings NodeHardware up to date: created with the Node as its owner, its status patched on change."""
    known = (there.status if there else None) or NodeHardwareStatus()
    conditions = by_type(known.conditions)
    discovered = _discovered(wanted, there.metadata.generation if there else 1)
    same = replace(known, updated_at=None, conditions=None) == replace(wanted, updated_at=None, conditions=None)
    if there is not None and same and not is_news([discovered], conditions):
        return []
    body = to_builtins(replace(wanted, updated_at=format_time(wall_s)))
    body["conditions"] = written([discovered], conditions, wall_s)
    status = StatusWrite("patch_status", NODE_HARDWARE, name, {"status": body}, _HARDWARE_FIELDS)
    if there is not None:
        return [status]
    owners = [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}] if uid else []
    metadata = {"name": name, **({"ownerReferences": owners} if owners else {})}
    body = {"apiVersion": API_VERSION, "kind": "NodeHardware", "metadata": metadata}
    return [StatusWrite("create", NODE_HARDWARE, name, body), status]


def _discovered(found: NodeHardwareStatus, generation: int | None) -> Statement:
    quality = found.quality
    overall = (quality and quality.overall) or "unavailable"
    warnings = "; ".join((quality and quality.warnings) or ())
    return Statement(
        DISCOVERED, "False" if overall == "unavailable" else "True", overall.capitalize(), warnings, generation
    )


def event_write(node: str, notice: Notice, wall_s: float, reporter: str) -> StatusWrite:
    """An event on the node."""
    body = node_event(
        node,
        EventDetails(
            "agent", reporter, notice.reason, notice.message, "Warning" if notice.level == "warning" else "Normal"
        ),
        wall_s,
    )
    return StatusWrite("create", EVENTS, body["metadata"]["name"], body)


def control_status_of(twin: NodeTwin | None) -> TwinControlStatus | None:
    return None if twin is None or twin.status is None else twin.status.control_status


def claim_of(told: ControlState | None) -> ReportedCap | None:
    """The cap that was reported to be in force; None: none was."""
    if told is None or told.result != "applied":
        return None
    return ReportedCap(told.cap_watts, told.throttle_pct)


def enforced_of(twin: NodeTwin | None) -> Condition | None:
    return by_type(twin.status.conditions if twin is not None and twin.status is not None else None).get(ENFORCED)


def _time_s(text: str | None) -> float:
    at_s = readable_time_s(text)
    return -math.inf if at_s is None else at_s

"""What the agent says of its nodes, and when it is worth a write: it changed, or readers would soon call it silent.

Pure: holds what is wanted and what was written; `reporting` sends the difference.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from joulie.agent.outcome import Notice, Outcome
from joulie.agent.shards import share_of
from joulie.cluster.merging import merge_patch
from joulie.cluster.node_events import Told, node_event
from joulie.cluster.port import EVENTS, NODE_HARDWARE, NODE_TWINS, TELEMETRY_PROFILES, Resource
from joulie.model.api import NodeHardware, NodeHardwareStatus, NodeTwin
from joulie.model.api.twin import ControlState, ControlStatus
from joulie.model.names import API_VERSION
from joulie.model.rfc3339 import format_time, readable_time_s

REFRESH_S = 120.0  # so often an unchanged result is written again
LONGEST_MESSAGE = 1000  # the API takes 1,024


class Write(NamedTuple):
    """One call to the API server."""

    verb: Literal["create", "patch_status"]
    resource: Resource
    name: str
    body: dict[str, Any]


class Results(Struct, frozen=True):
    """What became of a node's caps, without the time: equal ones need not be written again."""

    cpu: ControlState
    gpu: ControlState | None = None


def results_of(cpu: Outcome, gpu: Outcome) -> Results:
    """A node without GPUs and without a wish for them says nothing of GPUs."""
    silent = gpu.result == "none" and not gpu.message
    return Results(_state(cpu), None if silent else _state(gpu))


def _state(outcome: Outcome) -> ControlState:
    message = " ".join(outcome.message.split())[:LONGEST_MESSAGE]
    return ControlState(backend=outcome.backend, result=outcome.result, message=message or None)


class _Told(NamedTuple):
    results: Results
    again_at_s: float


class ControlReports:
    """The results of all nodes, for the objects of one kind (twins, or profiles of one node)."""

    def __init__(self) -> None:
        self._wanted: dict[str, Results] = {}
        self._told: dict[str, _Told] = {}

    def want(self, name: str, results: Results) -> bool:
        """This is to be said now; whether that is news."""
        if self._wanted.get(name) == results:
            return False
        self._wanted[name] = results
        return True

    def forget(self, name: str) -> None:
        """There is nothing to say of it any more."""
        self._wanted.pop(name, None)
        self._told.pop(name, None)

    def lost(self, name: str) -> None:
        """The object is gone, and what was said with it."""
        self._told.pop(name, None)

    def already_there(self, name: str, there: ControlStatus | None) -> None:
        """What an object says already, from before this process began."""
        if name in self._told or there is None or there.cpu is None:
            return
        said_at_s = _time_s(there.cpu.updated_at)
        gpu = None if there.gpu is None else replace(there.gpu, updated_at=None)
        self._told[name] = _Told(Results(replace(there.cpu, updated_at=None), gpu), said_at_s + REFRESH_S)

    def is_told(self, name: str) -> bool:
        """Whether the last that there was to say has been said."""
        return name in self._told and self._told[name].results == self._wanted.get(name)

    def due(self, wall_s: float) -> list[tuple[str, Results]]:
        """What must be written now: news, and what would soon be taken for silence."""
        return [
            (name, results)
            for name, results in self._wanted.items()
            if (told := self._told.get(name)) is None
            or (told.results is not results and told.results != results)
            or told.again_at_s <= wall_s
        ]

    def written(self, name: str, results: Results, wall_s: float) -> None:
        self._told[name] = _Told(results, next_moment_s(name, wall_s))


def next_moment_s(name: str, wall_s: float) -> float:
    """When to say it again: each name has a moment of its own in the interval, so writes are spread evenly."""
    phase_s = share_of(name) * REFRESH_S
    return (math.floor((wall_s - phase_s) / REFRESH_S) + 1) * REFRESH_S + phase_s


def twin_write(name: str, results: Results, wall_s: float) -> Write:
    return Write("patch_status", NODE_TWINS, name, {"status": {"controlStatus": _timed(results, wall_s)}})


def profile_write(name: str, results: Results, wall_s: float) -> Write:
    status = {"control": _timed(results, wall_s), "updatedAt": format_time(wall_s)}
    return Write("patch_status", TELEMETRY_PROFILES, name, {"status": status})


def _timed(results: Results, wall_s: float) -> dict[str, Any]:
    """As a merge patch: None takes away what an earlier agent said."""
    when = format_time(wall_s)
    return {
        kind: None
        if state is None
        else {"backend": state.backend, "result": state.result, "message": state.message, "updatedAt": when}
        for kind, state in (("cpu", results.cpu), ("gpu", results.gpu))
    }


def hardware_writes(
    name: str, uid: str | None, wanted: NodeHardwareStatus, there: NodeHardware | None, wall_s: float
) -> list[Write]:
    """What brings NodeHardware to what was found: created with the Node as its owner, its status patched on change."""
    known = (there.status if there else None) or NodeHardwareStatus()
    if there is not None and replace(known, updated_at=None) == replace(wanted, updated_at=None):
        return []
    patch = merge_patch(known, replace(wanted, updated_at=format_time(wall_s)))
    status = Write("patch_status", NODE_HARDWARE, name, {"status": patch})
    if there is not None:
        return [status]
    owners = [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}] if uid else []
    metadata = {"name": name, **({"ownerReferences": owners} if owners else {})}
    body = {"apiVersion": API_VERSION, "kind": "NodeHardware", "metadata": metadata}
    return [Write("create", NODE_HARDWARE, name, body), status]


def event_write(node: str, notice: Notice, wall_s: float, reporter: str) -> Write:
    """An event on the node."""
    body = node_event(
        node,
        Told("agent", reporter, notice.reason, notice.message, "Warning" if notice.level == "warning" else "Normal"),
        wall_s,
    )
    return Write("create", EVENTS, body["metadata"]["name"], body)


def control_status_of(twin: NodeTwin | None) -> ControlStatus | None:
    return None if twin is None or twin.status is None else twin.status.control_status


def _time_s(text: str | None) -> float:
    at_s = readable_time_s(text)
    return -math.inf if at_s is None else at_s

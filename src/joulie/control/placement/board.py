"""The nodes and twins of a cluster as columns for scoring, kept up to date object by object.

A row is a name that a node or a twin has. An event changes the elements of one row; what depends on all rows is
computed again when a score is next asked for. A snapshot goes through the same rows (`placement.score_table`), so that
a live extender and `joulie score` cannot disagree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from joulie.catalogue.lookup import Catalogue
from joulie.control.placement.budget_rooms import BudgetRooms, groups_in
from joulie.control.scoring import CLASS_CODES, Prepared, ScoreColumns, prepare
from joulie.control.survey import BoundPods, MachineColumns
from joulie.model.api import NodeHardware, NodeTwin, NodeTwinStatus, PowerBudget
from joulie.model.names import DRAINING, ECO, PERFORMANCE, UNKNOWN
from joulie.model.rfc3339 import readable_time_s
from joulie.model.snapshot import Node, Pod
from joulie.physics.hardware import Machine, machine_of
from joulie.physics.marginal import MIN_TOTAL
from joulie.settings import HardwareSettings, MarginalSettings, ScoreSettings

_NO_STATUS = NodeTwinStatus()
_NO_LABELS: Mapping[str, str] = {}
NO_ROW = ""
MAX_TREND_W_PER_MIN = 1e12  # far above any node's, and small enough that all of a cluster can be added up


class ScoreBoard:
    """Rows that are changed in place. Nothing here reads a clock: `prepared` is told the time."""

    def __init__(
        self,
        settings: ScoreSettings,
        marginal: MarginalSettings,
        hardware: HardwareSettings,
        catalogue: Catalogue,
        rows: int = 0,
    ) -> None:
        self._settings, self._marginal = settings, marginal
        self._hardware_settings, self._catalogue = hardware, catalogue
        self.index: dict[str, int] = {}
        self.index_version = 0  # another one after each name that came or went
        self.names: list[str] = []  # by row; NO_ROW where a row is free
        self.nodes: list[Node | None] = []
        self.statuses: list[NodeTwinStatus | None] = []  # None: no twin
        self.machines: dict[int, Machine] = {}  # by row
        self._hardware: dict[str, NodeHardware] = {}
        self._pods_on: dict[str, dict[str, Pod]] = {}  # by node and key: bound and not finished
        self._free: list[int] = []
        self._rooms = BudgetRooms()
        self.columns = _no_columns(rows)
        self.updated_s = np.full(rows, np.nan)  # when each twin was written, as it says
        self.alive_s = np.full(rows, np.nan)  # the same by our clock, where it was seen; twins grow stale from here
        self._recent_changed: set[int] = set()
        self.on_freed: Callable[[str, int], None] = _ignore  # a name is gone, and its row may become another's
        self._prepared: Prepared | None = None  # None: something has changed since
        self._prepared_at_s = self._oldest_fresh_s = -math.inf

    def put_node(self, name: str, node: Node | None) -> None:
        """A node is new, has changed or is gone (None)."""
        if node is None and name not in self.index:
            return
        row = self._row(name)
        self.nodes[row] = node
        self._write_machine(row)
        self._write_class(row)
        self._drop_if_empty(row)

    def put_hardware(self, name: str, hardware: NodeHardware | None) -> None:
        """NodeHardware of a node; it may come before the node does."""
        if hardware is None:
            self._hardware.pop(name, None)
        else:
            self._hardware[name] = hardware
        row = self.index.get(name)
        if row is not None:
            self._write_machine(row)

    def put_twin(self, name: str, status: NodeTwinStatus | None, alive_s: float | None = None) -> None:
        """A twin is new, has changed (a twin without a status has an empty one) or is gone (None).

        `alive_s` is when it was last seen to be refreshed, for callers that watch; otherwise its own time counts.
        """
        if status is None and name not in self.index:
            return
        row = self._row(name)
        self.statuses[row] = status
        self._write_status(row, status or _NO_STATUS)
        self.alive_s[row] = self.updated_s[row] if alive_s is None else alive_s
        self._write_class(row)
        self._drop_if_empty(row)

    def put_orders(self, name: str, twin: NodeTwin | None) -> None:
        """Which groups of budgets hold the node, by its twin; None: the twin is gone."""
        if self._rooms.put_groups(name, groups_in(twin)):
            self._prepared = None

    def put_budget(self, name: str, budget: PowerBudget | None) -> None:
        """A budget is new, has changed or is gone (None)."""
        if self._rooms.put_budget(name, budget):
            self._prepared = None

    def put_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        """A pod that was there before, is there after, or both; only bound ones that still run count."""
        for pod, here in ((before, False), (after, True)):
            if pod is None or not pod.node or pod.finished:
                continue
            pods = self._pods_on.setdefault(pod.node, {})
            if here:
                pods[key] = pod
            else:
                pods.pop(key, None)
                if not pods:
                    del self._pods_on[pod.node]
            row = self.index.get(pod.node)
            if row is not None:
                self._recent_changed.add(row)
                self._prepared = None

    def expect(self, rows: NDArray[np.intp], watts: NDArray[np.float64]) -> None:
        """Add (or, negative, take back) power that pods on their way will most likely draw there."""
        self.columns.expected_w[rows] += watts
        self._prepared = None

    def prepared(self, now_s: float) -> Prepared:
        """The terms that no pod changes, as of now: twins grow stale by the clock alone."""
        oldest_s = now_s - self._settings.twin_staleness_s
        same_twins_are_fresh = self._prepared_at_s <= now_s and oldest_s <= self._oldest_fresh_s
        self._prepared_at_s = now_s
        if self._prepared is None or not same_twins_are_fresh:
            self._write_recent_pods()
            fresh = np.greater_equal(self.alive_s, oldest_s, out=self.columns.fresh)
            self._oldest_fresh_s = float(np.min(self.alive_s, where=fresh, initial=math.inf))
            rooms = self._rooms.left(self.index, self.index_version, self.columns)
            self._prepared = prepare(self.columns, self._marginal, rooms)
        return self._prepared

    def class_of(self, row: int) -> str:
        """What the scheduler may place there: by the twin at any age, else by the label."""
        node = self.nodes[row]
        return schedulable_class(self.statuses[row], node.labels if node else _NO_LABELS, self.profile_label)

    @property
    def profile_label(self) -> str:
        return self._settings.power_profile_label

    def _row(self, name: str) -> int:
        row = self.index.get(name)
        if row is not None:
            return row
        if self._free:
            row = self._free.pop()
            self.names[row] = name
        else:
            row = len(self.names)
            self.names.append(name)
            self.nodes.append(None)
            self.statuses.append(None)
            if row == len(self.updated_s):
                self._grow()
        self.index[name] = row
        self.index_version += 1
        self._write_machine(row)
        self._recent_changed.add(row)
        return row

    def _drop_if_empty(self, row: int) -> None:
        """A name that neither a node nor a twin has any more frees its row, whose columns then say nothing."""
        if self.nodes[row] is None and self.statuses[row] is None:
            name, self.names[row] = self.names[row], NO_ROW
            del self.index[name]
            self.index_version += 1
            self.on_freed(name, row)
            self._free.append(row)

    def _grow(self) -> None:
        rows = max(64, len(self.updated_s) * 5 // 4)
        grown, old = _no_columns(rows), self.columns
        for field in ScoreColumns.__struct_fields__:
            getattr(grown, field)[: len(self.updated_s)] = getattr(old, field)
        more = np.full(rows - len(self.updated_s), np.nan)
        self.updated_s = np.concatenate([self.updated_s, more])
        self.alive_s = np.concatenate([self.alive_s, more])
        self.columns = grown

    def _write_machine(self, row: int) -> None:
        name = self.names[row]
        node = self.nodes[row] or Node(name, _NO_LABELS)
        machine = machine_of(node, self._hardware.get(name), self._hardware_settings, self._catalogue)
        self.machines[row] = machine
        columns = self.columns
        columns.cpu_max_w[row] = machine.cpu_max_w
        columns.gpu_max_w[row] = machine.gpu_max_w
        columns.inverse_cores[row] = _inverse(machine.share_cores)
        columns.inverse_gpus[row] = _inverse(machine.share_gpus)
        self._recent_changed.add(row)
        self._prepared = None

    def _write_status(self, row: int, status: NodeTwinStatus) -> None:
        columns = self.columns
        power = status.power_measurement
        trend = power.power_trend_w_per_min if power else None
        capped_w = power.node_capped_power_w if power else None
        measured_w = power.measured_node_power_w if power else None
        known = measured_w is not None and (capped_w or 0.0) >= MIN_TOTAL  # a budget of 0 tells nothing
        columns.has_power[row] = known
        columns.capped_w[row] = capped_w if known else 0.0
        columns.measured_w[row] = measured_w if known else 0.0
        columns.predicted_headroom[row] = status.predicted_power_headroom_score or 0.0
        columns.cooling_stress[row] = status.predicted_cooling_stress_score or 0.0
        columns.trend_w_per_min[row] = min(max(trend or 0.0, -MAX_TREND_W_PER_MIN), MAX_TREND_W_PER_MIN)
        columns.pue[row] = (status.estimated_pue or 1.0) if self._settings.enable_facility_metrics else 1.0
        at_s = updated_at_s(status)
        self.updated_s[row] = math.nan if at_s is None else at_s
        self._recent_changed.add(row)
        self._prepared = None

    def _write_class(self, row: int) -> None:
        self.columns.class_code[row] = CLASS_CODES[self.class_of(row)]

    def _write_recent_pods(self) -> None:
        """What pods add that were bound when the twin had already been written, for rows where that may differ."""
        if not (self._recent_changed and self._settings.count_recent_pods):
            return
        recent = BoundPods()
        for row in self._recent_changed:
            since_s = self.updated_s[row]
            for pod in self._pods_on.get(self.names[row], _NO_PODS).values():
                if pod.scheduled_at_s is not None and pod.scheduled_at_s >= since_s:
                    recent.add(row, pod)
        columns, changed = self.columns, list(self._recent_changed)
        columns.recent_w[changed] = 0.0
        if recent.rows:
            machines = MachineColumns(columns.cpu_max_w, columns.gpu_max_w, columns.inverse_cores, columns.inverse_gpus)
            columns.recent_w[changed] = recent.added_power_w(machines, self._marginal)[changed]
        self._recent_changed.clear()


_NO_PODS: dict[str, Pod] = {}


def _ignore(_name: str, _row: int) -> None:
    """For boards without anything kept by row."""


def schedulable_class(status: NodeTwinStatus | None, labels: Mapping[str, str], profile_label: str) -> str:
    """What the twin says, at any age; where it says nothing, the label."""
    said = status.schedulable_class if status else None
    if said in (PERFORMANCE, ECO, DRAINING):
        return said
    labelled = labels.get(profile_label)
    return labelled if labelled in (PERFORMANCE, ECO) else UNKNOWN


def updated_at_s(status: NodeTwinStatus | None) -> float | None:
    """When the twin was written; None where it does not say so readably."""
    return readable_time_s(status.last_updated) if status is not None else None


def _inverse(total: float) -> float:
    return 1.0 / total if total >= MIN_TOTAL else 0.0


def _no_columns(rows: int) -> ScoreColumns:
    """Rows of which nothing is known."""

    def numbers(value: float = 0.0) -> NDArray[np.float64]:
        return np.full(rows, value)

    return ScoreColumns(
        fresh=np.zeros(rows, dtype=np.bool_),
        class_code=np.full(rows, CLASS_CODES[UNKNOWN], dtype=np.int8),
        has_power=np.zeros(rows, dtype=np.bool_),
        capped_w=numbers(),
        measured_w=numbers(),
        recent_w=numbers(),
        expected_w=numbers(),
        predicted_headroom=numbers(),
        cooling_stress=numbers(),
        trend_w_per_min=numbers(),
        pue=numbers(1.0),
        cpu_max_w=numbers(),
        gpu_max_w=numbers(),
        inverse_cores=numbers(),
        inverse_gpus=numbers(),
    )

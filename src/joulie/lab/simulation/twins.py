"""Twins as objects, for policies that look at them: what the operator would have written on the last tick."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from joulie.control.policies.interface import NodeView, State
from joulie.control.scoring import ScoreColumns
from joulie.control.twins import TwinTable, UnderCaps
from joulie.lab.simulation.cluster import LabCluster
from joulie.model.api import NodeTwin
from joulie.model.kubernetes import ObjectMeta
from joulie.model.names import RACK_LABEL
from joulie.physics.twin import hardware_density_score, psu_stress_score

if TYPE_CHECKING:
    from joulie.lab.simulation.telemetry import Sensors

Numbers = NDArray[np.float64]


class TwinWriter:
    """Keeps what a twin is made of; makes objects of it only when asked."""

    def __init__(self, cluster: LabCluster, rack_capacity_w: float) -> None:
        self._cluster = cluster
        self._rack_capacity_w = rack_capacity_w
        racks = [node.labels[RACK_LABEL] for node in cluster.nodes.values()]
        self._rack_of = np.unique(racks, return_inverse=True)[1]
        machines = cluster.recognised
        self._density = hardware_density_score(
            np.array([machine.cores for machine in machines]), np.array([machine.gpu_count for machine in machines])
        )
        self._under: UnderCaps | None = None
        self._pct: tuple[Numbers, Numbers] | None = None
        self._written_s = 0.0
        self._pue: float | None = None

    def keep(self, under: UnderCaps, cpu_pct: Numbers, gpu_pct: Numbers, pue: float | None, now_s: float) -> None:
        self._under, self._pct = under, (cpu_pct, gpu_pct)
        self._pue, self._written_s = pue, now_s

    def show(self, views: list[NodeView], states: Sequence[State], columns: ScoreColumns, sensors: Sensors) -> None:
        """Puts the last twins into the views."""
        table = self.table(states, columns, sensors)
        for row, view in enumerate(views):
            views[row] = replace(view, twin=NodeTwin(ObjectMeta(name=view.name), status=table.status(row)))

    def table(self, states: Sequence[State], columns: ScoreColumns, sensors: Sensors) -> TwinTable:
        """The last tick's twins of all nodes."""
        assert self._under is not None
        assert self._pct is not None
        under, machines = self._under, self._cluster.recognised
        rack_w = np.bincount(self._rack_of, columns.measured_w).astype(np.float64, copy=False)
        gpu_max_w = columns.gpu_max_w
        values = {
            "headroom": under.headroom,
            "cooling_stress": under.cooling_stress,
            "psu_stress": psu_stress_score(rack_w[self._rack_of], self._rack_capacity_w),
            "cpu_pct": self._pct[0],
            "gpu_pct": self._pct[1],
            "density": self._density,
            "measured_w": columns.measured_w,
            "cpu_capped_w": under.cpu_capped_w,
            "gpu_capped_w": under.gpu_capped_w,
            "capped_w": under.capped_w,
            "cpu_max_w": columns.cpu_max_w,
            "gpu_max_w": gpu_max_w,
            "max_w": columns.cpu_max_w + gpu_max_w,
            "trend": columns.trend_w_per_min,
        }
        return TwinTable(
            nodes=list(self._cluster.names),
            states=list(states),
            sources=["static" if static else "http" for static in sensors.is_static.tolist()],
            has_gpu=[machine.gpu_count > 0 for machine in machines],
            columns={name: np.asarray(value).tolist() for name, value in values.items()},
            estimated_pue=self._pue,
            now_s=self._written_s,
        )

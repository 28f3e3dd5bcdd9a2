"""The series of a run, as plots show them."""

from __future__ import annotations

import numpy as np

from joulie.control.scoring import CLASS_CODES
from joulie.lab.kernels.tick import count_nodes
from joulie.lab.kernels.world import Numbers, World
from joulie.lab.model.outcome import SERIES
from joulie.lab.simulation.steering import Steering
from joulie.model.names import ECO
from joulie.plant.cooling import CoolingSettings

_ECO = CLASS_CODES[ECO]


class Recorder:
    """One row an interval: means of power since the last row, everything else as it is."""

    def __init__(self, world: World, steering: Steering) -> None:
        self.heat_capacity_s, self.setpoint_c = CoolingSettings().heat_capacity_s, CoolingSettings().setpoint_c
        self._world, self._steering = world, steering
        self._rows: list[tuple[float, ...]] = []
        self._at = (0.0, 0.0, 0.0)

    def record(self) -> None:
        run, zones = self._world.run, self._world.zones
        now_s = min(float(run["now_s"]), float(run["steps"]) * float(run["step_s"]))
        outside_c = self._world.outside_c
        since_s, it_j, cooling_j = self._at
        if now_s <= since_s:
            return
        self._at = (now_s, float(run["it_j"]), float(run["cooling_j"]))
        dt_s = now_s - since_s
        cpu_pct, gpu_pct = self._steering.mean_cap_pct
        eco, asleep = count_nodes(self._world, _ECO)
        step = min(max(0, int(run["steps"]) - 1), len(outside_c) - 1)
        self._rows.append(
            (
                now_s,
                (self._at[1] - it_j) / dt_s,
                (self._at[2] - cooling_j) / dt_s,
                float(outside_c[step]),
                float(zones["inlet_c"].max()),
                cpu_pct,
                gpu_pct,
                float(run["running"]),
                float(run["waiting"]),
                float(eco),
                float(asleep),
            )
        )

    def series(self) -> dict[str, Numbers]:
        table = np.array(self._rows).reshape(len(self._rows), len(SERIES))
        return {name: table[:, column].copy() for column, name in enumerate(SERIES)}

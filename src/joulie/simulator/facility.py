"""The simulated building: cooling zones, racks, and their numbers under the names that the operator asks for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from joulie.plant.cooling import Cooling
from joulie.plant.curves import Numbers
from joulie.plant.fleet import wall_max_w
from joulie.settings import OperatorSettings
from joulie.simulator.hardware import SimulatedNode

SPARE = 1.1  # cooling is built for so much more than all nodes at their limits


_NAMES = OperatorSettings()  # its defaults are what an operator asks for
AMBIENT, IT_POWER = _NAMES.facility_ambient_metric, _NAMES.facility_it_power_metric
COOLING_POWER = _NAMES.facility_cooling_power_metric
ZONE_AMBIENT = "datacenter_zone_ambient_temperature_celsius"  # label zone
RACK_POWER = "datacenter_rack_power_watts"  # label rack

Series = tuple[dict[str, str], float]


class Facility:
    """Where the nodes stand and how that place is cooled."""

    def __init__(self, nodes: Sequence[SimulatedNode], before: Facility | None = None) -> None:
        self.zones = sorted({node.zone for node in nodes}) or [""]
        self.racks = sorted({node.rack for node in nodes if node.rack})
        zone_at = {zone: index for index, zone in enumerate(self.zones)}
        rack_at = {rack: index for index, rack in enumerate(self.racks)}
        self._zone_of = np.asarray([zone_at[node.zone] for node in nodes], dtype=np.intp)
        # Nodes without a rack are counted in one that is not shown.
        self._rack_of = np.asarray([rack_at.get(node.rack, len(self.racks)) for node in nodes], dtype=np.intp)
        self._it_w = np.zeros(len(nodes))
        self.cooling = Cooling(self._by_zone(np.asarray([wall_max_w(node.machine) for node in nodes])) * SPARE)
        if before is not None:
            self._take_over(before)

    @property
    def inlet_c(self) -> Numbers:
        """Of each node."""
        return self.cooling.inlet_c[self._zone_of]

    @property
    def it_w(self) -> float:
        return float(self._it_w.sum())

    def step(self, dt_s: float, node_w: Numbers, outside_c: float) -> None:
        self._it_w = node_w
        self.cooling.step(dt_s, self._by_zone(node_w), outside_c)

    def series(self, metric: str) -> list[Series]:
        """What a metric has to say; nothing for one that is not known here."""
        cooling = self.cooling
        if metric == ZONE_AMBIENT:
            return [({"zone": zone}, float(c)) for zone, c in zip(self.zones, cooling.inlet_c, strict=True)]
        if metric == RACK_POWER:
            racks_w = np.bincount(self._rack_of, weights=self._it_w, minlength=len(self.racks) + 1)
            return [({"rack": rack}, float(w)) for rack, w in zip(self.racks, racks_w, strict=False)]
        building = {
            AMBIENT: cooling.inlet_c.mean(),
            IT_POWER: self.it_w,
            COOLING_POWER: cooling.electricity_w.sum(),
        }
        return [({}, float(building[metric]))] if metric in building else []

    def _by_zone(self, of_nodes: Numbers) -> Numbers:
        sums = np.bincount(self._zone_of, weights=of_nodes, minlength=len(self.zones))
        return sums.astype(np.float64, copy=False)

    def _take_over(self, before: Facility) -> None:
        """A zone keeps its temperature and counters when nodes come or go."""
        names = ("inlet_c", "it_energy_j", "fan_energy_j", "compressor_energy_j", "removed_j")
        for there, zone in enumerate(before.zones):
            if zone in self.zones:
                for name in names:
                    getattr(self.cooling, name)[self.zones.index(zone)] = getattr(before.cooling, name)[there]

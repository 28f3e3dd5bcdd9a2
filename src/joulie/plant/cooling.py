"""Cooling that conserves energy, one element a cooling zone. Two balances hold in every step:

electricity = IT + fans + compressor;  stored heat = heat of IT + heat of fans − free cooling − mechanical cooling.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joulie.plant.chiller import capacity_factor, compressor_w
from joulie.plant.curves import Numbers
from joulie.plant.settling import share_gone

AIR_J_PER_KG_C = 1006.0


class CoolingSettings(NamedTuple):
    """How a zone is built, for each watt of heat that it is built for."""

    setpoint_c: float = 24.0  # of the air at the servers' inlet
    rise_c: float = 12.0  # of the air through the servers at nominal flow
    fan_share: float = 0.03  # fan power at nominal flow
    least_flow_share: float = 0.3
    exchanger: float = 0.7  # how far free cooling brings the return air towards the outside
    heat_capacity_s: float = 30.0  # joules stored for each degree: air, racks, water
    control_tau_s: float = 120.0


def zone_flows(
    inlet_c: Numbers,
    it_w: Numbers,
    outside_c: Numbers | float,
    dt_s: float,
    share_corrected: float,
    rated_w: Numbers,
    settings: CoolingSettings,
) -> tuple[Numbers, Numbers, Numbers, Numbers, Numbers]:
    """One step: the inlet after it, fans, heat taken by outside air, heat taken by the chiller, its compressor.

    The control wants to correct `share_corrected` of what the inlet is off its setpoint; free cooling goes first, the
    chiller takes the rest as far as it can, and what is left warms the zone. All flows are constant over the step, so
    both balances hold to the last digit at any step. Plain arithmetic: the lab compiles it for single zones.
    """
    nominal = rated_w / (AIR_J_PER_KG_C * settings.rise_c)  # kg of air a second
    flow = np.minimum(
        np.maximum(it_w / (AIR_J_PER_KG_C * settings.rise_c), settings.least_flow_share * nominal), nominal
    )
    part = flow / nominal
    fan_w = settings.fan_share * rated_w * (part * part * part)
    heat_w = it_w + fan_w
    capacity_j_per_c = rated_w * settings.heat_capacity_s
    wanted_c = (settings.setpoint_c - inlet_c) * share_corrected
    wanted_w = np.maximum(heat_w - capacity_j_per_c * wanted_c / dt_s, 0.0)
    return_c = inlet_c + heat_w / (AIR_J_PER_KG_C * flow)
    possible_w = settings.exchanger * AIR_J_PER_KG_C * flow * np.maximum(return_c - outside_c, 0.0)
    free_w = np.minimum(wanted_w, possible_w)
    mechanical_w = np.minimum(wanted_w - free_w, capacity_factor(outside_c) * rated_w)
    inlet_after_c = inlet_c + (heat_w - (free_w + mechanical_w)) * dt_s / capacity_j_per_c
    return inlet_after_c, fan_w, free_w, mechanical_w, compressor_w(mechanical_w, rated_w, outside_c)


class Cooling:
    """Zones with a fan wall, an economiser and a chiller each."""

    def __init__(self, rated_w: Numbers, settings: CoolingSettings | None = None) -> None:
        self.settings = settings or CoolingSettings()
        self.rated_w = np.maximum(np.asarray(rated_w, dtype=np.float64), 1.0)
        count = len(self.rated_w)
        self.capacity_j_per_c = self.rated_w * self.settings.heat_capacity_s
        self.inlet_c = np.full(count, self.settings.setpoint_c)
        self.fan_w, self.compressor_w = np.zeros(count), np.zeros(count)
        self.free_w, self.mechanical_w = np.zeros(count), np.zeros(count)  # heat, not electricity
        self.it_energy_j, self.fan_energy_j, self.compressor_energy_j = (
            np.zeros(count),
            np.zeros(count),
            np.zeros(count),
        )
        self.removed_j = np.zeros(count)

    @property
    def electricity_w(self) -> Numbers:
        """What cooling costs now."""
        total: Numbers = self.fan_w + self.compressor_w
        return total

    def step(self, dt_s: float, it_w: Numbers, outside_c: Numbers | float) -> None:
        """Let `dt_s` pass with this heat from the servers and this air outside."""
        if dt_s <= 0:
            return
        share = share_gone(dt_s, self.settings.control_tau_s)
        self.inlet_c, self.fan_w, self.free_w, self.mechanical_w, self.compressor_w = zone_flows(
            self.inlet_c, it_w, outside_c, dt_s, share, self.rated_w, self.settings
        )
        self.it_energy_j += it_w * dt_s
        self.fan_energy_j += self.fan_w * dt_s
        self.compressor_energy_j += self.compressor_w * dt_s
        self.removed_j += (self.free_w + self.mechanical_w) * dt_s

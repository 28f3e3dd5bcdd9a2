"""What a machine's caps can be, what they count against a limit, and how a node's watts become caps of its devices.

Arrays have one row a node and two columns, CPU packages and GPU boards. Caps are whole watts of each device: every
backend takes those as they are, so that what is read back is what was ordered.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from joulie.control.budget.counting import Pair
from joulie.control.budget.filling import Numbers
from joulie.control.caps import Caps
from joulie.model.names import MAX_WATTS_LABEL
from joulie.model.snapshot import Node
from joulie.physics.hardware import IDLE_SHARE, Machine

__all__ = ["DEMAND_MARGIN", "Envelope", "Pair", "ceiling_of", "envelope_of", "split"]

GPU_OVERSHOOT = 1.05  # boards exceed their limit so far for moments
GPU_REST_PER_W = 0.23  # fans and supplies follow what boards draw
GPU_REST_SHARE = 0.196  # of the boards' limits, whatever they draw
OTHER_REST_SHARE = 0.15  # of the maximum, for nodes without GPUs

DEMAND_MARGIN = 1.15  # what a node may want to draw next, over what it draws now

_ROUNDING_W = 1e-6


class Envelope(Struct, frozen=True):
    """The range of a machine's caps, and what one watt of them counts."""

    floor: Pair
    top: Pair  # without a cap
    devices: Pair  # how many there are
    rest_w: float  # what no cap limits, where the budget does not state it
    is_known: bool = True  # False: the maximum is an estimate

    def per_watt(self, *, rest_follows: bool) -> Pair:
        """What a cap of one watt on each device counts, with what follows it."""
        gpu = GPU_OVERSHOOT + (GPU_REST_PER_W if rest_follows else 0.0)
        return Pair(self.devices[0], self.devices[1] * gpu)

    def within(self, caps: Pair) -> Pair:
        """Whole watts within the range."""
        cpu, gpu = (
            min(max(math.floor(cap + _ROUNDING_W), low), high)
            for cap, low, high in zip(caps, self.floor, self.top, strict=True)
        )
        return Pair(cpu, gpu)


def envelope_of(node: Node, machine: Machine) -> Envelope:
    """A floor is the lowest cap, or what the devices draw idle; a maximum that is not known may stand in a label."""
    gpu_max_w = machine.gpu_max_w_each if machine.gpu_count else 0.0
    cpu_max_w, known = machine.cpu_max_w, machine.cpu_max_known and (machine.gpu_max_known or not machine.gpu_count)
    if not known and (stated_w := _stated_max_w(node)) is not None:
        scale = stated_w / machine.max_w
        cpu_max_w, gpu_max_w, known = cpu_max_w * scale, gpu_max_w * scale, True
    cpu_idle_w = machine.idle_w - IDLE_SHARE * machine.gpu_count * machine.gpu_max_w_each
    cpu_floor_w = max(machine.cpu_watts_floor_w, cpu_idle_w) / machine.sockets
    gpu_floor_w = max(machine.gpu_min_w_each, IDLE_SHARE * gpu_max_w) if machine.gpu_count else 0.0
    top = Pair(_up(cpu_max_w / machine.sockets), _up(gpu_max_w))
    floor = Pair(_up(cpu_floor_w), _up(gpu_floor_w)).at_most(top)
    boards_w = machine.gpu_count * gpu_max_w
    rest_w = GPU_REST_SHARE * boards_w if boards_w else OTHER_REST_SHARE * cpu_max_w
    return Envelope(floor, top, Pair(machine.sockets, machine.gpu_count), rest_w, known)


def ceiling_of(machine: Machine, caps: Caps, envelope: Envelope) -> Pair:
    """What policy, pin or guard would give, in watts; never above the hardware, and not raised to the floor."""
    cpu_w = envelope.top.cpu_w_each * caps.effective_cpu_pct(machine) / 100.0
    gpu_w = envelope.top.gpu_w_each * caps.effective_gpu_pct(machine) / 100.0
    whole = Pair(math.floor(cpu_w + _ROUNDING_W), math.floor(gpu_w + _ROUNDING_W))
    return whole.at_most(envelope.top)


def split(given_w: Numbers, floor: Numbers, demand: Numbers, ceiling: Numbers, per_watt: Numbers) -> Numbers:
    """Caps of a node's devices that together count at most what it was given: floors, then demand, then ceilings."""
    least, wanted, most = ((each * per_watt).sum(axis=1) for each in (floor, demand, ceiling))
    to_demand = _share(given_w - least, wanted - least)[:, None]
    to_ceiling = _share(given_w - wanted, most - wanted)[:, None]
    caps = floor + to_demand * (demand - floor) + to_ceiling * (ceiling - demand)
    whole = np.where(to_ceiling >= 1.0, ceiling, np.floor(caps - _ROUNDING_W))
    return np.maximum(whole, floor)


def _up(watts: float) -> float:
    return math.ceil(watts - _ROUNDING_W)


def _share(amount: Numbers, of: Numbers) -> Numbers:
    share = np.divide(amount, of, out=np.where(amount >= 0.0, 1.0, 0.0), where=of > 0.0)
    return np.clip(share, 0.0, 1.0)


def _stated_max_w(node: Node) -> float | None:
    """The label `joulie.io/max-watts`, for hardware that states no maximum."""
    try:
        stated_w = float(node.labels.get(MAX_WATTS_LABEL, ""))
    except ValueError:
        return None
    return stated_w if math.isfinite(stated_w) and stated_w > 0 else None

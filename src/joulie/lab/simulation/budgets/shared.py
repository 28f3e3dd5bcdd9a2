"""`shared`: what the operator does. Watts go where they are asked for, and never add up to more than a limit."""

from __future__ import annotations

import numpy as np

from joulie.control.budget.allocation import Loads, allocate
from joulie.control.budget.envelopes import split
from joulie.control.budget.filling import MILLI, Numbers
from joulie.control.budget.orders import orders, settled
from joulie.lab.simulation.budgets.view import View


class Shared:
    interval_s = None

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def caps(self, view: View) -> Numbers:
        """Cuts at once, raises as far as room is free that was not held a turn ago."""
        ceiling = view.ceiling
        floor = np.minimum(view.ranges.floor, ceiling)
        demand = np.clip(view.demand, floor, ceiling)
        least_w, wanted_w, most_w, top_w = (view.charge_w(each) for each in (floor, demand, ceiling, view.ranges.top))
        allocation = allocate(Loads(self._names, least_w, wanted_w, most_w, top_w, view.weight), view.groups)
        membership, per_watt = view.groups.membership, np.rint(view.ranges.per_watt * MILLI) / MILLI
        target = split(allocation.given_w, floor, demand, ceiling, per_watt)
        given_w = membership.sums(np.rint(allocation.given_w * MILLI)) / MILLI
        free_w = np.maximum(view.groups.room_w - allocation.reserve_w, given_w)
        target = settled(target, view.caps, free_w, membership)
        unknown = np.zeros(len(target), dtype=np.bool_)
        return orders(target, floor, view.caps, view.groups, unknown, may_raise=True)

"""`static`: every node of a group has the same part of its limit, whatever it does with it."""

from __future__ import annotations

import numpy as np

from joulie.control.budget.envelopes import split
from joulie.control.budget.filling import Numbers
from joulie.lab.simulation.budgets.view import View


class Static:
    interval_s = None

    def caps(self, view: View) -> Numbers:
        """Nothing is kept for restarts: caps set once and for all survive them."""
        membership, ranges = view.groups.membership, view.ranges
        sizes = np.maximum(membership.sums(np.ones(membership.node_count)), 1.0)
        given_w = view.charge_w(ranges.top)
        np.minimum.at(given_w, membership.nodes, (view.groups.room_w / sizes)[membership.groups])
        return split(given_w, ranges.floor, ranges.floor, ranges.top, ranges.per_watt)

"""`reactive`: measures, and cuts when a group is nearly above its limit, with the thresholds of Dynamo (ISCA '16).

Every 3 s: above 99 % of the limit nodes are cut so that 95 % result, the least important first, among those the ones
that draw most, none below its floor; below 90 % all caps of the group are lifted.
"""

from __future__ import annotations

import numpy as np

from joulie.control.budget.allocation import WEIGHT_WORDS
from joulie.control.budget.envelopes import split
from joulie.control.budget.filling import Flags, Numbers, Rows
from joulie.lab.simulation.budgets.view import View

CUTS_AT, AIMS_AT, LIFTS_AT = 0.99, 0.95, 0.90
INTERVAL_S = 3.0
_HALVINGS = 50


class Reactive:
    interval_s = INTERVAL_S

    def __init__(self, groups: int) -> None:
        self._is_cut: Flags = np.zeros(groups, dtype=np.bool_)

    def caps(self, view: View) -> Numbers:
        """Without readings everything stays as it is."""
        if view.drawn is None or view.wall_w is None:
            return view.held
        membership, ranges = view.groups.membership, view.ranges
        power_w = view.reserve_w + view.share * membership.sums(view.wall_w)
        self._is_cut &= power_w >= LIFTS_AT * view.groups.limit_w
        caps = np.where(membership.any_of(self._is_cut)[:, None], view.held, ranges.top)
        drawn_w, floor_w = ((each * ranges.devices).sum(axis=1) for each in (view.drawn, ranges.floor))
        for group in np.flatnonzero(power_w > CUTS_AT * view.groups.limit_w).tolist():
            self._is_cut[group] = True
            needed_w = float(power_w[group] - AIMS_AT * view.groups.limit_w[group]) / float(view.share[group])
            left_w = _cut(drawn_w, floor_w, view.weight, membership.rows(group), needed_w)
            cut = left_w < drawn_w
            target = split(
                left_w, ranges.floor, np.clip(view.drawn, ranges.floor, ranges.top), ranges.top, ranges.devices
            )
            caps = np.where(cut[:, None], np.minimum(caps, target), caps)
        return caps


def _cut(drawn_w: Numbers, floor_w: Numbers, weight: Rows, rows: Rows, needed_w: float) -> Numbers:
    """What each node may still draw."""
    left_w = drawn_w.copy()
    for importance in reversed(range(len(WEIGHT_WORDS))):
        if needed_w <= 0:
            break
        those = rows[weight[rows] == importance]
        lowered_w = _levelled(drawn_w[those], floor_w[those], needed_w)
        needed_w -= float((drawn_w[those] - lowered_w).sum())
        left_w[those] = lowered_w
    return left_w


def _levelled(drawn_w: Numbers, floor_w: Numbers, needed_w: float) -> Numbers:
    """The highest draws brought down to one level, at which they are so much less together; or all to their floors."""
    lowest_w = np.minimum(floor_w, drawn_w)
    low, high = 0.0, float(drawn_w.max(initial=0.0))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        cut_w = float((drawn_w - np.clip(drawn_w, lowest_w, np.maximum(lowest_w, middle))).sum())
        low, high = (middle, high) if cut_w >= needed_w else (low, middle)
    return np.minimum(drawn_w, np.maximum(lowest_w, low))

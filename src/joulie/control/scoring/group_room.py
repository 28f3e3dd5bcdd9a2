"""Pods go where the power budgets that hold a node still have room (docs/adr/0024-room-for-a-pod.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from joulie.control.scoring.columns import Numbers
from joulie.control.scoring.term import PodTerm

PENALTY = 30.0
_TINY_W = 1e-9  # something to divide by where a pod adds nothing


class GroupRooms(Struct, frozen=True):
    """What the enforced groups of all budgets have left for new pods, and which nodes are in them."""

    names: Sequence[str]  # `budget/value`
    group_w: Numbers  # one element a group: watts of nodes that may still be drawn; negative: too much is drawn
    rows: NDArray[np.intp]  # one element for each node in each group, sorted
    groups: NDArray[np.intp]  # likewise
    node_w: Numbers  # one element a node: what its narrowest group has left; infinite where nothing is known

    def narrowest(self, row: int) -> tuple[str, float] | None:
        """The group of this node that has the least room, and its watts; None where nothing is known."""
        inside = self.groups[np.searchsorted(self.rows, row) : np.searchsorted(self.rows, row, side="right")]
        if not len(inside):
            return None
        group = int(min(inside.tolist(), key=lambda each: (self.group_w[each], self.names[each])))
        return self.names[group], float(self.group_w[group])


def points(pod_w: Numbers, room_w: Numbers) -> Numbers:
    """None where the pod fits, all of the penalty where nothing of it does."""
    missing_w = np.minimum(np.maximum(pod_w - room_w, 0.0), pod_w)
    penalty: Numbers = 0.0 - missing_w / np.maximum(pod_w, _TINY_W) * PENALTY
    return penalty


TERM = PodTerm(
    name="group",
    key="groupPenalty",
    points=points,
    formula="−30 × the part of the pod's watts that the node's narrowest group lacks, −30 to 0",
    meaning="pods go where the node's power budgets have room; only with budgets that are enforced and measured",
    words="{group} has {room} left, and the pod adds {pod}",
)

"""What a rule decides on, and what it decides."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from msgspec import Struct

from joulie.control.budget.allocation import Groups
from joulie.control.budget.envelopes import Envelope
from joulie.control.budget.filling import MILLI, Numbers, Rows
from joulie.control.budget.orders import CapTable


class Ranges(Struct, frozen=True):
    """What the caps of the nodes can be. One row a node, columns for CPU packages and GPU boards, watts of each."""

    floor: Numbers
    top: Numbers
    devices: Numbers  # how many there are
    per_watt: Numbers  # what one watt of a cap counts against a limit
    rest_w: Numbers  # by node: what no cap limits, where a budget does not state it

    @classmethod
    def of(cls, envelopes: list[Envelope], rest_follows: list[bool]) -> Ranges:
        """`rest_follows`, by node: what no cap limits is not stated, and grows with its boards' caps."""
        return cls(
            np.array([each.floor for each in envelopes], dtype=np.float64),
            np.array([each.top for each in envelopes], dtype=np.float64),
            np.array([each.devices for each in envelopes], dtype=np.float64),
            np.array(
                [each.per_watt(rest_follows=follows) for each, follows in zip(envelopes, rest_follows, strict=True)],
                dtype=np.float64,
            ),
            np.array([each.rest_w for each in envelopes]),
        )


class View(Struct, frozen=True):
    """The nodes and the groups that are enforced, as far as the loop can know them."""

    groups: Groups
    share: Numbers  # by group: of its nodes' power that its feed carries
    reserve_w: Numbers
    ranges: Ranges
    demand: Numbers
    ceiling: Numbers  # what the policy gives
    weight: Rows
    held: Numbers  # caps in force
    drawn: Numbers | None  # watts of each device, as last measured; None: not known
    wall_w: Numbers | None  # by node

    @property
    def caps(self) -> CapTable:
        """Every order was followed and confirmed since the last turn."""
        return CapTable(self.held, self.held, self.ranges.top, self.ranges.per_watt)

    def charge_w(self, caps: Numbers) -> Numbers:
        return self.caps.charge(caps) / MILLI


class Rule(Protocol):
    """Turns a view into the caps to be set now."""

    @property
    def interval_s(self) -> float | None:
        """None: as often as the setup says."""

    def caps(self, view: View) -> Numbers: ...

"""What a meter takes off a group's limit: caps are cut where it shows too much, whatever was assumed of fans.

A meter that is lost, or that shows what cannot be, relaxes nothing: what it took stays taken until it is heard again or
goes from the spec.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from joulie.model.api import PowerBudget
from joulie.model.api.budget import MeterStatus

CUTS_AT, AIMS_AT, RELAXES_AT = 0.99, 0.95, 0.90
RELAXES_BY = 1.02
MIN_SHARE = 0.01
REPEATS_S = 60.0  # the same value is the same sample until then: sources are read more often than meters are
MAX_OVER_LIMIT, MIN_OF_FLOOR = 10.0, 0.01  # further off is a wrong unit or a broken meter


class Meter(Struct, frozen=True):
    """What is known of a group's meter."""

    share: float = 1.0  # of the limit: what caps may add up to
    shown_w: float | None = None  # None: it is lost, or was not asked yet
    lost: str = ""  # why it does not count
    acted_at_s: float = -np.inf  # when a sample last changed the share


class MeteredGroup(Struct, frozen=True):
    """What a reading is judged by."""

    limit_w: float  # in force, without what the meter takes
    spec_w: float  # of the group, by its spec
    floor_w: float  # what its nodes draw at their floors
    is_enforced: bool


def after_reading(before: Meter, shown_w: float | None, why_not: str, group: MeteredGroup, now_s: float) -> Meter:
    """The meter after it was asked; `why_not` says why it showed nothing."""
    if shown_w is None:
        return replace(before, shown_w=None, lost=why_not or "it shows nothing")
    if not _is_believable(shown_w, group):
        return replace(before, shown_w=None, lost=f"{shown_w:,.6g} W cannot be what this group draws")
    if not group.is_enforced:  # there is nothing to cut
        return Meter(shown_w=shown_w)
    if shown_w == before.shown_w and now_s - before.acted_at_s < REPEATS_S:
        return before
    share = next_share(before.share, group.limit_w, shown_w)
    # With everything at its floors a lower share cuts nothing, and would only take longer to come back from.
    return Meter(max(share, min(1.0, group.floor_w / group.limit_w), MIN_SHARE), shown_w, "", now_s)


def next_share(before: float, limit_w: float, shown_w: float) -> float:
    """Above 99 % of the limit everything is cut so that 95 % results; below 90 % it comes back step by step."""
    if shown_w > CUTS_AT * limit_w:
        return before * AIMS_AT * limit_w / shown_w
    if shown_w < RELAXES_AT * limit_w:
        return min(1.0, before * RELAXES_BY)
    return before


def meter_status(meter: Meter) -> MeterStatus:
    """As it stands in the group's status."""
    share = round(meter.share, 6)
    return MeterStatus(share if share < 1.0 else None, meter.shown_w, meter.lost or None)


def remembered(budget: PowerBudget) -> Iterable[tuple[str, Meter]]:
    """By the value of the group: what its meter had taken when the status was written, for a new leader."""
    if budget.spec.meter is None or budget.status is None:
        return
    for group in budget.status.groups or ():
        if group.meter is not None and group.meter.share is not None:
            yield group.value, Meter(group.meter.share)


def _is_believable(shown_w: float, group: MeteredGroup) -> bool:
    return bool(0.0 < shown_w <= MAX_OVER_LIMIT * max(group.spec_w, group.limit_w)) and (
        shown_w >= MIN_OF_FLOOR * group.floor_w
    )

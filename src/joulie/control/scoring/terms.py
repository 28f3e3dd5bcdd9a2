"""The table of all terms beside headroom. A new one is a file here and a line in the table; see CONTRIBUTING.md."""

from __future__ import annotations

from joulie.control.scoring import cooling, draining, group_room, profile, relief, trend
from joulie.control.scoring.term import PodTerm, Term

# In the order in which they are added up, shown and documented; those that every pod gets come first.
TERMS: tuple[Term, ...] = (
    cooling.TERM,
    trend.TERM,
    profile.TERM,
    draining.TERM,
    relief.TERM,
)
FOR_ALL = sum(not term.standard_only for term in TERMS)
# Added after these, for every pod, where the cluster has power budgets.
POD_TERMS: tuple[PodTerm, ...] = (group_room.TERM,)
ALL_TERMS: tuple[Term | PodTerm, ...] = TERMS + POD_TERMS  # for people and documents

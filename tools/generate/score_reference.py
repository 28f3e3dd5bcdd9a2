"""The reference page of the score, from the table of its terms."""

from __future__ import annotations

from joulie.control.scoring import ALL_TERMS, HEADROOM_WEIGHT, NEUTRAL_SCORE
from tools.generate.reference import NOTE, table

_INTRO = f"""\
What a node is worth to a pod: the sum of the terms below, clamped to 0 … 100. A node without a fresh twin scores
{NEUTRAL_SCORE:g}. `joulie score` and `/debug/scoring` show every term of every node, `joulie explain pod` says which of
them decides. The rules around it are under [behaviour](behaviour.md#score).
"""


def score_page() -> str:
    """Every term: how it is computed, why it is there, and what it is called."""
    headroom = f"{HEADROOM_WEIGHT:g} × percent of the power budget that is free with the pod"
    rows = [
        ["headroom", "`headroomScore` (before its weight)", "all", headroom, "pods go where power is left"],
        *(
            [term.name, f"`{term.key}`", "standard" if term.standard_only else "all", term.formula, term.meaning]
            for term in ALL_TERMS
        ),
    ]
    return "\n".join([
        "# Score",
        NOTE.format(source="src/joulie/control/scoring/terms.py"),
        _INTRO,
        table(["term", "in JSON", "pods", "points", "why"], rows),
    ])  # fmt: skip

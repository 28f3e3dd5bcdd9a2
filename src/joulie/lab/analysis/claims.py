"""What an experiment claims, in a form that can be checked against its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from joulie.lab.analysis.compare import Comparison, Difference
from joulie.lab.analysis.verdicts import MARGIN_PCT, not_inferior, worst_end_pct

Side = Literal["lower", "higher", "no significant difference", "not inferior"]


class Claim(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"side": "is"}):
    """`{variant = "capped", measure = "facility_kwh", is = "lower", between_pct = [-12, -8]}`."""

    variant: str
    side: Side
    measure: str = "facility_kwh"
    facet: str | None = None  # None: under every facet
    between_pct: tuple[float, float] | None = None  # where the relative difference lies, its sign included
    margin_pct: float = MARGIN_PCT  # of `not inferior`: no end of the 95 % interval is worse by more than this


def broken_claims(claims: Sequence[Claim], comparisons: Sequence[Comparison]) -> list[str]:
    """Why claims do not follow from the numbers, a line each; empty: they all do."""
    broken = []
    for claim in claims:
        about = [made for made in comparisons if claim.facet in (None, made.facet)]
        found = [
            (made.facet, variant.differences[claim.measure])
            for made in about
            for variant in made.variants
            if variant.name == claim.variant and claim.measure in variant.differences
        ]
        if not about or len(found) < len(about):
            broken.append(f"{claim.variant}: there is no difference in {claim.measure} to claim anything about")
        for facet, difference in found:
            if wrong := _wrong(claim, difference):
                broken.append(f"{f'{facet}: ' if facet else ''}{claim.variant}: {claim.measure} {wrong}")
    return broken


def _wrong(claim: Claim, found: Difference) -> str:
    if claim.side == "not inferior":
        if not not_inferior(found, claim.margin_pct):
            worst = worst_end_pct(found)
            shown = "nothing" if worst is None else f"up to {worst:.1f} % worse"
            return f"is claimed to be no more than {claim.margin_pct:g} % worse; the runs say: {shown}"
        return ""
    side: Side = "no significant difference"
    if found.significant:
        side = "lower" if found.mean < 0 else "higher"
    shown = "" if found.relative_pct is None else f" ({found.relative_pct:+.1f} %)"
    if side != claim.side:
        return f"is claimed to be: {claim.side}; the runs say: {side}{shown}"
    if claim.between_pct is not None:
        low, high = claim.between_pct
        if found.relative_pct is None or not low <= found.relative_pct <= high:
            return f"is claimed to change by {low:+g} to {high:+g} %; the runs say: {found.mean:+.3g}{shown}"
    return ""

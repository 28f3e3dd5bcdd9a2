"""Keep so many nodes at full power: one of each hardware family first, then by density."""

from __future__ import annotations

import math

from joulie.control.policies.interface import Choice, PolicyView
from joulie.model.names import ECO, PERFORMANCE


def round_half_up(value: float) -> int:
    """2.5 → 3; counts are never negative, so this is half away from zero."""
    return math.floor(value + 0.5)


def keep(view: PolicyView, wanted: int, because: str) -> dict[str, Choice]:
    """`wanted` nodes stay at performance; within them each family keeps its densest node while they last."""
    total = len(view.nodes)
    count = min(max(wanted, 0), total)
    densest_of_family: dict[str, str] = {}
    for node in view.nodes:
        densest_of_family.setdefault(node.family, node.name)
    reserved = set(list(densest_of_family.values())[:count])
    free = count - len(reserved)

    choices: dict[str, Choice] = {}
    kept, capped = f"; {count} kept at performance ({because})", f"; only {count} kept at performance ({because})"
    place = f"of {total} by density"
    for rank, node in enumerate(view.nodes, start=1):
        if node.name in reserved:
            reason = f"rank {rank} {place}, densest of family {node.family}{kept}"
            choices[node.name] = Choice(PERFORMANCE, reason)
        elif free > 0:
            free -= 1
            choices[node.name] = Choice(PERFORMANCE, f"rank {rank} {place}{kept}")
        else:
            choices[node.name] = Choice(ECO, f"rank {rank} {place}{capped}")
    return choices

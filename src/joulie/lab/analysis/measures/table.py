"""The table of all measures. A new one is a file in this folder and a line in the table; see CONTRIBUTING.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from joulie.lab.analysis.measures import budgets, control, delay, energy
from joulie.lab.analysis.measures.facts import Idle, Measure, RunFacts, Value
from joulie.lab.model.jobs import Numbers
from joulie.lab.model.outcome import Outcome

# In the order of tables, reports and documents.
MEASURES: tuple[Measure, ...] = (
    *energy.MEASURES,
    *delay.MEASURES,
    *budgets.MEASURES,
    *control.MEASURES,
)
KNOWN = {measure.key: measure for measure in MEASURES}
# What the computer decides, not the seed: left out where runs are compared bit by bit.
NOT_REPEATABLE = tuple(measure.key for measure in MEASURES if not measure.repeatable)

if TYPE_CHECKING:

    class Measures(Struct, frozen=True, kw_only=True):
        """One run: a field for each measure."""

        def __getattr__(self, key: str) -> Any: ...

else:
    Measures = msgspec.defstruct(
        "Measures", [(measure.key, Value) for measure in MEASURES], frozen=True, kw_only=True, module=__name__
    )


def measure(
    outcome: Outcome,
    *,
    fastest_s: Numbers,
    idle: Idle,
    bound_j: float | None = None,
    kinds_apart: bool = True,
    offered: Mapping[str, float] | None = None,
) -> Measures:
    """What the run comes to. `kinds_apart`: CPU work keeps off nodes with boards; `offered`: load by resource."""
    run = RunFacts(outcome, fastest_s, idle, bound_j, kinds_apart, offered or {})
    return Measures(**{each.key: each.of(run) for each in MEASURES})

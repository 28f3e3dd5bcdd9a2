"""What a run is judged by: energy, delay and what they cost, each with its unit and the side on which it is better.

`table.MEASURES` is the one table; runs, comparisons, reports, commands and the reference page take measures from it.
"""

from joulie.lab.analysis.measures.facts import (
    Idle,
    Measure,
    RunFacts,
    late,
    performance_jobs,
    slowdowns,
    waits_s,
)
from joulie.lab.analysis.measures.table import KNOWN, MEASURES, NOT_REPEATABLE, Measures, measure

__all__ = [
    "KNOWN",
    "MEASURES",
    "NOT_REPEATABLE",
    "Idle",
    "Measure",
    "Measures",
    "RunFacts",
    "late",
    "measure",
    "performance_jobs",
    "slowdowns",
    "waits_s",
]

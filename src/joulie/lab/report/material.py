"""What a report is made from, however it was stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from joulie.lab.compare import Comparison
from joulie.lab.report.distributions import Delays
from joulie.lab.report.over_time import Series


@dataclass(frozen=True, slots=True)
class Facet:
    """One comparison with what its plots show. Everything by variant, the baseline first."""

    comparison: Comparison
    seed: int  # the one whose course is drawn
    series: Mapping[str, Series]
    delays: Mapping[str, Delays]  # over all seeds


@dataclass(frozen=True, slots=True)
class Material:
    """One experiment."""

    name: str
    question: str
    claim: str  # in words
    checked: int  # claims in numbers
    broken: Sequence[str]  # why some of them do not follow
    facets: Sequence[Facet]
    file_name: str  # the experiment's file
    file_text: str
    facts: Sequence[tuple[str, str]]  # how it was run, in the order shown
    commands: Sequence[str]  # to run it again
    source: str  # of every plot: by which version, from which measurements

"""What a term of the score is: a formula, its names, and its reason in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from joulie.control.scoring.columns import ClusterFacts, ScoreColumns


class NodeFacts(NamedTuple):
    """What a term may look at: a column a fact, one number a fact where the lab compiles it, words in a sentence."""

    class_code: Any
    capped_w: Any
    measured_w: Any
    predicted_headroom: Any
    cooling_stress: Any
    trend_w_per_min: Any
    pue: Any


class Term(NamedTuple):
    """One addend of the score. `terms.TERMS` lists all; extender, commands, lab and documents take them from there."""

    name: str  # heads a column for people
    key: str  # in JSON
    points: Callable[[NodeFacts, ClusterFacts], Any]  # arithmetic, np.minimum, np.maximum: the lab compiles it
    formula: str  # for the documents
    meaning: str  # likewise
    words: str  # against a node that gets fewer points: `other` is that node, `best` the one with more, `cluster` all
    standard_only: bool = False  # pods of class performance do not get it
    optional: bool = True  # tables leave it out where it is 0 for all nodes, or where there is little room


class PodTerm(NamedTuple):
    """An addend that depends on the watts of the pod, and is there only where the cluster has what it is about.

    `terms.POD_TERMS` lists all. Breakdowns of clusters without it do not have its key.
    """

    name: str
    key: str
    points: Callable[[Any, Any], Any]  # of the pod's watts on the node, and the watts that there is room for
    formula: str
    meaning: str
    words: str  # of a node that loses points: `group`, and `room` and `pod` in watts
    standard_only: bool = False
    optional: bool = True


def facts_of(columns: ScoreColumns) -> NodeFacts:
    return NodeFacts(
        columns.class_code,
        columns.capped_w,
        columns.measured_w,
        columns.predicted_headroom,
        columns.cooling_stress,
        columns.trend_w_per_min,
        columns.pue,
    )


def facts_at(facts: NodeFacts, row: int) -> NodeFacts:
    """Of one node. The lab compiles it, so it names each column."""
    return NodeFacts(
        facts.class_code[row],
        facts.capped_w[row],
        facts.measured_w[row],
        facts.predicted_headroom[row],
        facts.cooling_stress[row],
        facts.trend_w_per_min[row],
        facts.pue[row],
    )

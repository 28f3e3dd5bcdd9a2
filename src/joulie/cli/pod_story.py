"""Where a pod would go, and which term of the score keeps it from another node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from rich.console import Console
from rich.text import Text

from joulie.cli.candidates import Candidate, Candidates
from joulie.cli.context import close_to, near_misses
from joulie.cli.score_table import asks, score_lines
from joulie.cli.style import STRONG, fixed, percent, plain
from joulie.control.scoring import HEADROOM_WEIGHT
from joulie.errors import InputError

SHOWN_OPEN, SHOWN_OTHERS = 10, 8


class Difference(NamedTuple):
    """One term of the score: how many points more the better node gets, and the words for it."""

    term: str
    points: float
    words: str


def print_story(console: Console, found: Candidates, why_not: str | None) -> None:
    """Headline, table, comparison; nodes that a person would not read to the end are counted."""
    ranked = found.best_first()
    place = _is_on(found, ranked) if found.pod.node else _goes_to(ranked)
    console.print(Text.assemble((found.pod_name, STRONG), f" · {asks(found)} · {place}"), soft_wrap=True)
    takers = [candidate for candidate in ranked if candidate.open]
    others = [candidate for candidate in ranked if not candidate.open]
    if ranked:
        score_lines([*takers[:SHOWN_OPEN], *others[:SHOWN_OTHERS]]).print(console)
    left_out = len(takers[SHOWN_OPEN:]) + len(others[SHOWN_OTHERS:])
    if left_out:
        console.print(f"… and {left_out:,} more: joulie score shows all")
    sentence = _why_not(found, ranked, why_not)
    if sentence:
        console.print(sentence, soft_wrap=True)
    if found.hint():
        console.print(found.hint(), soft_wrap=True)


def story_document(found: Candidates, why_not: str | None) -> dict[str, Any]:
    """The same for programs: the document of `score`, best first, with what stands in the table besides."""
    ranked = found.best_first()
    best = ranked[0].node if ranked and ranked[0].open else None
    return {
        "pod": found.pod_name,
        "workloadClass": found.pod.workload_class,
        "cpuCores": found.pod.cpu_cores,
        "gpus": found.pod.gpus,
        "node": found.pod.node or None,
        "best": best,
        "whyNot": _why_not(found, ranked, why_not) or None,
        "nodes": [
            {
                **msgspec.to_builtins(candidate.score),
                "state": candidate.state,
                "headroomBefore": None if candidate.score.breakdown is None else candidate.headroom_before,
                "misfit": candidate.misfit or None,
            }
            for candidate in ranked
        ],
    }


def _is_on(found: Candidates, ranked: Sequence[Candidate]) -> str:
    """Where a pod is that has been placed, what that node is worth now, and whether another would be better."""
    here = next((candidate for candidate in ranked if candidate.node == found.pod.node), None)
    if here is None:
        return f"is on {found.pod.node}, which is no node {found.cluster.place}"
    worth = f"is on {here.node} (score {fixed(here.score.score)} now)"
    if not here.score.feasible:
        worth = f"is on {here.node}, which would reject it now: {here.score.reason}"
    best = ranked[0]
    if not best.open or best.node == here.node or (here.score.feasible and best.score.score <= here.score.score):
        return f"{worth}; nowhere would be better"
    return f"{worth}; a new one like it would go to {best.node} (score {fixed(best.score.score)})"


def _goes_to(ranked: Sequence[Candidate]) -> str:
    if not ranked:
        return "there is no node"
    best = ranked[0]
    if best.open:
        return f"would go to {best.node} (score {fixed(best.score.score)})"
    return "no node would take it"


def _why_not(found: Candidates, ranked: Sequence[Candidate], wanted: str | None) -> str:
    """The best node against the wanted one, or against the next that would take the pod too."""
    if wanted is None:
        if len(ranked) < 2 or not ranked[1].open:
            return ""
        return compare(found, ranked[0], ranked[1])
    other = next((candidate for candidate in ranked if candidate.node == wanted), None)
    if other is None:
        close = close_to(near_misses(wanted, [candidate.node for candidate in ranked]))
        raise InputError(f"--why-not {wanted!r} is no node {found.cluster.place}{close}")
    if not other.score.feasible:
        return f"why not {other.node}? rejected: {other.score.reason}"
    if other.misfit:
        return f"why not {other.node}? kube-scheduler: {other.misfit}"
    if other is ranked[0]:
        return f"why not {other.node}? it is the best"
    return compare(found, ranked[0], other)


def compare(found: Candidates, best: Candidate, other: Candidate) -> str:
    """`why not node-03? 12.1 points less: 43.3 % of its power budget left with the pod, against 61.9 %`."""
    question = f"why not {other.node}? "
    less = best.score.score - other.score.score
    if best.score.breakdown is None or other.score.breakdown is None:
        if less == 0:
            return f"{question}the same score"
        neutral = best.node if best.score.breakdown is None else other.node
        return f"{question}{fixed(less)} points less; {neutral} has no fresh twin, so its score is neutral"
    largest = max(differences(found, best, other), key=lambda difference: difference.points)
    if less == 0 or largest.points <= 0:
        return f"{question}the same score; kube-scheduler's other rules decide"
    return f"{question}{fixed(less)} points less: {largest.words}"


def differences(found: Candidates, best: Candidate, other: Candidate) -> list[Difference]:
    """What each term gives the better node more than the other, with words about the other."""
    mine, theirs = best.score.breakdown, other.score.breakdown
    if mine is None or theirs is None:
        return []
    row = found.table.rows.index(other.node)
    columns, prepared = found.table.columns, found.table.prepared
    trend = float(columns.trend_w_per_min[row])
    left = f"{percent(theirs.headroom_score)} of its power budget left with the pod, against {_left(best)}"
    cooling = f"{percent(float(columns.cooling_stress[row]))} of its cooling in use, against {_cooling(found, best)}"
    return [
        Difference("headroom", HEADROOM_WEIGHT * (mine.headroom_score - theirs.headroom_score), left),
        Difference("cooling", mine.cooling_term - theirs.cooling_term, cooling),
        Difference("trend", mine.trend_bonus - theirs.trend_bonus, f"its power changes by {plain(trend)} W a minute"),
        Difference("profile", mine.profile_bonus - theirs.profile_bonus, "it is not eco, where standard pods belong"),
        Difference(
            "relief",
            mine.pressure_relief - theirs.pressure_relief,
            f"performance nodes are {percent(prepared.performance_pressure)} busy and kept for performance pods",
        ),
    ]


def _left(candidate: Candidate) -> str:
    terms = candidate.score.breakdown
    return "–" if terms is None else percent(terms.headroom_score)


def _cooling(found: Candidates, candidate: Candidate) -> str:
    row = found.table.rows.index(candidate.node)
    return percent(float(found.table.columns.cooling_stress[row]))

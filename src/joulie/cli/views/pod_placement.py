"""Where a pod would go, and which term of the score counts against another node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from rich.console import Console
from rich.text import Text

from joulie.cli.context import close_to, near_misses
from joulie.cli.style import STRONG, fixed, percent, plain
from joulie.cli.views.candidates import NodeCandidate, PodCandidates
from joulie.cli.views.score_table import requests, score_lines
from joulie.control.placement.score_table import HEADROOM
from joulie.control.scoring import HEADROOM_WEIGHT, POD_TERMS, TERMS, ClusterFacts, NodeFacts, facts_at, facts_of
from joulie.errors import InputError

SHOWN_OPEN, SHOWN_OTHERS = 10, 8


class TermDifference(NamedTuple):
    """One term of the score: by how many points the better node wins, and why in words."""

    term: str
    points: float
    reason: str


def print_story(console: Console, found: PodCandidates, why_not: str | None) -> None:
    """Headline, table and comparison; beyond a readable number, nodes are only counted."""
    ranked = found.best_first()
    place = _is_on(found, ranked) if found.pod.node else _goes_to(ranked)
    console.print(Text.assemble((found.pod_name, STRONG), f" · {requests(found)} · {place}"), soft_wrap=True)
    takers = [candidate for candidate in ranked if candidate.open]
    others = [candidate for candidate in ranked if not candidate.open]
    if ranked:
        score_lines([*takers[:SHOWN_OPEN], *others[:SHOWN_OTHERS]]).print(console)
    left_out = len(takers[SHOWN_OPEN:]) + len(others[SHOWN_OTHERS:])
    if left_out:
        console.print(f"… and {left_out:,} more; joulie score shows them all")
    sentence = _why_not(found, ranked, why_not)
    if sentence:
        console.print(sentence, soft_wrap=True)
    if found.hint():
        console.print(found.hint(), soft_wrap=True)


def story_document(found: PodCandidates, why_not: str | None) -> dict[str, Any]:
    """The same for programs: the document of `score`, best node first, with the other columns of the table."""
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
                **({"shortage": candidate.shortage} if candidate.shortage else {}),
            }
            for candidate in ranked
        ],
    }


def _is_on(found: PodCandidates, ranked: Sequence[NodeCandidate]) -> str:
    """The node a bound pod is on, its score now, and whether another node would be better."""
    here = next((candidate for candidate in ranked if candidate.node == found.pod.node), None)
    if here is None:
        return f"is on {found.pod.node}, which is not a node {found.cluster.place}"
    current = f"is on {here.node} (score {fixed(here.score.score)} now)"
    if not here.score.feasible:
        current = f"is on {here.node}, which would reject it now: {here.score.reason}"
    best = ranked[0]
    if not best.open or best.node == here.node or (here.score.feasible and best.score.score <= here.score.score):
        return f"{current}; no other node would be better"
    return f"{current}; a new pod like it would go to {best.node} (score {fixed(best.score.score)})"


def _goes_to(ranked: Sequence[NodeCandidate]) -> str:
    if not ranked:
        return "there are no nodes"
    best = ranked[0]
    if best.open:
        return f"would go to {best.node} (score {fixed(best.score.score)})"
    return "no node would take it"


def _why_not(found: PodCandidates, ranked: Sequence[NodeCandidate], wanted: str | None) -> str:
    """Compares the best node with the requested one, or with the second-best that would take the pod."""
    if wanted is None:
        if len(ranked) < 2 or not ranked[1].open:
            return ""
        return compare(found, ranked[0], ranked[1])
    other = next((candidate for candidate in ranked if candidate.node == wanted), None)
    if other is None:
        close = close_to(near_misses(wanted, [candidate.node for candidate in ranked]))
        raise InputError(f"--why-not {wanted!r} is not a node {found.cluster.place}{close}")
    if not other.score.feasible:
        return f"why not {other.node}? rejected: {other.score.reason}"
    if other.misfit:
        return f"why not {other.node}? kube-scheduler: {other.misfit}"
    if other is ranked[0]:
        return f"why not {other.node}? it is the best"
    return compare(found, ranked[0], other)


def compare(found: PodCandidates, best: NodeCandidate, other: NodeCandidate) -> str:
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
        return f"{question}the same score; kube-scheduler's other plug-ins decide"
    return f"{question}{fixed(less)} points less: {largest.reason}"


def differences(found: PodCandidates, best: NodeCandidate, other: NodeCandidate) -> list[TermDifference]:
    """How much more the better node gets from each term, with a reason that describes the other node."""
    mine, theirs = best.score.breakdown, other.score.breakdown
    if mine is None or theirs is None:
        return []
    left = f"{percent(theirs[HEADROOM])} of its power budget left with the pod, against {percent(mine[HEADROOM])}"
    facts = {"best": _facts(found, best), "other": _facts(found, other)}
    cluster = ClusterFacts(*map(plain, found.table.prepared.cluster))  # type: ignore[arg-type]
    return [
        TermDifference("headroom", HEADROOM_WEIGHT * (mine[HEADROOM] - theirs[HEADROOM]), left),
        *(
            TermDifference(term.name, mine[term.key] - theirs[term.key], term.words.format(**facts, cluster=cluster))
            for term in TERMS
        ),
        *(
            TermDifference(term.name, mine[term.key] - theirs[term.key], other.shortage)
            for term in POD_TERMS
            if term.key in mine
        ),
    ]


def _facts(found: PodCandidates, candidate: NodeCandidate) -> NodeFacts:
    """What the terms know of a node, as people read it."""
    row = found.table.rows.index(candidate.node)
    return NodeFacts(*(plain(float(fact)) for fact in facts_at(facts_of(found.table.columns), row)))

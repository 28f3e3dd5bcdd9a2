"""Scores for people: one line a node, best place first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from joulie.cli.candidates import Candidate, Candidates
from joulie.cli.style import QUIET, fixed, plain, signed, state_cell, watts
from joulie.cli.tables import Cell, Column, Table
from joulie.control.placement import Breakdown

_TERMS: dict[str, Callable[[Breakdown], float]] = {
    "cooling": lambda terms: terms.cooling_term,
    "trend": lambda terms: terms.trend_bonus,
    "profile": lambda terms: terms.profile_bonus,
    "relief": lambda terms: terms.pressure_relief,
}
_MAY_BE_LEFT_OUT = ("trend", "profile", "relief")


def print_scores(console: Console, found: Candidates) -> None:
    """Every node of the cluster."""
    console.print(Text(f"{found.pod_name}: {asks(found)}"), soft_wrap=True)
    score_lines(found.best_first()).print(console)
    if found.hint():
        console.print(found.hint(), soft_wrap=True)


def asks(found: Candidates) -> str:
    """What the pod asks for: `performance, 8 cores, 4 GPUs`."""
    pod = found.pod
    gpus = f", {plain(pod.gpus)} GPU{'s' * (pod.gpus != 1)}" if pod.gpus else ""
    return f"{pod.workload_class}, {plain(pod.cpu_cores, 3)} core{'s' * (pod.cpu_cores != 1)}{gpus}"


def score_lines(candidates: Sequence[Candidate]) -> Table:
    """In the given order, without terms that are nothing everywhere; a note says why a pod would not go there."""
    known = [candidate.score.breakdown for candidate in candidates if candidate.score.breakdown is not None]
    terms = [name for name, term in _TERMS.items() if name not in _MAY_BE_LEFT_OUT or any(term(b) for b in known)]
    columns = [Column(name, right=True, optional=name in _MAY_BE_LEFT_OUT) for name in terms]
    table = Table(
        [
            Column("node"),
            Column("state"),
            Column("score", right=True),
            Column("headroom", right=True),
            *columns,
            Column("pod adds", right=True),
        ],
        note="note",
    )
    for candidate in candidates:
        cells: list[Cell] = [candidate.node, state_cell(candidate.state), fixed(candidate.score.score)]
        table.add([*cells, *_breakdown(candidate, terms)], _note(candidate))
    return table


def _breakdown(candidate: Candidate, terms: Sequence[str]) -> list[Cell]:
    found = candidate.score.breakdown
    if found is None:
        return [("–", QUIET)] * (len(terms) + 2)
    return [
        f"{candidate.headroom_before:.1f} → {found.headroom_score:.1f}",
        *(signed(_TERMS[name](found)) for name in terms),
        watts(found.pod_marginal_w),
    ]


def _note(candidate: Candidate) -> str:
    if not candidate.score.feasible:
        return f"rejected: {candidate.state} node"
    if candidate.misfit:
        return candidate.misfit
    return candidate.score.reason if candidate.score.breakdown is None else ""

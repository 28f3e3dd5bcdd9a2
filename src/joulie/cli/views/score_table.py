"""Scores for people: one line per node, best node first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from joulie.cli.style import QUIET, fixed, plain, signed, state_cell, watts
from joulie.cli.tables import Cell, TableColumn, TextTable
from joulie.cli.views.candidates import NodeCandidate, PodCandidates
from joulie.control.placement.score_table import HEADROOM, POD_W
from joulie.control.scoring import ALL_TERMS, PodTerm, Term


def print_scores(console: Console, found: PodCandidates) -> None:
    """Every node of the cluster."""
    console.print(Text(f"{found.pod_name}: {requests(found)}"), soft_wrap=True)
    score_lines(found.best_first()).print(console)
    if found.hint():
        console.print(found.hint(), soft_wrap=True)


def requests(found: PodCandidates) -> str:
    """What the pod requests: `performance, 8 cores, 4 GPUs`."""
    pod = found.pod
    gpus = f", {plain(pod.gpus)} GPU{'s' * (pod.gpus != 1)}" if pod.gpus else ""
    return f"{pod.workload_class}, {plain(pod.cpu_cores, 3)} core{'s' * (pod.cpu_cores != 1)}{gpus}"


def score_lines(candidates: Sequence[NodeCandidate]) -> TextTable:
    """In the given order, without terms that are zero everywhere; the note says why the pod would not go there."""
    known = [candidate.score.breakdown for candidate in candidates if candidate.score.breakdown is not None]
    terms = [term for term in ALL_TERMS if not term.optional or any(each.get(term.key) for each in known)]
    columns = [TableColumn(term.name, right=True, optional=term.optional) for term in terms]
    table = TextTable(
        [
            TableColumn("node"),
            TableColumn("state"),
            TableColumn("score", right=True),
            TableColumn("headroom", right=True),
            *columns,
            TableColumn("pod adds", right=True),
        ],
        note="note",
    )
    for candidate in candidates:
        cells: list[Cell] = [candidate.node, state_cell(candidate.state), fixed(candidate.score.score)]
        table.add([*cells, *_breakdown(candidate, terms)], _note(candidate))
    return table


def _breakdown(candidate: NodeCandidate, terms: Sequence[Term | PodTerm]) -> list[Cell]:
    found = candidate.score.breakdown
    if found is None:
        return [("–", QUIET)] * (len(terms) + 2)
    return [
        f"{candidate.headroom_before:.1f} → {found[HEADROOM]:.1f}",
        *(signed(found[term.key]) for term in terms),
        watts(found[POD_W]),
    ]


def _note(candidate: NodeCandidate) -> str:
    if not candidate.score.feasible:
        return f"rejected: {candidate.state} node"
    if candidate.misfit:
        return candidate.misfit
    return candidate.score.reason if candidate.score.breakdown is None else candidate.shortage

"""The page of the gallery: `README.md`, whose results are computed from the numbers that are kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from experiments.gallery.numbers import HERE, Kept, comparisons_of, files, kept_file, read_kept
from joulie.lab.analysis.claims import Claim, broken_claims
from joulie.lab.analysis.compare import Compared, Comparison, Difference
from joulie.lab.analysis.measures import KNOWN
from joulie.lab.experiment.definition import Experiment, read_experiment
from joulie.lab.experiment.seeds import shown_seeds

PAGE = HERE / "README.md"
BEGIN, END = "<!-- results: written by make experiments -->", "<!-- end of results -->"
ALWAYS = ("facility_kwh", "slowdown_mean", "slowdown_p99")
_RESULT = re.compile(r"\d[\d,]*\.\d+")  # by agreement, settings are whole numbers or stand in the file


def page_with_results() -> str:
    """The page as it should be: words by hand, results from numbers."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    sections = [_section(path, read_kept(path)) for path in files() if kept_file(path).is_file()]
    return f"{before}{BEGIN}\n\n" + "\n".join(sections) + f"\n{END}{after}"


def what_does_not_follow(path: Path) -> list[str]:
    """Claims of the experiment that its kept numbers do not bear out, a line each; empty: they all do."""
    experiment = read_experiment(path)
    made = comparisons_of(read_kept(path), experiment.baseline)
    there = _printed(made, experiment)
    wrong = [f"{path.name}: {broken}" for broken in broken_claims(experiment.claims, made)]
    if not experiment.claims or not experiment.claim:
        wrong.append(f"{path.name}: claims nothing, in words (claim) and in numbers (claims)")
    numbers = _RESULT.findall(experiment.claim)
    return wrong + [f"{path.name}: claim: {one} is not among the results" for one in numbers if one not in there]


def _section(path: Path, kept: Kept) -> str:
    experiment = read_experiment(path)
    made = comparisons_of(kept, experiment.baseline)
    count = sum(len(runs.seeds) for runs in kept.runs)
    took_s = sum(len(runs.seeds) * median(value or 0.0 for value in runs.measures["wall_s"]) for runs in kept.runs)
    asked = f"## {path.stem}\n\n**{experiment.question}**\n\n{experiment.claim}\n"
    run = (
        f"[`{path.name}`]({path.name}): {count} runs, seeds {shown_seeds(experiment.seeds)}, {_time(took_s)} of one "
        f"core; the numbers are in [`results/{path.stem}.json`](results/{path.stem}.json).\n"
    )
    return "\n".join([asked, run, *(_facet(one, experiment) for one in made)])


def _facet(made: Comparison, experiment: Experiment) -> str:
    measures = _shown(made, experiment)
    head = ["variant", *(_heading(name) for name in measures)]
    rows = [[one.name, *(_cell(one, name) for name in measures)] for one in made.variants]
    lines = [_row(head), _row(["---"] * len(head)), *(_row(row) for row in rows)]
    told = [f"- {one.verdict}" for one in made.variants[1:]]
    bounded = [
        f"- {_bounded(one, claim)}"
        for claim in experiment.claims
        for one in made.variants
        if claim.side == "not inferior" and claim.variant == one.name and claim.facet in (None, made.facet)
    ]
    title = [f"`{made.facet}`\n"] if made.facet else []
    return "\n".join([*title, *lines, "", *told, *bounded, ""])


def _bounded(one: Compared, claim: Claim) -> str:
    """`25 % more is not inferior at a margin of 2 %: run time over the shortest, mean +0.3 % [+0.1, +0.5].`"""
    found, label = one.differences[claim.measure], KNOWN[claim.measure].label
    interval = f"[{found.relative_low_pct:+.1f}, {found.relative_high_pct:+.1f}]"
    name = label[0].lower() + label[1:]
    change = f"{found.relative_pct:+.1f} % {interval}"
    return f"{one.name} is not inferior at a margin of {claim.margin_pct:g} %: {name} {change}."


def _shown(made: Comparison, experiment: Experiment) -> list[str]:
    """The measures of the table: what is always asked for, and what something is claimed about."""
    measures = dict.fromkeys([*ALWAYS, *(claim.measure for claim in experiment.claims)])
    return [name for name in measures if name in made.variants[0].estimates]


def _heading(name: str) -> str:
    known = KNOWN[name]
    return f"{known.label}, {known.unit}" if known.unit else known.label


def _cell(variant: Compared, measure: str) -> str:
    mean = f"{variant.estimates[measure].mean:,.{KNOWN[measure].digits}f}"
    found = variant.differences.get(measure)
    return f"{mean} ({_change(found)})" if found else mean


def _change(found: Difference) -> str:
    mark = " ●" if found.significant else ""
    return (f"{found.mean:+,.3g}" if found.relative_pct is None else f"{found.relative_pct:+.1f} %") + mark


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _printed(made: Sequence[Comparison], experiment: Experiment) -> set[str]:
    """Every number in the tables of the page, as it stands there; ends of intervals would bear out too much."""
    found: set[str] = set()
    for comparison in made:
        for variant in comparison.variants:
            for name in _shown(comparison, experiment):
                found.add(f"{variant.estimates[name].mean:,.{KNOWN[name].digits}f}")
                change = variant.differences[name].relative_pct if name in variant.differences else None
                found |= set() if change is None else {f"{abs(change):.1f}"}
    return found

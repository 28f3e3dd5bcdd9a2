"""`joulie lab compare`: differences between the variants of a swept experiment, with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from joulie.cli.lab.shared import need_extra, results_folder, results_option, short_option
from joulie.cli.options import prints_result

if TYPE_CHECKING:
    from joulie.cli.output import Output
    from joulie.cli.tables import TextTable
    from joulie.lab.analysis.compare import Compared, Comparison
    from joulie.lab.experiment.definition import Experiment

_EPILOG = """\b
Examples:
  joulie lab compare results/experiment
  joulie lab compare experiment.toml                    reads results/experiment
  joulie lab compare results/experiment --all           every measure
  joulie lab compare results/experiment -o json

\b
Variants are compared seed by seed. Energy is metered over the same time: the run that finishes first idles
until the other is done. [a, b] is the 95 % confidence interval of a mean (Student's t); ● marks a
difference whose p value, corrected for the number of variants (Holm), is below 5 %.
"""

COLUMNS = (
    *("facility_kwh", "arriving_kwh", "slowdown_p99", "bounded_slowdown_p99"),
    *("wait_mean_s", "late_jobs", "over_bound_pct"),
)


@click.command("compare", epilog=_EPILOG)
@click.argument("place", type=click.Path(path_type=Path, exists=True), metavar="FILE|FOLDER")
@results_option
@click.option("--all", "everything", is_flag=True, help="Show every measure, not only energy and delay.")
@short_option
@prints_result
def command(place: Path, results: Path | None, everything: bool, short: bool, out: Output) -> None:
    """Show what each variant saves and costs compared with the baseline, and whether that is more than chance.

    Runs are compared only for the same work: the same jobs, all completed, on the same seeds. Anything else is refused
    with the reason. If a claim of the experiment does not follow from the numbers, the exit code is 1.
    """
    need_extra()
    from joulie.lab.experiment.definition import parse_experiment, read_experiment
    from joulie.lab.runs.comparison import comparisons
    from joulie.lab.runs.store import read_index

    if place.is_dir():
        folder, index = place, read_index(place)
        experiment = parse_experiment(index.text, index.filename, place, was_run=True)
    else:
        experiment = read_experiment(place, short=short)
        folder = results_folder(experiment, results)
    made = comparisons(experiment, folder)
    if out.for_people:
        show(made, experiment, out, everything=everything)
    else:
        out.document(made)
    refuse_broken_claims(experiment, made)


def refuse_broken_claims(experiment: Experiment, made: Sequence[Comparison]) -> None:
    """Fails if a claim does not follow from the numbers."""
    from joulie.lab.analysis.claims import broken_claims
    from joulie.lab.model.refusals import LabError

    if broken := broken_claims(experiment.claims, made):
        more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
        raise LabError(f"a claim does not follow from the numbers: {broken[0]}{more}")


def show(comparisons: Sequence[Comparison], experiment: Experiment, out: Output, *, everything: bool = False) -> None:
    """Prints tables and conclusions for people."""
    from joulie.lab.analysis.measures import KNOWN
    from joulie.lab.experiment.seeds import shown_seeds

    if experiment.question:
        out.tell(experiment.question)
    console = out.console()
    for made in comparisons:
        out.tell("")
        of_facet = f"{made.facet}: " if made.facet else ""
        out.tell(f"{of_facet}{made.summary}")
        _table(made, list(KNOWN) if everything else COLUMNS).print(console)
        if len(made.variants) > 2:
            for variant in made.variants[1:]:
                out.tell(variant.verdict)
        for note in made.notes:
            out.tell(f"Note: {note}.")
        out.tell(f"Baseline: {made.baseline}. Seeds: {shown_seeds(made.seeds)}.")


def _table(made: Comparison, measures: Sequence[str]) -> TextTable:
    from joulie.cli.tables import TableColumn, TextTable
    from joulie.lab.analysis.measures import KNOWN

    table = TextTable(
        [
            TableColumn("measure"),
            TableColumn("variant"),
            TableColumn("mean", True),
            TableColumn("95 % interval"),
            TableColumn("difference"),
        ]
    )
    for measure in measures:
        having = [variant for variant in made.variants if measure in variant.estimates]
        for place, variant in enumerate(having):
            known = KNOWN[measure]
            label = f"{known.label}, {known.unit}" if known.unit else known.label
            estimate = variant.estimates[measure]
            mean = f"{estimate.mean:,.{known.digits}f}"
            interval = _interval(estimate.low, estimate.high, known.digits)
            difference = _difference(variant, measure, having[0].estimates[measure].mean)
            table.add([label if place == 0 else "", variant.name, mean, interval, difference])
    return table


def _difference(variant: Compared, measure: str, baseline: float) -> str:
    """`-6.3 % [-8.2, -4.4] ●`; for energy over the same time also the two values."""
    from joulie.lab.analysis.measures import KNOWN

    found = variant.differences.get(measure)
    if found is None:
        return ""
    mark = " ●" if found.significant else ""
    digits = KNOWN[measure].digits
    padded = abs(found.baseline - baseline) > 1e-9 * abs(baseline) or found.variant != variant.estimates[measure].mean
    of = f" ({found.variant:,.{digits}f} against {found.baseline:,.{digits}f} over the same time)" if padded else ""
    if found.relative_pct is None:
        return f"{found.mean:+,.3g} {_interval(found.low, found.high, 2)}{mark}{of}"
    return f"{found.relative_pct:+.1f} % {_interval(found.relative_low_pct, found.relative_high_pct, 1)}{mark}{of}"


def _interval(low: float | None, high: float | None, digits: int) -> str:
    return "" if low is None or high is None else f"[{low:,.{digits}f}, {high:,.{digits}f}]"

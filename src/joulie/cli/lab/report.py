"""`joulie lab report`: stored results as one HTML file for people."""

from __future__ import annotations

from pathlib import Path

import click

from joulie.cli.lab.shared import need_extra, results_folder, results_option, short_option

_EPILOG = """\b
Examples:
  joulie lab report results/policies                     writes results/policies/report.html
  joulie lab report policies.toml                        reads results/policies
  joulie lab report results/policies -o policies.html
  joulie lab report results/policies --seed 104          plots this seed over time
"""


@click.command("report", epilog=_EPILOG)
@click.argument("place", type=click.Path(path_type=Path, exists=True), metavar="FILE|FOLDER")
@results_option
@short_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write.  [default: FOLDER/report.html]",
)
@click.option("--seed", type=int, help="The seed to plot over time.  [default: the one with median energy]")
def command(place: Path, results: Path | None, short: bool, output: Path | None, seed: int | None) -> None:
    """Show an experiment's results in one HTML file that works offline.

    FOLDER is where joulie lab sweep stored them. The report starts with a one-sentence summary, followed by tables to
    paste into a paper, plots with confidence intervals and the lower bound, and how to reproduce everything. Results
    that cannot be compared fairly, or that no longer match FILE, are refused with the reason; claims that do not follow
    from the numbers are shown, and the exit code is 1.
    """
    need_extra()
    from joulie.lab.experiment.definition import read_experiment
    from joulie.lab.model.refusals import LabError
    from joulie.lab.report.page import write_report
    from joulie.lab.report.reading import material

    experiment = None if place.is_dir() else read_experiment(place, short=short)
    folder = results_folder(experiment, results) if experiment else place
    shown = material(folder, seed, experiment)
    target = output or folder / "report.html"
    write_report(shown, target)
    for facet in shown.facets:
        of_facet = f"{facet.comparison.facet}: " if facet.comparison.facet else ""
        click.echo(f"{of_facet}{facet.comparison.summary}")
    click.echo(f"report: {target}")
    if shown.broken:
        more = f" (and {len(shown.broken) - 1} more)" if len(shown.broken) > 1 else ""
        raise LabError(f"a claim does not follow from the numbers: {shown.broken[0]}{more}")

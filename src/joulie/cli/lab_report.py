"""`joulie lab report`: stored results as one HTML file for people."""

from __future__ import annotations

from pathlib import Path

import click

from joulie.cli.lab_extra import need_extra, results_folder, results_option, short_option

_EPILOG = """\b
Examples:
  joulie lab report results/policies                     writes results/policies/report.html
  joulie lab report policies.toml                        what lies in results/policies
  joulie lab report results/policies -o policies.html
  joulie lab report results/policies --seed 104          draws the course of this seed
"""


@click.command("report", epilog=_EPILOG)
@click.argument("place", type=click.Path(path_type=Path, exists=True), metavar="FILE|FOLDER")
@results_option
@short_option
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="The file.  [default: FOLDER/report.html]"
)
@click.option("--seed", type=int, help="Whose course is drawn over time.  [default: the one in the middle by energy]")
def command(place: Path, results: Path | None, short: bool, output: Path | None, seed: int | None) -> None:
    """Show an experiment's results in one HTML file that needs no network.

    FOLDER is where joulie lab sweep put them. On top stands the sentence that sums them up; below it tables to paste
    into a paper, plots with confidence intervals and the lower bound, and what it takes to run it all again. Results
    that cannot be compared fairly, or that FILE no longer asks for, are refused with the reason; claims of the
    experiment that do not follow from the numbers are shown, and end with exit code 1.
    """
    need_extra()
    from joulie.lab.experiment import read_experiment
    from joulie.lab.refusals import LabError
    from joulie.lab.report.reading import material
    from joulie.lab.report.writing import write_report

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

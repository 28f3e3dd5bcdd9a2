"""`joulie lab run`: run an experiment's variants once, on one seed, and show the results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from joulie.cli.lab.shared import ProgressBars, experiment_argument, facet_of, need_extra, short_option
from joulie.cli.options import prints_result
from joulie.errors import PluginError

if TYPE_CHECKING:
    from joulie.cli.output import Output
    from joulie.lab.experiment.definition import Case
    from joulie.lab.runs.perform import Finished

_EPILOG = """\b
Examples:
  joulie lab run experiment.toml                       every variant, on the first seed
  joulie lab run experiment.toml --variant capped --seed 7
  joulie lab run experiment.toml --keep one-run        keep jobs and series as Parquet
  joulie lab run experiment.toml -o json | jq '.[].measures.facility_kwh'

\b
A single seed shows what a run looks like but proves nothing. To compare: joulie lab sweep --help
"""


@click.command("run", epilog=_EPILOG)
@experiment_argument
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="Run only this variant; repeatable.")
@click.option("--facet", metavar="NAME", help="The facet of the experiment.  [default: the first]")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    help="Random seed of arrivals and noise.  [default: the first of seeds]",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Store measures, jobs and time series there as Parquet, for joulie lab report.",
)
@short_option
@prints_result
def command(
    file: Path,
    variants: tuple[str, ...],
    facet: str | None,
    seed: int | None,
    keep: Path | None,
    short: bool,
    out: Output,
) -> None:
    """Run the variants of an experiment once, and show energy and delay.

    FILE is the experiment in TOML or YAML; joulie lab --help shows one. Every job is run to completion. A load that
    exceeds the capacity of the nodes is refused before the run starts.
    """
    need_extra()
    from joulie.lab.experiment.definition import read_experiment

    experiment = read_experiment(file, short=short)
    facet = facet_of(experiment, file, facet)
    cases = [experiment.case(name, facet) for name in variants or experiment.variants]
    chosen = experiment.seeds[0] if seed is None else seed
    done = _perform(cases, chosen, file, out)
    for line in dict.fromkeys(line for run in done for line in run.provenance.remarks.splitlines()):
        click.echo(f"joulie: {line}", err=True)
    for run in done:
        for line in run.provenance.held.splitlines():
            click.echo(f"joulie: {run.provenance.variant}: {line}", err=True)
    if keep is not None:
        _keep(keep, done, experiment.filename, experiment.text)
    if out.for_people:
        _print(done, out)
    else:
        out.document(
            [
                {"facet": run.provenance.facet, "variant": run.provenance.variant, "seed": chosen}
                | {"digest": run.provenance.digest, "measures": run.measures}
                for run in done
            ]
        )


def _perform(cases: list[Case], seed: int, file: Path, out: Output) -> list[Finished]:
    from joulie.lab.experiment.digests import git_commit
    from joulie.lab.runs.perform import perform

    commit = git_commit(file.parent)
    done = []
    with ProgressBars(no_color=out.no_color) as bars:
        bars.begin(len(cases), 0)
        for case in cases:
            name = case.variant
            try:
                done.append(perform(case, seed, lambda share, name=name: bars.share(name, share), commit))  # type: ignore[misc]
            except PluginError as error:  # does not know the variant
                raise PluginError(f"{file}: {name}: {error}") from error
            bars.end(name, "")
    return done


def _keep(folder: Path, done: list[Finished], filename: str, text: str) -> None:
    from joulie.lab.runs.perform import files_of
    from joulie.lab.runs.store import Index, Planned, write_index, write_run

    planned = [
        Planned(run.provenance.facet, run.provenance.variant, run.provenance.seed, run.provenance.key) for run in done
    ]
    for run, plan in zip(done, planned, strict=True):
        write_run(folder, plan, files_of(run))
    write_index(folder, Index(filename, text, tuple(planned)))


def _print(done: list[Finished], out: Output) -> None:
    from joulie.cli.tables import TableColumn, TextTable
    from joulie.lab.analysis.measures import KNOWN

    table = TextTable(
        [
            TableColumn("measure"),
            *(TableColumn(run.provenance.variant, right=True) for run in done),
            TableColumn("unit"),
        ]
    )
    for name, known in KNOWN.items():
        values = [getattr(run.measures, name) for run in done]
        if any(value is not None for value in values):
            shown = ["–" if value is None else f"{value:,.{known.digits}f}" for value in values]
            table.add([known.label, *shown, known.unit])
    table.print(out.console())
    out.tell(f"seed {done[0].provenance.seed}; a single seed proves nothing: joulie lab sweep compares many")

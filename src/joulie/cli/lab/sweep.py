"""`joulie lab sweep`: every variant on every seed, on all cores or a Dask cluster, and the comparison."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from joulie.cli.lab.shared import (
    ProgressBars,
    experiment_argument,
    need_extra,
    results_folder,
    results_option,
    short_option,
)
from joulie.cli.options import prints_result

if TYPE_CHECKING:
    from joulie.cli.output import Output
    from joulie.lab.runs.store import Index
    from joulie.lab.runs.sweep import Workers

_EPILOG = """\b
Examples:
  joulie lab sweep experiment.toml                    stop it with Ctrl-C, resume with the same command
  joulie lab sweep experiment.toml --workers 4
  joulie lab sweep experiment.toml --dask tcp://10.0.0.5:8786
  joulie lab sweep experiment.toml -o json | jq -r '.comparisons[].summary'

\b
Then: joulie lab report results/NAME
"""


@click.command("sweep", epilog=_EPILOG)
@experiment_argument
@results_option
@click.option(
    "--workers", type=click.IntRange(1, 1024), metavar="N", help="Number of processes.  [default: one per core]"
)
@click.option("--dask", metavar="ADDRESS", help="Run on the Dask cluster with this scheduler instead of locally.")
@click.option("--fresh", is_flag=True, help="Run everything again, including finished runs.")
@short_option
@prints_result
def command(
    file: Path, results: Path | None, workers: int | None, dask: str | None, fresh: bool, short: bool, out: Output
) -> None:
    """Run all variants of an experiment on all its seeds, and compare them.

    FILE is the experiment in TOML or YAML; joulie lab --help shows one. Each finished run is stored at once; a stored
    run with the same settings, seed and version of Joulie is not repeated. The results do not depend on where or in
    which order they were computed. If a run fails, it is named, the others continue, and the exit code is 1.
    """
    need_extra(*(["distributed"] if dask else []))
    from joulie.cli.output import warn
    from joulie.lab.experiment.definition import read_experiment
    from joulie.lab.experiment.digests import git_commit
    from joulie.lab.runs.store import RUNS
    from joulie.lab.runs.sweep import sweep

    experiment = read_experiment(file, short=short)
    folder = results_folder(experiment, results)
    if fresh and (folder / RUNS).is_dir():
        shutil.rmtree(folder / RUNS)
    try:
        with ProgressBars(no_color=out.no_color) as bars:
            index = sweep(experiment, folder, _workers(workers, dask), bars, git_commit(file.parent))
    except KeyboardInterrupt:
        click.echo("joulie: stopped; finished runs are stored, and the same command resumes with the rest", err=True)
        raise
    if index.failed:
        warn([f"{place}: {reason}" for place, reason in sorted(index.failed.items())])
        _failed(index, folder, out)
    from joulie.cli.lab.compare import refuse_broken_claims, show
    from joulie.lab.runs.comparison import comparisons

    made = comparisons(experiment, folder)
    if out.for_people:
        show(made, experiment, out)
        out.tell(f"results: {folder}; for a report: joulie lab report {folder}")
    else:
        out.document({"folder": str(folder), "failed": {}, "chosen": index.chosen, "comparisons": made})
    refuse_broken_claims(experiment, made)


def _workers(count: int | None, dask: str | None) -> Workers:
    from joulie.lab.runs.workers import Children, Dask, here

    if dask:
        return Dask(dask)
    return here if count == 1 else Children(count)


def _failed(index: Index, folder: Path, out: Output) -> None:
    if out.for_people:
        of = len(index.planned)
        out.tell(f"{len(index.failed)} of {of} runs failed, so nothing is compared; finished runs are in {folder}")
    else:
        out.document({"folder": str(folder), "failed": index.failed, "chosen": index.chosen, "comparisons": []})
    click.get_current_context().exit(1)

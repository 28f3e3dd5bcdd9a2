"""`joulie lab trace`: make the work of a data centre, or look at a trace, or turn one format into another."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from joulie.cli.options import no_color_option
from joulie.errors import InputError

if TYPE_CHECKING:
    from joulie.catalogue.lookup import Catalogue
    from joulie.lab.jobs import JobTable
    from joulie.lab.setup import ClusterSetup
    from joulie.lab.trace_remarks import Remarks
    from joulie.lab.trace_setup import TraceSetup

STDOUT = "-"

_EPILOG = """\b
Examples:
  joulie lab trace                                     what a usual day looks like
  joulie lab trace --hours 48 --load 0.8 -o day.jsonl  make one and keep it
  joulie lab trace day.jsonl                           look at it
  joulie lab trace log.swf --skip-bad -o log.jsonl     turn a real log into our format
  joulie lab trace -e experiment.toml --seed 3         what an experiment's runs get
"""


@click.command("trace", epilog=_EPILOG)
@click.argument("file", required=False, type=click.Path(), metavar="[FILE]")
@click.option(
    "-o", "--output", metavar="FILE", help="Write the trace as JSON Lines; .gz is compressed, - is standard output."
)
@click.option(
    "-e",
    "--experiment",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Cluster and trace of an experiment's first variant; FILE or the options below override the trace.",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="What chance decides.")
@click.option("--hours", type=float, help="So long jobs come.  [default: 24; of a file all]")
@click.option("--jobs", type=click.IntRange(1), help="So many jobs.")
@click.option("--load", type=float, help="Work over uncapped capacity.  [default: 0.6]")
@click.option("--gpu-share", type=float, help="Of workloads.  [default: 0.4 where there are GPUs]")
@click.option("--duration-scale", type=float, help="Longer or shorter jobs.  [default: 1]")
@click.option("--burstiness", type=float, help="0: the day curve alone.  [default: 1]")
@click.option("--deadlines/--no-deadlines", default=None, help="Whether jobs have to be done by a time.")
@click.option(
    "--format",
    "format",
    type=click.Choice(["jsonl", "swf", "philly", "azure"]),
    help="Of FILE.  [default: by its name or its columns]",
)
@click.option("--skip-bad", is_flag=True, default=None, help="Leave bad lines of FILE out; count and list them.")
@click.option("--json", "as_json", is_flag=True, help="The summary as JSON.")
@no_color_option
def command(
    file: str | None, output: str | None, experiment: Path | None, seed: int, as_json: bool, no_color: bool, **more: Any
) -> None:
    """Make the work of a data centre, or look at a trace.

    Without FILE a trace is generated: training, evaluation and CPU work in the shares of the specification, over a day
    with bursts, for the experiment's cluster or a small default one. FILE is a trace in Joulie's own format, a log in
    Standard Workload Format (.swf), or one of the public Philly and Azure LLM inference files. A bad line ends it with
    file, line and field.
    """
    from joulie.lab.trace_remarks import Remarks
    from joulie.lab.trace_summary import summarise
    from joulie.lab.trace_writing import write_lines, write_trace

    trace, cluster, catalogue = _asked(
        file, experiment, {name: value for name, value in more.items() if value is not None}
    )
    remarks = Remarks(skip_bad=trace.skip_bad)
    jobs = _jobs(trace, seed, (cluster, catalogue), remarks, no_color, check=experiment is not None)
    for line in remarks.lines():
        click.echo(f"joulie: {line}", err=True)
    if output == STDOUT:
        write_lines(jobs, sys.stdout.buffer)
        return
    if output is not None:
        with _bar(f"writing {output}", no_color) as progress:
            write_trace(jobs, Path(output), progress)
    summary = summarise(jobs, cluster, catalogue)
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(summary), indent=2))
    else:
        from joulie.cli.lab_trace_table import print_summary

        print_summary(summary, no_color, "the experiment's" if experiment else "a default")
        if output is not None:
            click.echo(f"\nwrote {output}")


def _asked(
    file: str | None, experiment: Path | None, more: dict[str, Any]
) -> tuple[TraceSetup, ClusterSetup, Catalogue]:
    import msgspec

    from joulie.catalogue.lookup import Catalogue
    from joulie.lab.setup import ClusterSetup
    from joulie.lab.trace_records import complaint
    from joulie.lab.trace_setup import TraceSetup

    trace, cluster, catalogue = TraceSetup(), ClusterSetup(), Catalogue()
    if experiment is not None:
        from joulie.lab.experiment import read_experiment
        from joulie.sources.catalogue_file import CATALOGUE_VARIABLE, read_catalogue

        case = read_experiment(experiment).cases[0]
        cluster = case.setup.cluster
        if file is None:
            trace = case.trace
        catalogue = read_catalogue(str(case.setup.settings.get(CATALOGUE_VARIABLE, "")))
    if "jobs" in more or "load" in more:
        trace = msgspec.structs.replace(trace, jobs=None, load=None)
    if file is not None:
        more["file"] = file
    try:
        return msgspec.convert({**msgspec.to_builtins(trace), **more}, TraceSetup), cluster, catalogue
    except msgspec.ValidationError as error:
        what, reason = complaint(error)
        raise InputError(f"trace.{what}: {reason}" if what else f"trace: {reason}") from None


def _jobs(
    trace: TraceSetup,
    seed: int,
    place: tuple[ClusterSetup, Catalogue],
    remarks: Remarks,
    no_color: bool,
    *,
    check: bool,
) -> JobTable:
    """With `check`, jobs of a file that fit nowhere are bad; else the cluster is our guess, and they are only noted."""
    from joulie.lab.trace_fitting import misfits
    from joulie.lab.trace_reading import jobs_of

    if not trace.file:
        return jobs_of(trace, seed, *place)
    with _bar(f"reading {trace.file}", no_color) as progress:
        jobs = jobs_of(trace, seed, *place, remarks=remarks, progress=progress, check=check)
    if not check and (unfit := misfits(jobs, *place)):
        first = f"{jobs.id_of(unfit[0].job)}: {unfit[0].what}: {unfit[0].reason}"
        remarks.notes.append(
            f"{len(unfit):,} of {len(jobs):,} jobs would never start on the default cluster (-e names another), "
            f"the first is {first}"
        )
    return jobs


@contextmanager
def _bar(what: str, no_color: bool) -> Iterator[Callable[[float], None] | None]:
    """Progress with the time left, where a person sees it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True, no_color=no_color or None), transient=True) as shown:
        task = shown.add_task(what, total=1.0)
        yield lambda share: shown.update(task, completed=share)

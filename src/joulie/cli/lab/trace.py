"""`joulie lab trace`: generate a workload trace, inspect one, or convert between formats."""

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
    from joulie.lab.analysis.trace_summary import TraceSummary
    from joulie.lab.model.jobs import JobTable
    from joulie.lab.model.setup import ClusterSetup, TraceSetup
    from joulie.lab.traces.remarks import Remarks

STDOUT = "-"
BAR_CELLS = 40

_EPILOG = """\b
Examples:
  joulie lab trace                                     what a typical day looks like
  joulie lab trace --hours 48 --load 0.8 -o day.jsonl  generate a trace and store it
  joulie lab trace day.jsonl                           inspect it
  joulie lab trace log.swf --skip-bad -o log.jsonl     convert a real log to Joulie's format
  joulie lab trace -e experiment.toml --seed 3         the trace of an experiment's run
"""


@click.command("trace", epilog=_EPILOG)
@click.argument("file", required=False, type=click.Path(), metavar="[FILE]")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the trace: JSON Lines, .gz compressed, .parquet; - is standard output.",
)
@click.option(
    "-e",
    "--experiment",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Take cluster and trace from an experiment's first variant; FILE and the options below override the trace.",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Random seed.")
@click.option("--hours", type=float, help="How long jobs arrive.  [default: 24; for a file, all of it]")
@click.option("--jobs", type=click.IntRange(1), help="Number of jobs.")
@click.option("--load", type=float, help="Offered work relative to the uncapped capacity.  [default: 0.6]")
@click.option("--gpu-share", type=float, help="Share of workloads that use GPUs.  [default: 0.4 if there are GPUs]")
@click.option("--duration-scale", type=float, help="Multiplier for job durations.  [default: 1]")
@click.option("--burstiness", type=float, help="Strength of bursts; 0: only the daily curve.  [default: 1]")
@click.option(
    "--work", type=click.Choice(["mixed", "inference"]), help="Batch work of all kinds, or services.  [default: mixed]"
)
@click.option(
    "--arrivals",
    type=click.Choice(["day", "constant", "periodic"]),
    help="How arrivals are spread over time.  [default: day, with bursts]",
)
@click.option("--period-hours", type=float, help="Length of a wave of periodic arrivals.  [default: 24]")
@click.option("--longest-hours", type=float, help="Longest duration of a job.  [default: 1 to 8, by its family]")
@click.option("--deadlines/--no-deadlines", default=None, help="Whether jobs have deadlines.")
@click.option(
    "--format",
    "format",
    type=click.Choice(["jsonl", "parquet", "swf", "philly", "azure", "alibaba"]),
    help="Format of FILE.  [default: by its name or columns]",
)
@click.option("--skip-bad", is_flag=True, default=None, help="Skip invalid lines of FILE; count and list them.")
@click.option(
    "--nodes",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Print Alibaba's node list (openb_node_list_*.csv) as an experiment's cluster.nodes, and nothing else.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@no_color_option
def command(
    file: str | None,
    output: str | None,
    experiment: Path | None,
    seed: int,
    nodes: Path | None,
    as_json: bool,
    no_color: bool,
    **more: Any,
) -> None:
    """Generate a workload trace, or inspect one.

    Without FILE a trace is generated: training, evaluation and CPU work in Joulie's default mix, over a day with
    bursts, for the experiment's cluster or a small default one. FILE is a trace in Joulie's own format (JSON Lines or
    Parquet), a log in Standard Workload Format (.swf), or one of the public Philly, Azure LLM inference and Alibaba GPU
    files. An invalid line is an error that names file, line and field.
    """
    from joulie.lab.analysis.trace_summary import summarise
    from joulie.lab.traces.formats.jsonl_writer import write_lines
    from joulie.lab.traces.remarks import Remarks
    from joulie.lab.traces.writing import write_trace

    if nodes is not None:
        click.echo(_nodes(nodes))
        return
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
        _print(summary, no_color, "the experiment's" if experiment else "a default")
        if output is not None:
            click.echo(f"\nwrote {output}")


def _nodes(path: Path) -> str:
    from joulie.catalogue.lookup import Catalogue
    from joulie.lab.traces.formats.alibaba_nodes import as_toml, node_groups

    catalogue = Catalogue()
    return as_toml(node_groups(path, catalogue), catalogue)


def _asked(
    file: str | None, experiment: Path | None, more: dict[str, Any]
) -> tuple[TraceSetup, ClusterSetup, Catalogue]:
    import msgspec

    from joulie.catalogue.lookup import Catalogue
    from joulie.lab.model.setup import ClusterSetup, TraceSetup
    from joulie.lab.traces.formats.records import complaint

    trace, cluster, catalogue = TraceSetup(), ClusterSetup(), Catalogue()
    if experiment is not None:
        from joulie.lab.experiment.definition import read_experiment
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
    """With `check`, jobs that fit no node are errors; otherwise the cluster is only a default, and they are noted."""
    from joulie.lab.traces.feasibility import misfits
    from joulie.lab.traces.reading import jobs_of

    if not trace.file:
        return jobs_of(trace, seed, *place)
    with _bar(f"reading {trace.file}", no_color) as progress:
        jobs = jobs_of(trace, seed, *place, remarks=remarks, progress=progress, check=check)
    if not check and (unfit := misfits(jobs, *place)):
        first = f"{jobs.id_of(unfit[0].job)}: {unfit[0].what}: {unfit[0].reason}"
        remarks.notes.append(
            f"{len(unfit):,} of {len(jobs):,} jobs would never start on the default cluster (set another with -e); "
            f"the first is {first}"
        )
    return jobs


@contextmanager
def _bar(what: str, no_color: bool) -> Iterator[Callable[[float], None] | None]:
    """A progress bar with the time left, on a terminal only."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True, no_color=no_color or None), transient=True) as shown:
        task = shown.add_task(what, total=1.0)
        yield lambda share: shown.update(task, completed=share)


def _print(summary: TraceSummary, no_color: bool, whose: str) -> None:
    """Families, load and arrivals; `whose` names the cluster that the load refers to."""
    from joulie.cli.output import Output
    from joulie.cli.style import plain, plural
    from joulie.cli.tables import TableColumn, TextTable

    console = Output("table", no_color).console()
    gangs = f", {plural(summary.gangs, 'gang')} of up to {summary.largest_gang}" if summary.gangs else ""
    span_h = (summary.last_s - summary.first_s) / 3600
    click.echo(
        f"{plural(summary.jobs, 'job')} in {span_h:.1f} h · {plural(summary.pods, 'pod')}{gangs} · "
        f"{plural(summary.pod_shapes, 'pod shape')} · {plain(summary.performance_pct)} % performance"
    )
    click.echo(
        f"duration on reference devices: median {_time(summary.median_s)}, p99 {_time(summary.p99_s)}, "
        f"longest {_time(summary.longest_s)}"
    )
    if summary.offered_load is None:
        click.echo("all jobs arrive at the same time")
    else:
        loads = ", ".join(f"{name} {100 * load:.1f} %" for name, load in summary.offered_load.items())
        too_much = " – overload: the queue only grows" if max(summary.offered_load.values()) > 1 else ""
        click.echo(f"offered load: {loads} of the uncapped capacity of {whose} cluster{too_much}")
    click.echo()
    headings = ("workloads", "jobs", "pods", "core-hours", "GPU-hours", "share", "default share")
    table = TextTable([TableColumn("family"), *(TableColumn(heading, right=True) for heading in headings)])
    for row in summary.families:
        default = "–" if row.spec_share_pct is None else f"{row.spec_share_pct:.0f} %"
        counts = [f"{count:,}" for count in (row.workloads, row.jobs, row.pods)]
        hours = [f"{row.core_hours:,.0f}", f"{row.gpu_hours:,.0f}"]
        table.add([row.family, *counts, *hours, f"{row.share_pct:.1f} %", default])
    table.print(console)
    click.echo(f"\narrivals per {'hour' if summary.bar_hours == 1 else f'{summary.bar_hours:g} hours'}")
    peak = max(summary.arrivals)
    for place, count in enumerate(summary.arrivals):
        bar = "█" * round(BAR_CELLS * count / peak) if peak else ""
        click.echo(f"{place * summary.bar_hours:5g} h  {bar:<{BAR_CELLS}}  {count:,}".rstrip())


def _time(seconds: float) -> str:
    """`42 s`, `12.5 min`, `3.1 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"

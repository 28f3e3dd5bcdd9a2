"""`joulie lab explain`: why a job ran where and when it did."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import click

from joulie.cli.lab.shared import experiment_argument, facet_of, need_extra, short_option
from joulie.cli.options import prints_result

if TYPE_CHECKING:
    from joulie.cli.output import Output
    from joulie.lab.runs.explain import Explained
    from joulie.lab.simulation.moments import Moment

SLOWDOWN_SHOWN = 1.001  # smaller slowdowns are not mentioned

_EPILOG = """\b
Examples:
  joulie lab explain experiment.toml w0000042
  joulie lab explain experiment.toml w0000042 --variant capped --seed 7
  joulie lab explain experiment.toml w0000042 -o json

\b
A run is reproduced bit by bit from its seed, so nothing has to be stored. Job names are those of the trace;
generated ones count from w0000000 in order of arrival, with w0000042/2 for workloads of several jobs.
"""


@click.command("explain", epilog=_EPILOG)
@experiment_argument
@click.argument("job")
@click.option("--variant", metavar="NAME", help="The variant to explain.  [default: the first]")
@click.option("--facet", metavar="NAME", help="The facet of the experiment.  [default: the first]")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="The seed of the run.  [default: the first of seeds]")
@short_option
@prints_result
def command(
    file: Path, job: str, variant: str | None, facet: str | None, seed: int | None, short: bool, out: Output
) -> None:
    """Explain why a job ran where and when it did: the queue ahead of it, the nodes with room, and their scores."""
    need_extra()
    from joulie.errors import InputError
    from joulie.lab.experiment.definition import read_experiment
    from joulie.lab.runs.explain import explain

    experiment = read_experiment(file, short=short)
    facet = facet_of(experiment, file, facet)
    variant = next(iter(experiment.variants)) if variant is None else variant
    if variant not in experiment.variants:
        raise InputError(f"{file}: no variant {variant!r}; available: {', '.join(experiment.variants)}")
    found = explain(experiment.case(variant, facet), experiment.seeds[0] if seed is None else seed, job)
    if out.for_people:
        _print(found, out)
    else:
        out.document(found)


def _print(found: Explained, out: Output) -> None:
    console = out.console()

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False)

    gpus = f", {found.gpus} GPUs" if found.gpus else ""
    gang = f", a gang of {found.pods} pods" if found.pods > 1 else ""
    say(f"{found.job} · {found.family} · {found.workload_class} · {found.cores:g} cores{gpus}{gang}")
    say(f"  arrived at {_clock(found.submit_s)}, {_course(found)}")
    say(f"  on uncapped reference devices it would run {_span(found.uncapped_s)}")
    if not isnan(found.start_s):
        say(f"  ran on {', '.join(dict.fromkeys(found.nodes))}; uncapped it would run {_span(found.here_s)} there")
    if found.end_s - found.start_s > SLOWDOWN_SHOWN * found.here_s:
        say(f"  caps or heat made it run {_span(found.end_s - found.start_s - found.here_s)} longer")
    if found.when_it_came is not None:
        say("\nwhen it arrived")
        _print_moment(found.when_it_came, say)
    if found.when_it_was_placed is not None:
        say("\nwhen it was placed")
        _print_moment(found.when_it_was_placed, say)
        if found.passed_others:
            say("  it was backfilled: it overtook the head of the queue, which could not start yet and was not")
            say("  expected to be delayed by it")
        _print_best(found, out)


def _course(found: Explained) -> str:
    """When it ran; an aborted run leaves jobs without an end, or without a start."""
    if isnan(found.start_s):
        return "never started: the run was aborted before"
    started = f"started at {_clock(found.start_s)} after {_span(found.start_s - found.submit_s)}"
    if isnan(found.end_s):
        return f"{started}, had not finished when the run was aborted"
    return f"{started}, ran {_span(found.end_s - found.start_s)}"


def _print_moment(moment: Moment, say: Callable[[str], None]) -> None:
    say(f"  {_clock(moment.time_s)}: {moment.ahead} jobs were ahead of it; {moment.reasons['room']} nodes had room")
    for reason, count in moment.reasons.items():
        if reason != "room":
            say(f"  {count} {reason}")


def _print_best(found: Explained, out: Output) -> None:
    from joulie.cli.tables import TableColumn, TextTable

    assert found.when_it_was_placed is not None
    best = found.when_it_was_placed.best
    columns = [
        TableColumn("node"),
        TableColumn("class"),
        TableColumn("free cores", right=True),
        TableColumn("free GPUs", right=True),
    ]
    scored = any(candidate.points is not None for candidate in best)
    if scored:
        columns += [
            TableColumn("score", right=True),
            TableColumn("headroom", right=True),
            TableColumn("pod adds", right=True),
        ]
    table = TextTable([*columns, TableColumn("")])
    for candidate in best:
        cells = [candidate.node, candidate.node_class, f"{candidate.free_cores:g}", str(candidate.free_gpus)]
        if scored:
            cells += [f"{candidate.points:.0f}", f"{candidate.headroom:.1f} %", f"{candidate.pod_w:.0f} W"]
        table.add([*cells, "woken for it" if candidate.woken else "chosen" if candidate.chosen else ""])
    table.print(out.console())
    if not scored:
        out.tell(f"the scheduler {found.scheduler} ranks by free capacity or at random, not by score")


def _clock(time_s: float) -> str:
    minutes, seconds = divmod(round(time_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"


def _span(time_s: float) -> str:
    return (
        f"{time_s:.1f} s" if time_s < 120 else f"{time_s / 60:.1f} min" if time_s < 7200 else f"{time_s / 3600:.1f} h"
    )

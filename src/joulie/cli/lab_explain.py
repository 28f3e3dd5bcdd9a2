"""`joulie lab explain`: why a job ran where and when it did."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import click

from joulie.cli.lab_extra import experiment_argument, facet_of, need_extra, short_option
from joulie.cli.options import prints_result

if TYPE_CHECKING:
    from joulie.cli.output import Output
    from joulie.lab.explaining import Explained
    from joulie.lab.moments import Moment

LONGER = 1.001  # times what its nodes can do, to be worth a word

_EPILOG = """\b
Examples:
  joulie lab explain experiment.toml w0000042
  joulie lab explain experiment.toml w0000042 --variant capped --seed 7
  joulie lab explain experiment.toml w0000042 -o json

\b
A run is repeated bit by bit from its seed, so nothing has to be kept of it. Names of jobs are those of the trace;
generated ones count from w0000000 in the order of their arrival, w0000042/2 where a workload has several jobs.
"""


@click.command("explain", epilog=_EPILOG)
@experiment_argument
@click.argument("job")
@click.option("--variant", metavar="NAME", help="Of the experiment.  [default: the first]")
@click.option("--facet", metavar="NAME", help="Which of the experiment's facets.  [default: the first]")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="[default: the first of seeds]")
@short_option
@prints_result
def command(
    file: Path, job: str, variant: str | None, facet: str | None, seed: int | None, short: bool, out: Output
) -> None:
    """Say for one job why it ran where and when: who was ahead, which nodes had room, what each was worth."""
    need_extra()
    from joulie.errors import InputError
    from joulie.lab.experiment import read_experiment
    from joulie.lab.explaining import explain

    experiment = read_experiment(file, short=short)
    facet = facet_of(experiment, file, facet)
    variant = next(iter(experiment.variants)) if variant is None else variant
    if variant not in experiment.variants:
        raise InputError(f"{file}: there is no variant {variant!r}: there are {', '.join(experiment.variants)}")
    told = explain(experiment.case(variant, facet), experiment.seeds[0] if seed is None else seed, job)
    if out.for_people:
        _print(told, out)
    else:
        out.document(told)


def _print(told: Explained, out: Output) -> None:
    console = out.console()

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False)

    gpus = f", {told.gpus} GPUs" if told.gpus else ""
    gang = f", a gang of {told.pods} pods" if told.pods > 1 else ""
    say(f"{told.job} · {told.family} · {told.workload_class} · {told.cores:g} cores{gpus}{gang}")
    say(f"  came at {_clock(told.submit_s)}, {_course(told)}")
    say(f"  on reference devices, uncapped, it would run {_span(told.uncapped_s)}")
    if not isnan(told.start_s):
        say(f"  ran on {', '.join(dict.fromkeys(told.nodes))}; uncapped it would run {_span(told.here_s)} there")
    if told.end_s - told.start_s > LONGER * told.here_s:
        say(f"  caps or heat made it run {_span(told.end_s - told.start_s - told.here_s)} longer")
    if told.when_it_came is not None:
        say("\nwhen it came")
        _print_moment(told.when_it_came, say)
    if told.when_it_was_placed is not None:
        say("\nwhen it was placed")
        _print_moment(told.when_it_was_placed, say)
        if told.passed_others:
            say(
                "  it passed the first in the queue, which could not start yet and, as far as was known, would not wait"
            )
            say("  for it (backfill)")
        _print_best(told, out)


def _course(told: Explained) -> str:
    """When it ran; a run that was given up leaves jobs without an end, or a start."""
    if isnan(told.start_s):
        return "never started: the run was given up before"
    started = f"started at {_clock(told.start_s)} after {_span(told.start_s - told.submit_s)}"
    if isnan(told.end_s):
        return f"{started}, had not ended when the run was given up"
    return f"{started}, ran {_span(told.end_s - told.start_s)}"


def _print_moment(moment: Moment, say: Callable[[str], None]) -> None:
    say(f"  {_clock(moment.time_s)}: {moment.ahead} jobs waited ahead of it; {moment.reasons['room']} nodes had room")
    for reason, count in moment.reasons.items():
        if reason != "room":
            say(f"  {count} {reason}")


def _print_best(told: Explained, out: Output) -> None:
    from joulie.cli.tables import Column, Table

    assert told.when_it_was_placed is not None
    best = told.when_it_was_placed.best
    columns = [Column("node"), Column("class"), Column("free cores", right=True), Column("free GPUs", right=True)]
    scored = any(candidate.points is not None for candidate in best)
    if scored:
        columns += [Column("score", right=True), Column("headroom", right=True), Column("pod adds", right=True)]
    table = Table([*columns, Column("")])
    for candidate in best:
        cells = [candidate.node, candidate.node_class, f"{candidate.free_cores:g}", str(candidate.free_gpus)]
        if scored:
            cells += [f"{candidate.points:.0f}", f"{candidate.headroom:.1f} %", f"{candidate.pod_w:.0f} W"]
        table.add([*cells, "woken for it" if candidate.woken else "chosen" if candidate.chosen else ""])
    table.print(out.console())
    if not scored:
        out.tell(f"the scheduler {told.scheduler} ranks by what is free or by chance, not by the score")


def _clock(time_s: float) -> str:
    minutes, seconds = divmod(round(time_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"


def _span(time_s: float) -> str:
    return (
        f"{time_s:.1f} s" if time_s < 120 else f"{time_s / 60:.1f} min" if time_s < 7200 else f"{time_s / 3600:.1f} h"
    )

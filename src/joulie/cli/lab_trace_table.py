"""A trace in numbers, for people: families, load, and when jobs come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from joulie.cli.output import Output
from joulie.cli.style import plain, plural
from joulie.cli.tables import Column, Table

if TYPE_CHECKING:
    from joulie.lab.trace_summary import TraceSummary

BAR_CELLS = 40


def print_summary(summary: TraceSummary, no_color: bool, whose: str) -> None:
    """`whose` cluster the load is offered to."""
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
        click.echo("all come at the same time")
    else:
        loads = ", ".join(f"{name} {100 * load:.1f} %" for name, load in summary.offered_load.items())
        too_much = " – too much: the queue only grows" if max(summary.offered_load.values()) > 1 else ""
        click.echo(f"offered load: {loads} of what {whose} cluster can do uncapped{too_much}")
    click.echo()
    headings = ("workloads", "jobs", "pods", "core-hours", "GPU-hours", "share", "SPEC 10")
    table = Table([Column("family"), *(Column(heading, right=True) for heading in headings)])
    for row in summary.families:
        spec = "–" if row.spec_share_pct is None else f"{row.spec_share_pct:.0f} %"
        counts = [f"{count:,}" for count in (row.workloads, row.jobs, row.pods)]
        hours = [f"{row.core_hours:,.0f}", f"{row.gpu_hours:,.0f}"]
        table.add([row.family, *counts, *hours, f"{row.share_pct:.1f} %", spec])
    table.print(console)
    click.echo(f"\njobs that come in each {'hour' if summary.bar_hours == 1 else f'{summary.bar_hours:g} hours'}")
    most = max(summary.arrivals)
    for place, count in enumerate(summary.arrivals):
        bar = "█" * round(BAR_CELLS * count / most) if most else ""
        click.echo(f"{place * summary.bar_hours:5g} h  {bar:<{BAR_CELLS}}  {count:,}".rstrip())


def _time(seconds: float) -> str:
    """`42 s`, `12.5 min`, `3.1 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"

"""`joulie lab`: whole data centres on a laptop. Each of its commands is imported only when it runs."""

from __future__ import annotations

import click

from joulie.cli.lazy import LazyCommand, LazyGroup

RUN, LOOK = "Run", "Look at results"

TABLE = {
    "trace": LazyCommand("joulie.cli.lab.trace", RUN, "Generate a workload trace, or inspect one."),
    "run": LazyCommand("joulie.cli.lab.run", RUN, "Run an experiment's variants once and show the results."),
    "sweep": LazyCommand("joulie.cli.lab.sweep", RUN, "Run all variants on all seeds; resumes where it stopped."),
    "compare": LazyCommand("joulie.cli.lab.compare", LOOK, "Differences between variants, with confidence intervals."),
    "report": LazyCommand("joulie.cli.lab.report", LOOK, "One HTML file with plots, tables and a summary."),
    "explain": LazyCommand("joulie.cli.lab.explain", LOOK, "Why a job ran where and when it did."),
}

_EPILOG = """\b
Examples:
  joulie lab run experiment.toml
  joulie lab sweep experiment.toml
  joulie lab compare experiment.toml
  joulie lab report results/experiment

\b
An experiment is one small file; everything has a default:
  question = "Do caps of 70 % on GPUs save energy?"
  seeds = 20
  [trace]
  hours = 24
  load = 0.6
  [policy]
  name = "uniform"
  [variants]
  full = {}
  capped = { policy.gpu_cap_pct = 70 }

\b
Needs extra packages: pip install 'joulie[lab]'
"""


@click.group("lab", cls=LazyGroup, table=TABLE, subcommand_metavar="COMMAND …", epilog=_EPILOG)
def command() -> None:
    """Try a policy on thousands of simulated nodes, and compare it fairly.

    Jobs queue, run and finish on simulated hardware, while caps and placements come from the same code that runs on a
    cluster. Compared runs complete the same work on the same seeds; unfair comparisons are refused, with the reason.
    """

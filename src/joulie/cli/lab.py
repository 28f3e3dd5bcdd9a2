"""`joulie lab`: whole data centres on a laptop; each of its commands is imported when it runs."""

from __future__ import annotations

import click

from joulie.cli.lazy import LazyGroup, Listed

RUN, LOOK = "Run", "Look at results"

TABLE = {
    "trace": Listed("joulie.cli.lab_trace", RUN, "Make the work of a data centre, or look at a trace."),
    "run": Listed("joulie.cli.lab_run", RUN, "Run an experiment's variants once and show what they come to."),
    "sweep": Listed("joulie.cli.lab_sweep", RUN, "Run all variants on all seeds, and go on where it stopped."),
    "compare": Listed("joulie.cli.lab_compare", LOOK, "Differences between variants, with confidence intervals."),
    "report": Listed("joulie.cli.lab_report", LOOK, "One HTML file with plots, tables and the sentence that sums up."),
    "explain": Listed("joulie.cli.lab_explain", LOOK, "Why a job ran where and when it did."),
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
Needs its extra packages: pip install 'joulie[lab]'
"""


@click.group("lab", cls=LazyGroup, table=TABLE, subcommand_metavar="COMMAND …", epilog=_EPILOG)
def command() -> None:
    """Try a policy on thousands of simulated nodes, and compare it fairly.

    Jobs queue, run and finish on simulated hardware, while caps and placements come from the code that also runs on a
    cluster. Compared runs do the same work to the end on the same seeds; what would not be fair is refused, with the
    reason.
    """

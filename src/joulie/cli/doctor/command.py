"""`joulie doctor`: what is wrong with an installation, and how to fix it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from joulie.cli.options import clock_s, duration_option, prints_result, reads_cluster

if TYPE_CHECKING:
    from joulie.cli.options import ObjectSource
    from joulie.cli.output import Output

RETRY_S = 2.0
_EPILOG = """\b
Examples:
  joulie doctor
  joulie doctor -o json | jq -r '.findings[] | .kind + " " + .text'
  joulie doctor --wait 2m && echo healthy

\b
What it checks:
  the API server (version, clock, definitions, admission policy), permissions of the components,
  the operator and its lease, agents, the extender and whether the scheduler calls it, twins, labels,
  hardware, telemetry, pins

\b
Exit code 1 means that a fault was found; with warnings alone it is 0. Nothing is changed.
"""


@click.command(epilog=_EPILOG)
@duration_option("--wait", "wait_s", help="How long to look again while there are faults.")
@reads_cluster
@prints_result
def command(source: ObjectSource, out: Output, wait_s: float | None) -> None:
    """What is wrong with an installation, and how to fix it.

    Each finding says what is wrong, the next step, and which section of docs/troubleshooting.md has more.
    """
    from joulie.cli.connection import on_connection
    from joulie.cli.doctor.installation_rules import examine
    from joulie.cli.doctor.report import document, print_report
    from joulie.cli.doctor.survey import survey

    give_up_at_s = time.monotonic() + (wait_s or 0.0)
    while True:
        found = on_connection(source.kubeconfig, source.context, survey)
        findings = examine(found, replace(source, now_s=clock_s()))
        is_faulty = any(finding.severity == "fault" for finding in findings)
        if not is_faulty or time.monotonic() >= give_up_at_s:
            break
        time.sleep(RETRY_S)
    if out.for_people:
        print_report(out.console(), found, findings)
    else:
        out.document(document(found, findings))
    if is_faulty:
        raise click.exceptions.Exit(1)

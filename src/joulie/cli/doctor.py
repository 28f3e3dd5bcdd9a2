"""`joulie doctor`: what is wrong with an installation, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from joulie.cli.options import prints_result, reads_cluster

if TYPE_CHECKING:
    from joulie.cli.options import Source
    from joulie.cli.output import Output

_EPILOG = """\b
Examples:
  joulie doctor
  joulie doctor -o json | jq -r '.findings[] | .kind + " " + .text'
  joulie doctor && echo healthy

\b
What it looks at:
  the API server (version, clock, definitions, admission policy), rights of the components, operator and its
  lease, agents, extender and whether the scheduler asks it, twins, labels, hardware, telemetry, pins

\b
Exit code 1 means that a fault was found; warnings alone are exit code 0. Nothing is changed.
"""


@click.command(epilog=_EPILOG)
@reads_cluster
@prints_result
def command(source: Source, out: Output) -> None:
    """What is wrong with an installation, and what to do about it.

    Each finding says what is not as it should be, how that was seen, the next step, and where docs/troubleshooting.md
    tells more.
    """
    from joulie.cli.connection import on_connection
    from joulie.cli.doctor_findings import examine
    from joulie.cli.doctor_look import look
    from joulie.cli.doctor_report import document, print_report

    found = on_connection(source.kubeconfig, source.context, look)
    findings = examine(found, source)
    if out.for_people:
        print_report(out.console(), found, findings)
    else:
        out.document(document(found, findings))
    if any(finding.severity == "fault" for finding in findings):
        raise click.exceptions.Exit(1)

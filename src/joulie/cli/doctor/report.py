"""The findings of `doctor`, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from joulie.cli.doctor.survey import InstallationSurvey
from joulie.cli.style import QUIET, STRONG, plural
from joulie.cli.tables import fold
from joulie.cli.views.overview_text import about, grouped, severity
from joulie.errors import one_line
from joulie.overview.findings import SEVERITIES, Finding

PAGE = "docs/troubleshooting.md"
_INDENT = " " * 9


def print_report(console: Console, found: InstallationSurvey, findings: Sequence[Finding]) -> None:
    """Prints findings grouped by kind, faults first."""
    version = "" if found.version is None else f" · Kubernetes {found.version[0]}.{found.version[1]}"
    nodes = plural(len(found.live.snapshot.nodes), "node")
    headline = Text.assemble(("Joulie doctor", STRONG), " · ", one_line(f"{found.live.origin}{version} · {nodes}"))
    console.print(headline, soft_wrap=True)
    for group in grouped(findings):
        console.print()
        first, *others = fold(one_line(about(group)), max(40, console.width - len(_INDENT)))
        console.print(Text.assemble(severity(group[0].severity), f"  {first}"), soft_wrap=True)
        for line in others:
            console.print(Text(_INDENT + line), soft_wrap=True)
        console.print(Text(f"{_INDENT}→ {one_line(group[0].next_step)}"), soft_wrap=True)
        console.print(Text(f"{_INDENT}  {link(group[0])}", QUIET), soft_wrap=True)
    console.print()
    console.print(verdict(findings))
    for line in found.unseen:
        console.print(Text(f"not checked: {one_line(line)}", QUIET), soft_wrap=True)


def document(found: InstallationSurvey, findings: Sequence[Finding]) -> dict[str, Any]:
    """Every finding on its own; hints are separate because a healthy cluster has them too."""
    documents = [{**msgspec.to_builtins(finding), "link": link(finding)} for finding in findings]
    return {
        "faults": _count(findings, "fault"),
        "warnings": _count(findings, "warning"),
        "findings": [one for one in documents if one["severity"] != "hint"],
        "hints": [one for one in documents if one["severity"] == "hint"],
        "notLookedAt": found.unseen,
    }


def verdict(findings: Sequence[Finding]) -> str:
    """Counts what is printed: nodes with the same problem count once."""
    groups = [group[0] for group in grouped(findings)]
    faults, warnings, hints = (_count(groups, name) for name in SEVERITIES)
    text = f"{plural(faults, 'fault')}, {plural(warnings, 'warning')}" if faults or warnings else "no faults found"
    return f"{text}, {plural(hints, 'hint')}" if hints else text


def link(finding: Finding) -> str:
    return f"{PAGE}#{finding.kind}"


def _count(findings: Sequence[Finding], name: str) -> int:
    return sum(finding.severity == name for finding in findings)

"""What `doctor` found, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from joulie.cli.doctor_look import Look
from joulie.cli.lines import one_line
from joulie.cli.status_lines import about, grouped, severity
from joulie.cli.style import QUIET, STRONG, plural
from joulie.cli.tables import fold
from joulie.overview.findings import Finding

PAGE = "docs/troubleshooting.md"
_INDENT = " " * 9


def print_report(console: Console, found: Look, findings: Sequence[Finding]) -> None:
    """Those of one kind together, faults first."""
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
        console.print(Text(f"not looked at: {one_line(line)}", QUIET), soft_wrap=True)


def document(found: Look, findings: Sequence[Finding]) -> dict[str, Any]:
    """Every finding by itself."""
    return {
        "faults": _count(findings, "fault"),
        "warnings": _count(findings, "warning"),
        "findings": [{**msgspec.to_builtins(finding), "link": link(finding)} for finding in findings],
        "notLookedAt": found.unseen,
    }


def verdict(findings: Sequence[Finding]) -> str:
    faults, warnings = _count(findings, "fault"), _count(findings, "warning")
    if not findings:
        return "no fault found"
    return f"{plural(faults, 'fault')}, {plural(warnings, 'warning')}"


def link(finding: Finding) -> str:
    return f"{PAGE}#{finding.kind}"


def _count(findings: Sequence[Finding], name: str) -> int:
    return sum(finding.severity == name for finding in findings)

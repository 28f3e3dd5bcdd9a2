"""The overview for people: two lines of numbers, racks with bars, and what needs attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from joulie.cli.lines import one_line
from joulie.cli.style import QUIET, STRONG, kilowatts, plain, plural
from joulie.cli.tables import Column, Table
from joulie.overview.colours import FAULT, STATE_COLOURS
from joulie.overview.findings import Finding
from joulie.overview.summary import ClusterView, RackView

MOST_RACKS, MOST_FINDINGS = 24, 12
BAR_CELLS = 20
MOST_NAMES = 4
WARNING = STATE_COLOURS["draining"]


def print_status(console: Console, view: ClusterView) -> None:
    for line in header(view):
        console.print(line, soft_wrap=True)
    if not view.nodes:
        return
    console.print()
    _racks(view.racks).print(console)
    if len(view.racks) > MOST_RACKS:
        console.print(f"… and {len(view.racks) - MOST_RACKS:,} racks more: -o json has all", style=QUIET)
    console.print()
    if not view.attention:
        console.print("nothing needs attention")
        return
    console.print(Text("attention", STRONG))
    for line in attention(view.attention, MOST_FINDINGS):
        console.print(line, soft_wrap=True)


def header(view: ClusterView) -> Iterator[Text]:
    """Who leads, how much power, which states, what is enforced."""
    facts = view.facts
    leader = f" · leader {facts.leader}" if facts.leader else ""
    out = f" · {view.unmanaged:,} not managed" if view.unmanaged else ""
    yield Text.assemble(
        ("Joulie", STRONG), " · ", one_line(f"{facts.cluster} · {plural(view.nodes, 'node')}{out}{leader}")
    )
    if not view.nodes:
        yield Text("no node is managed: kubectl label node NAME joulie.io/managed=true takes one in")
        return
    line = Text.assemble((kilowatts(view.power_w), STRONG), f" drawn, {kilowatts(view.capped_w)} allowed")
    if facts.budget_w:
        share = view.power_w / facts.budget_w * 100
        over = FAULT if share > 100 else ""
        line.append(f" · {share:.0f} % of the budget of {kilowatts(facts.budget_w)}", over)
    line.append(f" · PUE {facts.pue:.2f}" if facts.pue is not None else "")
    line.append(f" · {plain(facts.ambient_c)} °C" if facts.ambient_c is not None else "")
    yield line
    yield _states(view)


def _states(view: ClusterView) -> Text:
    line = Text()
    for state, count in view.states.items():
        if count or state != "unknown":
            line.append(f"{count:,} ").append("■", STATE_COLOURS[state]).append(f" {state}   ")
    line.append(f"enforced {view.enforced:,}/{view.asked:,}", FAULT if view.enforced < view.asked else "")
    return line


def _racks(racks: Sequence[RackView]) -> Table:
    table = Table((Column("rack"), Column("power", right=True), Column(""), Column("nodes")))
    for rack in racks[:MOST_RACKS]:
        share = rack.power_w / rack.capacity_w if rack.capacity_w else 0.0
        states = ", ".join(f"{count} {state}" for state, count in rack.states.items() if count)
        power = f"{kilowatts(rack.power_w)} of {kilowatts(rack.capacity_w)}"
        table.add(
            [rack.name or "(no rack)", power, (bar(share), FAULT if share >= 0.9 else STATE_COLOURS["eco"]), states]
        )
    return table


def bar(share: float) -> str:
    """`████░░░░`: how much of the whole."""
    full = round(min(max(share, 0.0), 1.0) * BAR_CELLS)
    return "█" * full + "░" * (BAR_CELLS - full)


def attention(findings: Sequence[Finding], most: int) -> Iterator[Text]:
    """Faults first, those of one kind together; more than a person reads are counted."""
    groups = grouped(findings)
    for group in groups[:most]:
        yield Text.assemble("  ", severity(group[0].severity), f"  {one_line(about(group))}")
        yield Text(f"           {one_line(group[0].next_step)}", QUIET)
    if len(groups) > most:
        yield Text(f"  … and {len(groups) - most:,} more: joulie doctor", QUIET)


def grouped(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Nodes with the same trouble together; what concerns the whole cluster stands by itself."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        alone = "" if finding.node else finding.text
        groups.setdefault((finding.severity, finding.kind, alone), []).append(finding)
    return list(groups.values())


def severity(name: str) -> tuple[str, str]:
    return f"{name:<7}", FAULT if name == "fault" else WARNING


def about(group: Sequence[Finding]) -> str:
    """`node-3: …` for one, `12 nodes (node-3, node-7, …): …` for many, with what is said of the first."""
    first = group[0]
    if not first.node:
        return first.text
    if len(group) == 1:
        return f"{first.node}: {first.text}"
    named = ", ".join(finding.node for finding in group[:MOST_NAMES]) + (", …" if len(group) > MOST_NAMES else "")
    return f"{len(group):,} nodes ({named}): {first.text}"

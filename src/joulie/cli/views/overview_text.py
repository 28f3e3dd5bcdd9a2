"""The overview for people: a headline, racks with bars, and what needs attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from joulie.cli.style import QUIET, STRONG, kilowatts, plain, plural
from joulie.cli.tables import TableColumn, TextTable
from joulie.cli.views.plan_table import demand
from joulie.errors import one_line
from joulie.overview.budgets import BudgetView
from joulie.overview.colours import BUDGET_COLOURS, FAULT, STATE_COLOURS
from joulie.overview.findings import Finding
from joulie.overview.summary import ClusterView, RackView

MAX_RACKS, MAX_FINDINGS, MAX_GROUPS = 24, 12, 12
CALM = ("within", "reported")
BAR_CELLS = 20
MAX_NAMES = 4
WARNING = STATE_COLOURS["draining"]


def print_status(console: Console, view: ClusterView) -> None:
    for line in header(view):
        console.print(line, soft_wrap=True)
    if not view.nodes:
        return
    console.print()
    _racks(view.racks).print(console)
    if len(view.racks) > MAX_RACKS:
        console.print(f"… and {len(view.racks) - MAX_RACKS:,} more racks; -o json has them all", style=QUIET)
    if view.budgets:
        console.print()
        _budgets(view.budgets).print(console)
    console.print()
    if not view.attention:
        console.print("nothing needs attention")
        return
    console.print(Text("attention", STRONG))
    for line in attention(view.attention, MAX_FINDINGS):
        console.print(line, soft_wrap=True)


def header(view: ClusterView) -> Iterator[Text]:
    """Leader, power, states, and how many caps are enforced."""
    facts = view.facts
    leader = f" · leader {facts.leader}" if facts.leader else ""
    out = f" · {view.unmanaged:,} not managed" if view.unmanaged else ""
    yield Text.assemble(
        ("Joulie", STRONG), " · ", one_line(f"{facts.cluster} · {plural(view.nodes, 'node')}{out}{leader}")
    )
    if not view.nodes:
        which = f"{facts.selector!r} matches none of {plural(view.unmanaged, 'node')}, or all are reserved"
        yield Text(one_line(f"no node is managed: NODE_SELECTOR {which}; run joulie doctor for the next step"))
        yield Text("to manage one: kubectl label node NAME joulie.io/managed=true")
        return
    line = Text.assemble((kilowatts(view.power_w), STRONG), f" drawn, {kilowatts(view.capped_w)} allowed")
    if (whole := view.tightest) is not None:
        given = f"{kilowatts(whole.allocated_w)} of " if whole.allocated_w is not None else ""
        over = FAULT if whole.state in ("exceeded", "infeasible") else ""
        line.append(f" · {given}the {kilowatts(whole.limit_w)} of budget {whole.name}", over)
    elif facts.budget_w:
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
    if pods := demand(view.pods):
        line.append(f"   {pods}")
    return line


def _racks(racks: Sequence[RackView]) -> TextTable:
    table = TextTable((TableColumn("rack"), TableColumn("power", right=True), TableColumn(""), TableColumn("nodes")))
    for rack in racks[:MAX_RACKS]:
        share = rack.power_w / rack.capacity_w if rack.capacity_w else 0.0
        states = ", ".join(f"{count} {state}" for state, count in rack.states.items() if count)
        power = f"{kilowatts(rack.power_w)} of {kilowatts(rack.capacity_w)}"
        table.add(
            [rack.name or "(no rack)", power, (bar(share), FAULT if share >= 0.9 else STATE_COLOURS["eco"]), states]
        )
    return table


def _budgets(budgets: Sequence[BudgetView]) -> TextTable:
    """What is in trouble first; `joulie budget` has the rest."""
    table = TextTable(
        (
            TableColumn("budget"),
            TableColumn("allocated", right=True),
            TableColumn(""),
            TableColumn("measured", right=True),
            TableColumn("state"),
        ),
        note="why",
    )
    groups = sorted((group for one in budgets for group in one.groups), key=lambda group: group.state in CALM)
    for group in groups[:MAX_GROUPS]:
        given_w = group.allocated_w
        share = (given_w or 0.0) / group.limit_w
        power = f"{'–' if given_w is None else kilowatts(given_w)} of {kilowatts(group.limit_w)}"
        measured = "–" if group.measured_w is None else kilowatts(group.measured_w)
        colour = BUDGET_COLOURS[group.state]
        table.add([group.name, power, (bar(share), colour), measured, (group.state, colour)], group.reason)
    if len(groups) > MAX_GROUPS:
        table.add([f"… and {len(groups) - MAX_GROUPS:,} more: joulie budget", "", "", "", ""])
    return table


def bar(share: float) -> str:
    """`████░░░░`, filled by the share."""
    full = round(min(max(share, 0.0), 1.0) * BAR_CELLS)
    return "█" * full + "░" * (BAR_CELLS - full)


def attention(findings: Sequence[Finding], maximum: int) -> Iterator[Text]:
    """Faults first, grouped by kind; beyond the maximum they are only counted."""
    groups = grouped(findings)
    for group in groups[:maximum]:
        yield Text.assemble("  ", severity(group[0].severity), f"  {one_line(about(group))}")
        yield Text(f"           {one_line(group[0].next_step)}", QUIET)
    if len(groups) > maximum:
        yield Text(f"  … and {len(groups) - maximum:,} more: joulie doctor", QUIET)


def grouped(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Groups nodes with the same problem; findings about the whole cluster stay separate."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        alone = "" if finding.node else finding.text
        groups.setdefault((finding.severity, finding.kind, alone), []).append(finding)
    return list(groups.values())


def severity(name: str) -> tuple[str, str]:
    return f"{name:<7}", {"fault": FAULT, "warning": WARNING}.get(name, QUIET)


def about(group: Sequence[Finding]) -> str:
    """`node-3: …` for one node, `12 nodes (node-3, node-7, …): …` for several, with the text of the first.

    Several findings about one node count as one node.
    """
    first = group[0]
    if not first.node:
        return first.text
    nodes = list(dict.fromkeys(finding.node for finding in group))
    text = "; ".join(dict.fromkeys(finding.text for finding in group if finding.node == first.node))
    if len(nodes) == 1:
        return f"{first.node}: {text}"
    named = ", ".join(nodes[:MAX_NAMES]) + (", …" if len(nodes) > MAX_NAMES else "")
    return f"{len(nodes):,} nodes ({named}): {text}"

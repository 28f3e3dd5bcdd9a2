"""Rules about power budgets: what their statuses say, and what keeps a limit from being held. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from joulie.cli.context import LoadedCluster
from joulie.cli.doctor.survey import InstallationSurvey
from joulie.cli.style import plural
from joulie.cli.views.overview import Overview
from joulie.control.budget.envelopes import envelope_of
from joulie.control.budget.groups import group_name
from joulie.model.api import PowerBudget
from joulie.model.names import BUDGET_LEASE, FORGET_ANNOTATION, MAX_WATTS_LABEL, UNCAPPED_TAINT
from joulie.overview.budget_findings import MAXIMUM_UNKNOWN, budget_findings
from joulie.overview.budgets import groups_of, taken_by
from joulie.overview.findings import NAMED, Finding, age
from joulie.physics.hardware import machine_of

LEASE_S = 60.0  # agents that see no renewal for so long go to their failsafe caps


def budget_rules(found: InstallationSurvey, cluster: LoadedCluster, view: Overview, log: str) -> Iterator[Finding]:
    """Without a budget only what one left behind."""
    yield from _uncapped(cluster)
    if not cluster.budgets:
        return
    managed = [name for name, node in view.nodes.items() if node.managed]
    groups = {
        group_name(budget.metadata.name, value): names
        for budget in cluster.budgets
        for value, names in groups_of(budget, taken_by(budget, cluster.snapshot.nodes, managed)).items()
        if _is_enforced(budget, value)
    }
    unknown = list(_maximum_unknown(cluster, groups))
    yield from unknown
    for finding in budget_findings(view.cluster.budgets):
        if finding.kind != MAXIMUM_UNKNOWN or not unknown:
            here = finding.next_step.startswith("joulie doctor")  # that is where one is already
            yield replace(finding, next_step=log) if here else finding
    yield from _unconfirmed(view, groups)
    yield from _conflicts(cluster, groups)
    yield from _lease(found, cluster, groups, log)
    yield from _forgotten(cluster)


def _is_enforced(budget: PowerBudget, value: str) -> bool:
    own = next((each.mode for each in budget.spec.groups or () if each.value == value and each.mode), None)
    return (own or budget.spec.mode or "enforce") == "enforce"


def _maximum_unknown(cluster: LoadedCluster, groups: dict[str, list[str]]) -> Iterator[Finding]:
    snapshot = cluster.snapshot
    unknown = []
    for name in sorted({name for names in groups.values() for name in names}):
        node = snapshot.nodes[name]
        machine = machine_of(node, snapshot.hardware.get(name), cluster.settings.hardware, cluster.catalogue)
        if not envelope_of(node, machine).is_known:
            unknown.append(name)
    if unknown:
        text = f"{plural(len(unknown), 'node')} under power budgets have no known maximum: {_named(unknown)}"
        step = f"kubectl label node {unknown[0]} {MAX_WATTS_LABEL}=W, the most that its devices draw"
        yield Finding("budget-maximum-unknown", "warning", "", text, step)


def _unconfirmed(view: Overview, groups: dict[str, list[str]]) -> Iterator[Finding]:
    """Nodes that follow their orders by frequency or percent alone count all that they can draw."""
    for name in sorted({name for names in groups.values() for name in names}):
        node = view.nodes[name]
        if node.budget_w is None or not node.budget_holds_no_watts:
            continue
        controls = [one for one in (node.cpu_control, node.gpu_control) if one is not None and one.backend]
        ways = f" ({', '.join(dict.fromkeys(one.backend for one in controls))})" if controls else ""
        text = f"its devices hold no cap in watts{ways}, so under power budgets it counts all that it can draw"
        yield Finding("budget-unconfirmed", "warning", name, text, f"joulie explain node {name}")


def _uncapped(cluster: LoadedCluster) -> Iterator[Finding]:
    """Usual for seconds after a node has joined."""
    nodes = sorted(cluster.snapshot.nodes.values(), key=lambda node: node.name)
    waiting = [node.name for node in nodes if any(taint.key == UNCAPPED_TAINT for taint in node.taints)]
    if waiting:
        many = len(waiting) > 1
        text = f"{plural(len(waiting), 'node')} {'take' if many else 'takes'} no pods before a power cap is confirmed"
        step = f"joulie budget --nodes; without a cap: kubectl taint node {waiting[0]} {UNCAPPED_TAINT}-"
        yield Finding("budget-uncapped", "hint", "", f"{text} (taint {UNCAPPED_TAINT}): {_named(waiting)}", step)


def _conflicts(cluster: LoadedCluster, groups: dict[str, list[str]]) -> Iterator[Finding]:
    """Two limits for the same nodes: only the lower one means anything."""
    limits = {
        group_name(budget.metadata.name, group.value): group.limit_watts
        for budget in cluster.budgets
        for group in (budget.status.groups if budget.status else None) or ()
    }
    by_nodes: dict[tuple[str, ...], list[str]] = {}
    for name, nodes in groups.items():
        if name in limits:
            by_nodes.setdefault(tuple(nodes), []).append(name)
    for inside, names in by_nodes.items():
        lowest, *others = sorted(names, key=lambda name: (limits[name], name))
        budgets = {name.partition("/")[0] for name in names}
        if others and len(budgets) > 1 and limits[others[-1]] > limits[lowest]:
            text = f"{_named(others)} and {lowest} limit the same {plural(len(inside), 'node')}"
            text += f": only the lower limit counts, {limits[lowest]:,.0f} W"
            step = f"kubectl edit powerbudget {others[0].partition('/')[0]}: change its selector, or delete it"
            yield Finding("budget-conflict", "warning", "", text, step)


def _lease(
    found: InstallationSurvey, cluster: LoadedCluster, groups: dict[str, list[str]], log: str
) -> Iterator[Finding]:
    if found.budget_leases is None or not groups:
        return
    silent_s = [lease.silent_s(cluster.now_s) for lease in found.budget_leases if lease.renewed_at_s is not None]
    effect = f"agents hold no more than their failsafe caps {age(LEASE_S)} after the last renewal"
    if not silent_s and any(budget.status is not None for budget in cluster.budgets):
        text = f"there is no Lease {BUDGET_LEASE}, so agents cannot see that budgets are watched over: {effect}"
        yield Finding("budget-lease", "fault", "", text, log)
    elif silent_s and min(silent_s) > LEASE_S:
        text = f"the Lease {BUDGET_LEASE} was not renewed for {age(min(silent_s))}: {effect}"
        yield Finding("budget-lease", "fault", "", text, log)


def _forgotten(cluster: LoadedCluster) -> Iterator[Finding]:
    """A node that came back would be forgotten again as soon as it is deleted."""
    for budget in cluster.budgets:
        text = (budget.metadata.annotations or {}).get(FORGET_ANNOTATION, "")
        back = sorted({name.strip() for name in text.split(",")} & set(cluster.snapshot.nodes))
        if back:
            name = budget.metadata.name
            said = f"PowerBudget/{name} has the annotation {FORGET_ANNOTATION} for nodes that are there: {_named(back)}"
            yield Finding(
                "budget-forget", "warning", "", said, f"kubectl annotate powerbudget {name} {FORGET_ANNOTATION}-"
            )


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED:,} more" if len(names) > NAMED else "")

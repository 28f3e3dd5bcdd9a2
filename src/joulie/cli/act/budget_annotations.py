"""What `pause`, `resume` and `budget forget` do: set an annotation of PowerBudgets, and say what will happen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from joulie.cli.connection import ClusterConnection, on_connection
from joulie.cli.context import close_to, near_misses
from joulie.cli.installation.operator_lease import operator_leases
from joulie.cli.live import server_now_s
from joulie.cli.options import ObjectSource
from joulie.cluster.decoding.decoders import decode_budget
from joulie.cluster.port import NODES, POWER_BUDGETS, ConflictError, NotFoundError
from joulie.errors import InputError, JoulieError
from joulie.model.api import PowerBudget
from joulie.model.names import FORGET_ANNOTATION, PAUSED_ANNOTATION

Say = Callable[[str], Any]
ATTEMPTS = 5  # another client may write the same budget at the same moment
COUNTS_FOR = "10 minutes"  # a deleted node counts for so long


def set_paused(source: ObjectSource, name: str | None, every: bool, paused: bool, say: Say) -> dict[str, Any]:
    """Pauses one budget or all of them, or lets them go on; `takesEffect` tells whether an operator will notice."""

    async def work(connection: ClusterConnection) -> dict[str, Any]:
        chosen = _chosen(await _budgets(connection), name, every, "pause" if paused else "resume")
        changed = [one for one in chosen if _is_paused(one) != paused]
        for one in changed:
            await _annotate(connection, one, PAUSED_ANNOTATION, lambda _: "true" if paused else None)
        word = "paused" if paused else "resumed"
        for one in chosen:
            already = "" if one in changed else " already: nothing was changed"
            say(f"PowerBudget/{one.metadata.name} is {word}{already}")
        if changed and paused:
            say("nodes under it keep what they have: nothing is raised, cuts go on; to end it: joulie resume")
        elif changed:
            say("watts are shared again with the operator's next turn")
        led = await _is_led(connection, say)
        return {"budgets": [one.metadata.name for one in chosen], "paused": paused, "takesEffect": led}

    return on_connection(source.kubeconfig, source.context, work)


def forget(source: ObjectSource, node: str, yes: bool, say: Say) -> dict[str, Any]:
    """Frees the watts of a node that was deleted, in every budget."""

    async def work(connection: ClusterConnection) -> dict[str, Any]:
        if await _exists(connection, node):
            said = f"node {node!r} is in the cluster and counts for as long as it is"
            raise InputError(f"{said}; to take it out of a budget, change its labels or delete it first")
        budgets = await _budgets(connection)
        if not budgets:
            raise InputError("there is no PowerBudget, so there is nothing to forget a node in")
        if not yes:
            said = f"pass --yes if {node} is switched off or unplugged"
            raise InputError(f"{said}: its watts go to others, and if it still draws power, limits are exceeded")
        known = await _known(connection, [one for budget in budgets for one in _named(budget)])
        for budget in budgets:
            await _annotate(
                connection, budget, FORGET_ANNOTATION, lambda one: ",".join(sorted({*_named(one), node} - known))
            )
        names = [one.metadata.name for one in budgets]
        say(f"{node} no longer counts in {', '.join(names)}")
        say(f"without this a deleted node counts for {COUNTS_FOR}, because it may still draw power")
        led = await _is_led(connection, say)
        return {"node": node, "budgets": names, "takesEffect": led}

    return on_connection(source.kubeconfig, source.context, work)


def _named(budget: PowerBudget) -> list[str]:
    text = (budget.metadata.annotations or {}).get(FORGET_ANNOTATION, "")
    return [name for name in (part.strip() for part in text.split(",")) if name]


async def _known(connection: ClusterConnection, names: Sequence[str]) -> set[str]:
    """Nodes that came back: the next time that they are deleted they must count again."""
    return {name for name in set(names) if await _exists(connection, name)}


async def _exists(connection: ClusterConnection, node: str) -> bool:
    try:
        await connection.cluster.get(NODES, node)
    except NotFoundError:
        return False
    return True


def _is_paused(budget: PowerBudget) -> bool:
    return (budget.metadata.annotations or {}).get(PAUSED_ANNOTATION) == "true"


async def _budgets(connection: ClusterConnection) -> list[PowerBudget]:
    bodies = await connection.list_if_served(POWER_BUDGETS)
    if bodies is None:
        raise JoulieError("the cluster does not know PowerBudgets; to install them: joulie crds | kubectl apply -f -")
    found = []
    for body in bodies:
        try:
            found.append(decode_budget(bytes(body)))
        except ValueError:  # `doctor` names it
            continue
    return sorted(found, key=lambda one: one.metadata.name)


def _chosen(budgets: Sequence[PowerBudget], name: str | None, every: bool, verb: str) -> list[PowerBudget]:
    if name is not None and every:
        raise InputError("pass a budget or --all, not both")
    if not budgets:
        raise InputError(f"there is no PowerBudget to {verb}")
    names = [one.metadata.name for one in budgets]
    if name is not None:
        if name not in names:
            raise InputError(f"there is no PowerBudget {name!r}{close_to(near_misses(name, names))}")
        return [one for one in budgets if one.metadata.name == name]
    if not every and len(budgets) > 1:
        raise InputError(f"say which budget to {verb}, or pass --all; there are {', '.join(names)}")
    return list(budgets)


async def _annotate(
    connection: ClusterConnection, budget: PowerBudget, key: str, value: Callable[[PowerBudget], str | None]
) -> None:
    """Sets or removes one annotation on the budget as it is now; only a write from elsewhere can come in between."""
    name, now = budget.metadata.name, budget
    for attempt in range(ATTEMPTS):
        metadata: Mapping[str, Any] = {
            "annotations": {key: value(now) or None},
            "resourceVersion": now.metadata.resource_version,
        }
        try:
            await connection.cluster.patch(POWER_BUDGETS, name, {"metadata": metadata})
            return
        except ConflictError:
            if attempt == ATTEMPTS - 1:
                raise
            now = decode_budget(await connection.cluster.get(POWER_BUDGETS, name))


async def _is_led(connection: ClusterConnection, say: Say) -> bool:
    """Whether an operator reads it, as far as can be seen."""
    leases = await operator_leases(connection)
    if leases is None or any(lease.leads(server_now_s(connection)) for lease in leases):
        return True
    say("no operator leads, so nothing happens before one does: joulie doctor")
    return False

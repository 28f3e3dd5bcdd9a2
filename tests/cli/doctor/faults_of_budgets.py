"""What can be wrong with power budgets, as their statuses and the twins of their nodes tell it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from tests.agent.chain import JOULIE
from tests.cli.doctor.faults import NODE, TWINS, Plant, Planted
from tests.cli.installation import NODES, Installation, Object, micro
from tests.support.rights import NAMESPACE

RACK = "joulie.io/rack"
HOLDS = [{"type": "Feasible", "status": "True", "reason": "Feasible", "message": "every group can be held"}]


def unclear(reason: str, message: str) -> list[Object]:
    return [{"type": "Feasible", "status": "False", "reason": reason, "message": message}]


def group(**more: Any) -> Object:
    told = {"nodes": NODES, "limitWatts": 9000, "allocatedWatts": 8800, "floorWatts": 3000, "measuredWatts": 4000}
    return {"value": "", "state": "within", "reason": "set by its spec", **told, **more}


def budget(name: str = "feed", annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    metadata = {"name": name, "annotations": annotations or {}}
    body = {"watts": 9000, **spec}
    return {"apiVersion": "joulie.io/v1alpha1", "kind": "PowerBudget", "metadata": metadata, "spec": body}


def lease(renewed_s: float) -> Object:
    metadata = {"name": "joulie-budget", "namespace": NAMESPACE}
    spec = {"holderIdentity": "operator-0", "leaseDurationSeconds": 15, "renewTime": micro(renewed_s)}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def limited(
    *groups: Object,
    conditions: Sequence[Object] = HOLDS,
    renewed_ago_s: float | None = 1.0,
    seen: bool = True,
    also: Sequence[Object] = (),
    **made: Any,
) -> Plant:
    """A budget that the operator has reported so, with others beside it."""

    @contextmanager
    def plant(there: Installation) -> Iterator[None]:
        wanted = [budget(**made), *also]
        leases = [] if renewed_ago_s is None else [lease(time.time() - renewed_ago_s)]
        with there.added(*wanted, *leases):
            for one in wanted if seen else ():
                path = f"{JOULIE}/powerbudgets/{one['metadata']['name']}"
                generation = there.plane.api.get(path)["metadata"]["generation"]
                told = list(groups) if one is wanted[0] else [group(limitWatts=one["spec"]["watts"])]
                status = {"observedGeneration": generation, "groups": told, "conditions": list(conditions)}
                there.plane.api.patch(f"{path}/status", {"status": status})
            yield

    return plant


def ordered(there: Installation) -> ExitStack:
    """A node that follows an order, and whose devices hold nothing in watts."""
    with ExitStack() as ends:
        order = {"order": 3, "caps": {"cpuWattsPerPackage": 200}, "groups": ["feed"], "reason": "1,000 W"}
        told = {"twinUid": "u", "order": 3, "bootId": "b", "session": 1, "sequence": 1}
        ends.enter_context(there.changed(f"{TWINS}/{NODE}", {"spec": {"budget": order}}))
        ends.enter_context(there.changed(f"{TWINS}/{NODE}", {"status": {"controlStatus": {"budget": told}}}, "/status"))
        return ends.pop_all()


@contextmanager
def a_node_confirms_no_watts(there: Installation) -> Iterator[None]:
    with limited(group())(there), ordered(there):
        yield


@contextmanager
def a_node_waits_for_its_cap(there: Installation) -> Iterator[None]:
    taint = {"key": "joulie.io/uncapped", "effect": "NoSchedule"}
    with there.changed(f"/api/v1/nodes/{NODE}", {"spec": {"taints": [taint]}}):
        yield


ZONE = "spec.windows[0].timeZone: Mars/Base is not known, so the window holds at all times"
BUDGETS = {
    "a limit below the floors": Planted(
        limited(group(state="infeasible", reason="300 W are missing for the floors of its nodes")),
        "budget-infeasible",
        "fault",
        "300 W are missing",
    ),
    "a group that draws too much": Planted(
        limited(group(measuredWatts=9100)), "budget-exceeded", "fault", "draws 9,100 W, more than its limit of 9,000 W"
    ),
    "a group that may draw too much": Planted(
        limited(group(state="exceeded", reason="no confirmed cap on n1")), "budget-exceeded", "fault", "may exceed"
    ),
    "a group with nothing left": Planted(
        limited(group(measuredWatts=8700)), "budget-nearly-exhausted", "warning", "97 % of its limit"
    ),
    "a budget without an answer": Planted(limited(seen=False), "budget-unanswered", "warning", "PowerBudget/feed"),
    "nodes in no group": Planted(
        limited(
            conditions=unclear("Unclear", "nodes without the label no.such/label count nowhere: a, b"),
            groupBy="no.such/label",
        ),
        "budget-unlabelled",
        "warning",
        f"{NODES} nodes in no group",
    ),
    "an unknown maximum": Planted(
        limited(
            group(), conditions=unclear("MaximumUnknown", "label with joulie.io/max-watts what these nodes draw: a")
        ),
        "budget-maximum-unknown",
        "warning",
        "joulie.io/max-watts",
    ),
    "an unknown time zone": Planted(
        limited(group(), conditions=unclear("Unclear", ZONE)), "budget-unclear", "warning", "Mars/Base"
    ),
    "a lost signal": Planted(
        limited(group(reason="set by its signal, which is lost")), "budget-signal-lost", "warning", "lost its signal"
    ),
    "a node that waits for its cap": Planted(
        a_node_waits_for_its_cap, "budget-uncapped", "hint", "takes no pods before a power cap is confirmed"
    ),
    "a lost meter": Planted(
        limited(group(meter={"lost": "the query has no fresh finite value"})),
        "budget-meter-lost",
        "warning",
        "no fresh finite value",
    ),
    "a node that confirms no watts": Planted(
        a_node_confirms_no_watts, "budget-unconfirmed", "warning", "hold no cap in watts"
    ),
    "two limits for the same nodes": Planted(
        limited(group(), also=[budget("hall", watts=7000)]), "budget-conflict", "warning", "only the lower limit counts"
    ),
    "a budget lease that is not renewed": Planted(
        limited(group(), renewed_ago_s=300), "budget-lease", "fault", "was not renewed for 5 min"
    ),
    "no budget lease": Planted(limited(group(), renewed_ago_s=None), "budget-lease", "fault", "there is no Lease"),
    "a paused budget": Planted(
        limited(group(), annotations={"joulie.io/paused": "true"}), "budget-paused", "hint", "is paused", follow=True
    ),
    "a forgotten node that came back": Planted(
        limited(group(), annotations={"joulie.io/forget": NODE}), "budget-forget", "warning", NODE, follow=True
    ),
}

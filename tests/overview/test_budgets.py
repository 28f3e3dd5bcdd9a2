"""Budgets as people see them: a tree that agrees with the operator's status, and what needs attention in it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from joulie.control.budget.limits.in_force import limit_in_force
from joulie.model.api import NodeTwin, PowerBudget, PowerBudgetSpec
from joulie.model.snapshot import Node, Snapshot
from joulie.overview.budget_findings import LOST, budget_findings
from joulie.overview.budgets import BudgetView, budget_views
from joulie.overview.findings import FindingThresholds
from joulie.overview.nodes import node_views
from joulie.overview.summary import Facts, cluster_view
from joulie.settings import DecisionSettings, load

NOW_S = 1_760_000_000.0
RACK = "joulie.io/rack"
NODES = {name: Node(name, {RACK: rack, "joulie.io/managed": "true"}) for name, rack in (("a", "r1"), ("b", "r2"))}


def group(value: str = "r1", **more: Any) -> dict[str, Any]:
    told = {"nodes": 1, "limitWatts": 1000, "allocatedWatts": 900, "floorWatts": 300, "measuredWatts": 500}
    return {"value": value, "state": "within", "reason": "set by its spec", **told, **more}


def budget(
    name: str = "racks",
    *groups: dict[str, Any],
    spec: dict[str, Any] | None = None,
    conditions: dict[str, tuple[str, str, str]] | None = None,
    annotations: dict[str, str] | None = None,
    observed: int | None = 1,
) -> PowerBudget:
    said = [
        {"type": kind, "status": status, "reason": reason, "message": message}
        for kind, (status, reason, message) in (conditions or {}).items()
    ]
    status = {"observedGeneration": observed, "groups": list(groups), "conditions": said}
    return msgspec.convert(
        {
            "metadata": {"name": name, "generation": 1, "annotations": annotations or {}},
            "spec": {"watts": 1000, "groupBy": RACK, **(spec or {})},
            **({} if observed is None else {"status": status}),
        },
        PowerBudget,
    )


def seen(*budgets: PowerBudget, nodes: dict[str, Node] | None = None) -> tuple[BudgetView, ...]:
    known = NODES if nodes is None else nodes
    return budget_views(budgets, known, known)


def kinds(*budgets: PowerBudget, **more: Any) -> list[str]:
    return [finding.kind for finding in budget_findings(seen(*budgets, **more))]


def test_a_budget_that_holds_needs_no_attention() -> None:
    assert kinds(budget("racks", group("r1"), group("r2"))) == []


def test_the_tree_has_the_numbers_of_the_status() -> None:
    (view,) = seen(budget("racks", group("r1"), group("r2", state="settling", reason="no confirmed cap on b")))
    assert [one.name for one in view.groups] == ["racks/r1", "racks/r2"]
    first, second = view.groups
    assert (first.limit_w, first.allocated_w, first.measured_w, first.floor_w) == (1000, 900, 500, 300)
    assert (second.state, second.reason) == ("settling", "no confirmed cap on b")


def test_a_limit_that_the_operator_has_not_seen_is_shown_at_once() -> None:
    (view,) = seen(budget("racks", group("r1"), spec={"watts": 700}, observed=0))
    first, second = view.groups
    assert (first.limit_w, first.asked_w, first.state) == (1000, 700, "unseen")
    assert "700 W are asked for now" in first.reason
    assert (second.name, second.state, second.allocated_w) == ("racks/r2", "unseen", None)
    assert kinds(budget("racks", observed=None)) == ["budget-unanswered"]


def test_a_groups_own_limit_is_what_its_spec_asks_for() -> None:
    (view,) = seen(budget("racks", spec={"groups": [{"value": "r2", "watts": 400}]}, observed=None))
    assert [one.asked_w for one in view.groups] == [1000, 400]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"state": "infeasible", "reason": "50 W are missing for the floors of its nodes"}, ["budget-infeasible"]),
        ({"measuredWatts": 1001}, ["budget-exceeded"]),
        ({"state": "exceeded", "reason": "its nodes may draw 20 W more than 1,000 W"}, ["budget-exceeded"]),
        ({"state": "reported", "measuredWatts": 1001}, ["budget-exceeded"]),
        ({"measuredWatts": 960}, ["budget-nearly-exhausted"]),
        ({"floorWatts": 980}, ["budget-nearly-exhausted"]),
        ({"state": "reported", "measuredWatts": 960}, []),
        ({"allocatedWatts": 1000}, []),  # watts that are not needed are room for bursts
        ({"state": "settling"}, []),
        ({"meter": {"lost": "no answer"}}, ["budget-meter-lost"]),
        ({"meter": {"share": 0.9, "watts": 500}}, []),
    ],
)
def test_a_group_in_trouble_is_named_with_the_gravest_reason(told: dict[str, Any], expected: list[str]) -> None:
    assert kinds(budget("racks", group("r1", **told), group("r2"))) == expected


def test_nodes_in_no_group_are_counted_and_named() -> None:
    nodes = NODES | {name: Node(name, {}) for name in "cdefg"}
    said = ("False", "Unclear", f"nodes without the label {RACK} count nowhere: c, d, e and 2 more")
    (finding,) = budget_findings(seen(budget("racks", group("r1"), conditions={"Feasible": said}), nodes=nodes))
    assert finding.kind == "budget-unlabelled"
    assert "5 nodes in no group" in finding.text
    assert "c, d, e, …" in finding.text


def test_each_problem_of_the_spec_is_a_finding_of_its_own() -> None:
    zone = "spec.windows[0].timeZone: Mars/Base is not known, so the window holds at all times"
    said = ("False", "Unclear", f"{zone}; spec.groups: no node has {RACK}=r9")
    found = list(budget_findings(seen(budget("racks", group("r1"), conditions={"Feasible": said}))))
    assert [one.kind for one in found] == ["budget-unclear"] * 2
    assert zone in found[0].text
    unknown = ("False", "MaximumUnknown", "label with joulie.io/max-watts what these nodes draw at most: a")
    assert kinds(budget("racks", conditions={"Feasible": unknown})) == ["budget-maximum-unknown"]


@pytest.mark.parametrize("source", [{"query": "price"}, {"forecast": {"configMap": "a/b", "key": "c"}}])
def test_a_lost_signal_is_noticed_by_the_words_of_the_limit(source: dict[str, Any]) -> None:
    spec = msgspec.convert({"watts": 1000, "signal": {**source, "at": [{"value": 1, "watts": 500}]}}, PowerBudgetSpec)
    limit = limit_in_force(spec, 1000, NOW_S, {})
    assert limit.watts == 500
    assert any(words in limit.why for words in LOST)
    assert kinds(budget("racks", group("r1", reason=f"set by {limit.why}"))) == ["budget-signal-lost"]


def test_a_paused_budget_is_a_hint_and_does_not_ask_for_attention() -> None:
    paused = budget("racks", group("r1"), annotations={"joulie.io/paused": "true"})
    assert [one.severity for one in budget_findings(seen(paused))] == ["hint"]
    assert cluster_view((), Facts(), NOW_S, FindingThresholds(), budgets=seen(paused)).attention == ()


def test_caps_allow_no_more_than_the_budgets_order_on_the_node() -> None:
    order = {
        "order": 3,
        "caps": {"cpuWattsPerPackage": 150},
        "groups": ["racks/r1"],
        "reason": "300 W: racks/r1 is shared out (1,000 W)",
    }
    confirmed = {"twinUid": "u", "order": 3, "bootId": "b", "session": 1, "sequence": 1}
    twin = msgspec.convert(
        {
            "metadata": {"name": "a"},
            "spec": {
                "nodeName": "a",
                "profile": "performance",
                "cpu": {"packagePowerCapPctOfMax": 100},
                "budget": order,
            },
            "status": {
                "powerMeasurement": {"nodeCappedPowerW": 800, "nodeTdpW": 800},
                "controlStatus": {"budget": {**confirmed, "held": {"cpuWattsPerPackage": 150}}},
            },
        },
        NodeTwin,
    )
    nodes = {"a": Node("a", {**NODES["a"].labels, "joulie.io/hw.cpu-sockets": "2"})}
    settings = load(DecisionSettings, {}).plan
    view = node_views(Snapshot(nodes, twins={"a": twin}), settings, NOW_S)["a"]
    assert (view.capped_w, view.budget_w, view.budget_cpu_w) == (300, 300, 150)
    assert view.budget_is_confirmed
    assert view.budget_groups == ("racks/r1",)
    assert cluster_view([view], Facts(), NOW_S, FindingThresholds()).capped_w == 300


def test_of_the_limits_over_everything_the_lowest_is_the_clusters() -> None:
    whole = [
        budget(name, group("", limitWatts=watts, nodes=2), spec={"groupBy": None})
        for name, watts in (("f", 9), ("g", 5))
    ]
    views = node_views(Snapshot(NODES), load(DecisionSettings, {}).plan, NOW_S).values()
    cluster = cluster_view(
        views, Facts(), NOW_S, FindingThresholds(), budgets=seen(*whole, budget("racks", group("r1")))
    )
    assert cluster.tightest is not None
    assert (cluster.tightest.name, cluster.tightest.limit_w) == ("g", 5)

"""Which nodes a budget is for, in which group each counts, and what a person is told to mend."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from joulie.control.budget.groups import BudgetGroup, Readings, budget_groups
from joulie.control.budget.limits.meters import Meter
from joulie.model.api.budget import PowerBudget
from joulie.model.snapshot import Node

READINGS = Readings(zones={}, signals={}, meters={})
IN_R2 = {"key": "joulie.io/rack", "operator": "In", "values": ["r2"]}
NODES = [
    Node("a", {"joulie.io/rack": "r1", "pool": "gpu"}),
    Node("b", {"joulie.io/rack": "r2", "pool": "gpu"}),
    Node("c", {"joulie.io/rack": "r2", "pool": "cpu"}, unschedulable=True),
    Node("d", {"pool": "cpu"}),
]


def budget(**spec: Any) -> PowerBudget:
    return msgspec.convert({"metadata": {"name": "feed"}, "spec": {"watts": 12_000, **spec}}, PowerBudget)


def found(readings: Readings = READINGS, **spec: Any) -> tuple[dict[str, BudgetGroup], list[str]]:
    groups, problems = budget_groups(budget(**spec), NODES, 0.0, readings)
    return {group.name: group for group in groups}, problems


def test_without_a_label_to_group_by_all_nodes_are_one_group_cordoned_ones_too() -> None:
    groups, problems = found()
    assert {name: group.nodes for name, group in groups.items()} == {"feed": ("a", "b", "c", "d")}
    assert (groups["feed"].limit.limit_w, groups["feed"].is_enforced, problems) == (12_000, True, [])


def test_each_value_of_a_label_is_a_group_and_nodes_without_it_are_named() -> None:
    groups, problems = found(groupBy="joulie.io/rack", groups=[{"value": "r2", "watts": 9_000, "mode": "report"}])
    assert {name: group.nodes for name, group in groups.items()} == {"feed/r1": ("a",), "feed/r2": ("b", "c")}
    assert [(group.limit.limit_w, group.is_enforced) for group in groups.values()] == [(12_000, True), (9_000, False)]
    assert problems == ["nodes without the label joulie.io/rack count nowhere: d"]


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ({"matchLabels": {"pool": "gpu"}}, ("a", "b")),
        ({"matchExpressions": [{"key": "joulie.io/rack", "operator": "DoesNotExist"}]}, ("d",)),
        ({"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["gpu"]}]}, ("c", "d")),
        (
            {
                "matchLabels": {"pool": "gpu"},
                "matchExpressions": [{"key": "joulie.io/rack", "operator": "In", "values": ["r2"]}],
            },
            ("b",),
        ),
        ({}, ("a", "b", "c", "d")),
    ],
)
def test_a_selector_takes_what_kubernetes_would(selector: dict[str, Any], names: tuple[str, ...]) -> None:
    groups, _ = found(nodeSelector=selector)
    assert groups["feed"].nodes == names


def test_a_feed_that_may_carry_all_after_a_failure_counts_all() -> None:
    groups, _ = found(share=0.5, failoverShare=1, reserveWatts=300, restartReserve=0, restWattsPerNode=80)
    limit = groups["feed"].limit
    assert (limit.share, limit.reserve_w, limit.restarts, limit.rest_w_per_node) == (1, 300, 0, 80)
    assert found(share=0.5)[0]["feed"].limit.share == 0.5


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"nodeSelector": {"matchLabels": {"pool": "none"}}}, "spec.nodeSelector takes no node"),
        ({"groups": [{"value": "r1"}]}, "spec.groups means nothing without spec.groupBy"),
        ({"groupBy": "pool", "groups": [{"value": "arm"}]}, "spec.groups: no node has pool=arm"),
        (
            {"groupBy": "pool", "groups": [{"value": "cpu"}, {"value": "cpu"}]},
            "spec.groups names cpu more than once; the first counts",
        ),
        (
            {"windows": [{"from": "07:00", "to": "07:00", "watts": 1}]},
            "spec.windows[0]: from and to are the same, so it holds all day",
        ),
        (
            {"windows": [{"from": "07:00", "to": "08:00", "watts": 1, "timeZone": "Mars/Base"}]},
            "spec.windows[0].timeZone: Mars/Base is not known, so the window holds at all times",
        ),
        (
            {"signal": {"at": [{"value": 1, "watts": 1}]}},
            "spec.signal needs either query or forecast; its lowest limit holds",
        ),
        (
            {"nodeSelector": {"matchExpressions": [{"key": "pool", "operator": "Exists", "values": ["gpu"]}]}},
            "spec.nodeSelector.matchExpressions[0]: Exists takes no values",
        ),
    ],
)
def test_what_the_schema_cannot_refuse_is_said_with_the_field_to_change(spec: dict[str, Any], problem: str) -> None:
    assert problem in found(**spec)[1]


def test_a_meter_lowers_what_caps_of_its_own_group_may_add_up_to() -> None:
    meters = {"feed": Meter(share=0.9)}
    metered, _ = found(Readings({}, {}, meters), meter={"query": "x"})
    assert (metered["feed"].limit.limit_w, metered["feed"].limit_w) == (10_800, 12_000)
    without, _ = found(Readings({}, {}, meters))
    assert (without["feed"].limit.limit_w, without["feed"].limit_w, without["feed"].meter) == (12_000, 12_000, None)

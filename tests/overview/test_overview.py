"""What people see of a cluster follows from its objects alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from joulie.model.api import NodeTwin
from joulie.model.rfc3339 import format_time
from joulie.model.snapshot import Node, Pin, Pod, Snapshot
from joulie.overview.findings import FindingThresholds, age, enforced, findings
from joulie.overview.nodes import NodeOverview, node_views
from joulie.overview.summary import Facts, cluster_view
from joulie.settings import DecisionSettings, load

NOW_S = 1_760_000_000.0
SETTINGS = load(DecisionSettings, {}).plan
LIMITS = FindingThresholds()


def twin(
    name: str, *, age_s: float = 10, result: str | None = "applied", said_s: float = 20, **status: Any
) -> NodeTwin:
    said = {"result": result, "backend": "rapl", "message": "locked", "updatedAt": format_time(NOW_S - said_s)}
    body = {
        "metadata": {"name": name},
        "spec": {
            "nodeName": name,
            "profile": "eco",
            "cpu": {"packagePowerCapPctOfMax": 60},
            "policy": {"name": "static_partition"},
        },
        "status": {
            "schedulableClass": "eco",
            "powerMeasurement": {"source": "http", "measuredNodePowerW": 400, "nodeCappedPowerW": 480},
            "lastUpdated": format_time(NOW_S - age_s),
            **({} if result is None else {"controlStatus": {"cpu": said}}),
            **status,
        },
    }
    return msgspec.convert(body, NodeTwin)


def node(name: str, rack: str = "", *, managed: bool = True, **more: Any) -> Node:
    labels = {"joulie.io/managed": "true"} if managed else {}
    return Node(name, labels | ({"joulie.io/rack": rack} if rack else {}), **more)


def seen(*twins: NodeTwin, nodes: tuple[Node, ...] = (), **more: Any) -> dict[str, NodeOverview]:
    known = {one.name: one for one in nodes or [node(twin.node) for twin in twins]}
    return node_views(Snapshot(known, twins={one.node: one for one in twins}, **more), SETTINGS, NOW_S)


def kinds(views: dict[str, NodeOverview]) -> list[str]:
    return [finding.kind for finding in findings(views.values(), NOW_S, LIMITS)]


def test_a_healthy_node_needs_no_attention() -> None:
    views = seen(twin("a"))
    assert kinds(views) == []
    assert enforced(views["a"], NOW_S, LIMITS) == "yes"


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"age_s": 301}, "twin-stale"),
        ({"lastUpdated": "yesterday"}, "twin-stale"),
        ({"result": None}, "agent-silent"),
        ({"said_s": 400}, "agent-silent"),
        ({"result": "blocked"}, "not-enforced"),
        ({"result": "error"}, "not-enforced"),
        ({"predictedCoolingStressScore": 85}, "hot"),
    ],
)
def test_each_fault_is_found_and_named(changed: dict[str, Any], kind: str) -> None:
    assert kinds(seen(twin("a", **changed))) == [kind]


def test_what_load_does_to_many_nodes_is_said_once() -> None:
    nodes = tuple(node(f"n{number}", "rack-1") for number in range(9))
    hot: dict[str, Any] = {"predictedCoolingStressScore": 90, "predictedPsuStressScore": 95}
    views = seen(*(twin(one.name, **hot) for one in nodes), nodes=nodes)
    found = findings(views.values(), NOW_S, LIMITS)
    assert [(one.kind, one.text) for one in found] == [
        ("hot", "9 nodes have a cooling stress of 80 % or more: n0, n1, n2, …"),
        ("rack-full", "rack rack-1 draws 95 % of its capacity"),
    ]


def test_a_managed_node_without_twin_is_said_and_an_unmanaged_one_is_not() -> None:
    assert kinds(seen(nodes=(node("a"), node("b", managed=False)))) == ["twin-missing"]


def test_a_pin_is_seen_before_it_has_taken_effect() -> None:
    view = seen(twin("a"), pins=[Pin("hold", "a", "performance", expires_at_s=NOW_S + 60)])["a"]
    assert (view.pin, view.pin_profile, view.pin_waits) == ("hold", "performance", True)
    assert seen(twin("a"), pins=[Pin("hold", "a", "performance", expires_at_s=NOW_S)])["a"].pin == ""


def test_sums_count_managed_nodes_alone_and_racks_come_in_the_order_people_count() -> None:
    nodes = (node("a", "rack-10"), node("b", "rack-2"), node("c"), node("d", "rack-2", managed=False))
    views = seen(*(twin(one.name) for one in nodes), nodes=nodes, pods=[Pod("x", "p", "a", "performance")])
    cluster = cluster_view(views.values(), Facts(budget_w=2000.0), NOW_S, LIMITS)
    assert (cluster.nodes, cluster.unmanaged, cluster.power_w, cluster.enforced) == (3, 1, 1200.0, 3)
    assert [rack.name for rack in cluster.racks] == ["rack-2", "rack-10", ""]
    assert cluster.states == {"performance": 0, "eco": 3, "draining": 0, "unknown": 0}
    assert views["a"].performance_pods == 1


@pytest.mark.parametrize(
    ("seconds", "said"), [(-3, "0 s"), (119, "119 s"), (360, "6 min"), (7200, "2 h"), (3e5, "3 days")]
)
def test_ages_are_said_as_people_remember_them(seconds: float, said: str) -> None:
    assert age(seconds) == said


def test_views_encode_to_json_as_they_are() -> None:
    views = seen(twin("a"))
    cluster = cluster_view(views.values(), Facts(), NOW_S, LIMITS)
    assert msgspec.json.decode(msgspec.json.encode(cluster))["powerW"] == 400
    assert msgspec.json.decode(msgspec.json.encode(views["a"]))["cpuControl"]["result"] == "applied"

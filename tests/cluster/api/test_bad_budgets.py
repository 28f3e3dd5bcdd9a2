"""Budgets that cannot be meant: the API server refuses them by the schema, and names the field."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from testbed.api import ApiError
from tests.support.cli_runner import DEMO, NOW, joulie

if TYPE_CHECKING:
    from pathlib import Path

    from testbed.control_plane import ControlPlane

BUDGETS = "/apis/joulie.io/v1alpha1/powerbudgets"
POINT = {"value": 100, "watts": 8000}
WINDOW = {"from": "17:00", "to": "21:00", "watts": 8000}


def budget(**spec: Any) -> dict[str, Any]:
    body = {"watts": 9000, **spec}
    return {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "PowerBudget",
        "metadata": {"name": "bad"},
        "spec": {key: value for key, value in body.items() if value is not None},
    }


def expression(**more: Any) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "a", **more}]}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a limit of zero": ({"watts": 0}, "spec.watts"),
    "a negative limit": ({"watts": -5}, "spec.watts"),
    "a limit in words": ({"watts": "8 kW"}, "spec.watts"),
    "a limit beyond reason": ({"watts": 1e13}, "spec.watts"),
    "no limit": ({"watts": None}, "spec.watts"),
    "groups of nothing": ({"groups": [{"value": "r1", "watts": 5}]}, "groups needs groupBy"),
    "a group named twice": (
        {"groupBy": "rack", "groups": [{"value": "r1", "watts": 5}, {"value": "r1", "watts": 6}]},
        "spec.groups[1]",
    ),
    "a group's limit of zero": ({"groupBy": "rack", "groups": [{"value": "r1", "watts": 0}]}, "spec.groups[0].watts"),
    "a label that cannot be one": ({"groupBy": "not a label!"}, "spec.groupBy"),
    "an operator that is none": ({"nodeSelector": expression(operator="Near")}, "matchExpressions[0].operator"),
    "In without values": ({"nodeSelector": expression(operator="In")}, "In and NotIn need values"),
    "Exists with values": ({"nodeSelector": expression(operator="Exists", values=["x"])}, "take none"),
    "an hour that is none": ({"windows": [WINDOW | {"from": "25:00"}]}, "spec.windows[0].from"),
    "a day that is none": ({"windows": [WINDOW | {"days": ["Freitag"]}]}, "spec.windows[0].days[0]"),
    "a window without length": ({"windows": [WINDOW | {"to": "17:00"}]}, "spec.windows[0]"),
    "a window of no watts": ({"windows": [WINDOW | {"watts": 0}]}, "spec.windows[0].watts"),
    "a time zone that is a path": (
        {"windows": [WINDOW | {"timeZone": "../../etc/passwd"}]},
        "spec.windows[0].timeZone",
    ),
    "a signal from nowhere": ({"signal": {"at": [POINT]}}, "give either query or forecast"),
    "a signal from two places": (
        {"signal": {"at": [POINT], "query": "a", "forecast": {"configMap": "a/b", "key": "c"}}},
        "give either query or forecast",
    ),
    "a signal without limits": ({"signal": {"at": [], "query": "a"}}, "spec.signal.at"),
    "a forecast without a namespace": (
        {"signal": {"at": [POINT], "forecast": {"configMap": "prices", "key": "c"}}},
        "spec.signal.forecast.configMap",
    ),
    "a share of nothing": ({"share": 0}, "spec.share"),
    "more than all of a node": ({"share": 1.5}, "spec.share"),
    "less when the other feed is lost": ({"share": 0.5, "failoverShare": 0.4}, "failoverShare is at least share"),
    "half a restart": ({"restartReserve": 0.5}, "spec.restartReserve"),
    "a negative reserve": ({"reserveWatts": -1}, "spec.reserveWatts"),
    "a mode that is none": ({"mode": "maybe"}, "spec.mode"),
    "a meter that asks nothing": ({"meter": {"query": ""}}, "spec.meter.query"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_the_api_server_refuses_and_names_the_field(what: str, control_plane: ControlPlane) -> None:
    spec, field = REFUSED[what]
    with pytest.raises(ApiError) as refused:
        control_plane.api.post(f"{BUDGETS}?dryRun=All", budget(**spec))
    assert refused.value.status == 422, refused.value
    assert field in str(refused.value)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_no_json_either(number: float, control_plane: ControlPlane) -> None:
    with pytest.raises(ApiError) as refused:
        control_plane.api.post(f"{BUDGETS}?dryRun=All", budget(watts=number))
    assert refused.value.status == 400


def test_a_budget_with_everything_is_taken(control_plane: ControlPlane) -> None:
    whole = budget(
        nodeSelector={"matchLabels": {"pool": "gpu"}, **expression(operator="NotIn", values=["x"])},
        groupBy="joulie.io/rack",
        groups=[{"value": "r7", "watts": 9000, "mode": "report"}],
        windows=[WINDOW | {"days": ["Mon", "Fri"], "timeZone": "America/Argentina/Buenos_Aires"}],
        signal={"at": [POINT], "forecast": {"configMap": "ops/prices", "key": "tomorrow.csv"}},
        meter={"query": 'rack_watts{rack="{group}"}'},
        share=0.5,
        failoverShare=1,
        restartReserve=0,
    )
    assert control_plane.api.post(f"{BUDGETS}?dryRun=All", whole)["spec"] == whole["spec"]


# What no schema can know: taken, never believed to lift a limit, and said with the field to change.
UNCLEAR: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown time zone": (
        {"windows": [WINDOW | {"timeZone": "Mars/Base", "watts": 25500}]},
        "spec.windows[0].timeZone: Mars/Base",
    ),
    "a group that is not there": (
        {"groupBy": "joulie.io/rack", "groups": [{"value": "z", "watts": 9}]},
        "spec.groups: no node has joulie.io/rack=z",
    ),
    "a selector that takes nothing": (
        {"nodeSelector": {"matchLabels": {"no": "such"}}},
        "spec.nodeSelector takes no node",
    ),
    "a label that no node has": ({"groupBy": "no.such/label"}, "nodes without the label no.such/label"),
    "a limit below the floors": ({"watts": 50}, "W are missing for the floors of its nodes"),
}


@pytest.mark.parametrize("what", UNCLEAR)
def test_a_condition_says_which_line_to_change_and_no_cap_leaves_its_range(what: str, tmp_path: Path) -> None:
    spec, said = UNCLEAR[what]
    file = tmp_path / "budget.json"
    file.write_text(json.dumps(budget(**({"watts": 26000} | spec))))
    files = ("-f", DEMO, "-f", str(file), *NOW)
    document = joulie("budget", *files, "-o", "json").document
    (found,) = document["budgets"]
    assert found["feasible"] == "False"
    assert any(said in line for line in found["unclear"]), found
    for node in document["nodes"]:
        if node["capW"] is not None:
            assert 0 < node["capW"] <= node["maxW"]


def test_windows_and_budgets_that_overlap_mean_the_lowest_limit(tmp_path: Path) -> None:
    early, late = WINDOW | {"from": "00:01", "to": "00:00"}, WINDOW | {"from": "00:00", "to": "23:59", "watts": 25500}
    first = budget(watts=27000, windows=[early | {"watts": 26000}, late])
    second = budget(watts=26500)
    second["metadata"] = {"name": "other"}
    file = tmp_path / "budgets.json"
    file.write_text(json.dumps([first, second]))
    document = joulie("budget", "-f", DEMO, "-f", str(file), *NOW, "-o", "json").document
    bad, other = document["budgets"]
    assert bad["groups"][0]["limitW"] == 25500
    assert other["groups"][0]["allocatedW"] <= 25500

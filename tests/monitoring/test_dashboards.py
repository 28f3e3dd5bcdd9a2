"""The dashboards are those of the code, Grafana's own model takes them, and every panel explains itself."""

from __future__ import annotations

import json
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.monitoring.expressions import Asked, dashboards, of_alerts, of_dashboards, panels
from tools.generate.metrics_reference import metrics_of_processes

DASHBOARDS = dashboards()
EXPORTED = {name for metrics in metrics_of_processes().values() for name, *_ in metrics}
each_dashboard = pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=DASHBOARDS)


@each_dashboard
def test_the_model_of_grafana_takes_a_dashboard_and_loses_nothing(dashboard: dict[str, Any]) -> None:
    taken = Dashboard.from_json(dashboard)
    assert json.loads(json.dumps(taken, cls=JSONEncoder)) == dashboard


def test_dashboards_can_be_told_apart() -> None:
    assert len({dashboard["uid"] for dashboard in DASHBOARDS.values()}) == len(DASHBOARDS) == 3
    assert len({dashboard["title"] for dashboard in DASHBOARDS.values()}) == 3


@each_dashboard
def test_every_panel_has_a_number_a_unit_and_says_what_it_shows(dashboard: dict[str, Any]) -> None:
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(numbers)) == len(numbers)
    for panel in panels(dashboard):
        assert panel["title"], panel
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["targets"], panel["title"]
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references), panel["title"]


@each_dashboard
def test_every_query_goes_to_the_prometheus_that_is_chosen(dashboard: dict[str, Any]) -> None:
    assert dashboard["templating"]["list"][0]["name"] == "datasource"
    for panel in panels(dashboard):
        for asked in (panel, *panel["targets"]):
            assert asked["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel["title"]


@each_dashboard
def test_no_two_panels_lie_on_one_another_and_none_sticks_out(dashboard: dict[str, Any]) -> None:
    for one, other in combinations([panel["gridPos"] for panel in dashboard["panels"]], 2):
        apart = any(one[a] + one[b] <= other[a] or other[a] + other[b] <= one[a] for a, b in (("x", "w"), ("y", "h")))
        assert apart, (one, other)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in dashboard["panels"])


@each_dashboard
def test_a_state_has_one_colour_everywhere(dashboard: dict[str, Any]) -> None:
    colours: dict[str, set[str]] = {"performance": set(), "eco": set(), "draining": set()}
    for panel in panels(dashboard):
        for override in panel["fieldConfig"]["overrides"]:
            for value in override["properties"]:
                if override["matcher"]["options"] in colours and value["id"] == "color":
                    colours[override["matcher"]["options"]].add(value["value"]["fixedColor"])
        for mapping in panel["fieldConfig"]["defaults"].get("mappings", []):
            for result in mapping["options"].values():
                if result["text"] in colours:
                    colours[result["text"]].add(result["color"])
    assert colours == {"performance": {"blue"}, "eco": {"green"}, "draining": {"orange"}}


@pytest.mark.parametrize("asked", [*of_alerts(), *of_dashboards()], ids=lambda asked: asked.where)
def test_only_metrics_that_joulie_exports_are_asked_for(asked: Asked) -> None:
    assert asked.metrics() <= EXPORTED
    assert asked.metrics() or "ALERTS" in asked.expr


def test_prometheus_can_parse_every_query_of_the_dashboards(promtool: Path, tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": asked.over("5m", "node-1")}
        for number, asked in enumerate(of_dashboards())
    ]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run([promtool, "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{len(rules)} rules found" in done.stdout

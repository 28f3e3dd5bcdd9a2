"""The PromQL of alerts and dashboards, as Prometheus would be asked it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

FILES = Path(__file__).resolve().parents[2] / "deploy" / "chart" / "joulie" / "files"
RULES = FILES / "alerts.yaml"
_METRIC = re.compile(r"\bjoulie_\w+")
_HISTOGRAM = re.compile(r"_(?:bucket|sum|count)$")


class Asked(NamedTuple):
    """One query, and where it stands."""

    where: str
    expr: str

    def metrics(self) -> set[str]:
        """The names in it, histograms without what their series add."""
        return {_HISTOGRAM.sub("", name) for name in _METRIC.findall(self.expr)}

    def over(self, window: str, node: str) -> str:
        """As Grafana would send it, with its variables replaced."""
        return self.expr.replace("$__rate_interval", window).replace("$node", node)


def of_alerts() -> list[Asked]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [Asked(rule["alert"], rule["expr"]) for group in groups for rule in group["rules"]]


def of_dashboards() -> list[Asked]:
    return [
        Asked(f"{name}: {panel['title']}: {target['refId']}", target["expr"])
        for name, dashboard in dashboards().items()
        for panel in panels(dashboard)
        for target in panel["targets"]
    ]


def dashboards() -> dict[str, dict[str, Any]]:
    return {file.name: json.loads(file.read_text()) for file in sorted((FILES / "dashboards").glob("*.json"))}


def panels(dashboard: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All but the headings."""
    return (panel for panel in dashboard["panels"] if panel["type"] != "row")

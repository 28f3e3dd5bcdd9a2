"""The three dashboards: the cluster at a glance, single nodes, and Joulie itself."""

from __future__ import annotations

import json
from collections.abc import Iterable

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model

from tools.generate.dashboards.cluster import CLUSTER
from tools.generate.dashboards.itself import ITSELF
from tools.generate.dashboards.nodes import NODES
from tools.generate.dashboards.panels import SOURCE, Panel

Rows = dict[str, list[Panel]]


def dashboards() -> dict[str, str]:
    """Name of each file, and its text."""
    made = {
        "joulie-cluster": _dashboard("joulie-cluster", "Joulie / Cluster", CLUSTER),
        "joulie-nodes": _dashboard("joulie-nodes", "Joulie / Nodes", NODES, [_node_variable()]),
        "joulie-itself": _dashboard("joulie-itself", "Joulie / Itself", ITSELF),
    }
    return {
        f"{name}.json": json.dumps(each.build(), cls=JSONEncoder, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        for name, each in made.items()
    }


def _dashboard(uid: str, title: str, rows: Rows, variables: Iterable[build.QueryVariable] = ()) -> build.Dashboard:
    made = build.Dashboard(title).uid(uid).tags(["joulie"]).refresh("30s").time("now-3h", "now").timezone("browser")
    made.readonly().tooltip(model.DashboardCursorSync.CROSSHAIR)
    made.link(build.DashboardLink("Joulie").type(model.DashboardLinkType.DASHBOARDS).tags(["joulie"]).keep_time(True))
    made.with_variable(build.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
    for variable in variables:
        made.with_variable(variable)
    number = 0
    for heading, panels in rows.items():
        number += 1
        made.with_row(build.Row(heading).id(number))
        for panel in panels:
            number += 1
            made.with_panel(panel.id(number))
    return made


def _node_variable() -> build.QueryVariable:
    """Some nodes, never all of them: there may be thousands."""
    return (
        build.QueryVariable("node")
        .label("Node")
        .query("label_values(joulie_operator_node_state, node)")
        .datasource(SOURCE)
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
    )

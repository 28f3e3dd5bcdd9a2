"""The dashboard that a running operator serves: where its data comes from."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from joulie.model.snapshot import Snapshot
from joulie.overview.summary import Facts

if TYPE_CHECKING:
    from aiohttp import web

    from joulie.operator.loop import DecisionModels, Operator
    from joulie.settings import OperatorSettings


@dataclass(frozen=True)
class DashboardPart:
    """The routes and the background task that the dashboard adds to the operator's process."""

    routes: Sequence[web.RouteDef]
    run: Callable[[], Coroutine[Any, Any, None]]


def dashboard_for(
    settings: OperatorSettings, models: DecisionModels, identity: str
) -> Callable[[Operator], DashboardPart]:
    """Returns a function that attaches a dashboard to an operator."""

    def attach(operator: Operator) -> DashboardPart:
        from joulie.web.dashboard import Dashboard

        def read() -> Snapshot:
            return operator.state.snapshot(operator.telemetry)

        dashboard = Dashboard(
            read,
            lambda: facts_of(operator, settings, identity),
            settings,
            budgets=operator.state.budgets.values,
            plan=lambda: operator.plan if operator.leads else None,
            catalogue=models.catalogue,
            ready=lambda: operator.state.synced,
            hosts=settings.dashboard_hosts,
        )
        return DashboardPart(dashboard.routes(), dashboard.run)

    return attach


def facts_of(operator: Operator, settings: OperatorSettings, identity: str) -> Facts:
    decision, telemetry = settings.decision, operator.telemetry
    return Facts(
        cluster=settings.cluster_name,
        leader=identity if operator.leads else "another operator",
        policy=decision.plan.policy_type,
        budget_w=settings.power_budget_w,
        rack_capacity_w=decision.twin.rack_capacity_w,
        ambient_c=telemetry.ambient_c,
        zone_ambient_c=telemetry.zone_ambient_c,
        pue=telemetry.estimated_pue,
    )

"""The dashboard beside a running operator: what it reads, and what it is told that no object says."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from joulie.model.snapshot import Snapshot
from joulie.overview.summary import Facts

if TYPE_CHECKING:
    from aiohttp import web

    from joulie.operator.loop import Brain, Operator
    from joulie.settings import OperatorSettings


@dataclass(frozen=True)
class Attached:
    """What the operator's process serves and runs for the dashboard."""

    routes: Sequence[web.RouteDef]
    run: Callable[[], Coroutine[Any, Any, None]]


def beside(settings: OperatorSettings, brain: Brain, identity: str) -> Callable[[Operator], Attached]:
    """A dashboard for whichever operator it is attached to."""

    def attach(operator: Operator) -> Attached:
        from joulie.web.dashboard import Dashboard

        def read() -> Snapshot:
            return operator.state.snapshot(operator.telemetry)

        dashboard = Dashboard(
            read,
            lambda: facts_of(operator, settings, identity),
            settings,
            plan=lambda: operator.plan if operator.leads else None,
            catalogue=brain.catalogue,
            ready=lambda: operator.state.synced,
            hosts=settings.dashboard_hosts,
        )
        return Attached(dashboard.routes(), dashboard.run)

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

"""The real operator with the dashboard beside it, on the demo's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence

from aiohttp import web

from joulie import plugins
from joulie.catalogue.lookup import Catalogue
from joulie.cluster.lease.election import unique_identity
from joulie.cluster.memory.cluster import MemoryCluster
from joulie.cluster.memory.server import MemoryServer
from joulie.cluster.watch.log import WatchLog
from joulie.demo.scenario.machines import CLUSTER
from joulie.demo.settings import local
from joulie.model.api import PowerBudget
from joulie.model.names import OPERATOR_MANAGER
from joulie.model.snapshot import Snapshot, Telemetry
from joulie.operator.loop import DecisionModels, Operator
from joulie.operator.process import Candidate, run
from joulie.overview.summary import Facts
from joulie.serving import serve
from joulie.settings import OperatorSettings
from joulie.simulator.facility import ZONE_AMBIENT, Facility
from joulie.web.dashboard import Dashboard

NAMESPACE = "joulie-system"
IDENTITY = "operator-1"
NOTHING = Snapshot({})


class DemoOperator:
    """One operator; it leads as soon as it has the lease."""

    def __init__(
        self,
        server: MemoryServer,
        settings: OperatorSettings,
        now_s: Callable[[], float],
        notes: Callable[[], tuple[str, ...]],
        facility: Callable[[], Facility],
    ) -> None:
        self.settings = settings
        self._server, self._now_s, self._notes, self._facility = server, now_s, notes, facility
        self._operator: Operator | None = None

    def snapshot(self) -> Snapshot:
        """The cluster as the operator knows it now."""
        return NOTHING if self._operator is None else self._operator.state.snapshot(Telemetry())

    def budgets(self) -> Collection[PowerBudget]:
        return () if self._operator is None else self._operator.state.budgets.values()

    def facts(self) -> Facts:
        decision = self.settings.decision
        zones = {labels["zone"]: round(air_c, 1) for labels, air_c in self._facility().series(ZONE_AMBIENT)}
        return Facts(
            cluster=CLUSTER,
            leader=IDENTITY if self._operator is not None and self._operator.leads else "",
            policy=decision.plan.policy_type,
            budget_w=self.settings.power_budget_w,
            rack_capacity_w=decision.twin.rack_capacity_w,
            ambient_c=max(zones.values(), default=None),
            zone_ambient_c=zones,
            notes=self._notes(),
        )

    async def run(self, stop: asyncio.Event, dashboard_port: int) -> None:
        """Until `stop`; metrics where the settings say, the page at the dashboard's port."""
        decision, log = self.settings.decision, WatchLog("operator")
        cluster = MemoryCluster(self._server, field_manager=OPERATOR_MANAGER, observer=log)
        election = MemoryCluster(self._server, field_manager=OPERATOR_MANAGER)
        models = DecisionModels(
            plugins.policy(decision.plan.policy_type),
            plugins.cooling(decision.twin.cooling_model, decision.twin),
            Catalogue(),
        )

        def attach(operator: Operator) -> _Page:
            self._operator = operator
            return _Page(self, operator, self._now_s, dashboard_port)

        try:
            candidate = Candidate(unique_identity(IDENTITY), NAMESPACE)
            await run(
                cluster, election, self.settings, models, candidate, log, attach=attach, stop=stop, clock=self._now_s
            )
        finally:
            await cluster.close()
            await election.close()


class _Page:
    """The dashboard at a port of its own, which stays the same however metrics are served."""

    routes: Sequence[web.RouteDef] = ()

    def __init__(self, demo: DemoOperator, operator: Operator, now_s: Callable[[], float], port: int) -> None:
        self._operator, self._port = operator, port
        self._dashboard = Dashboard(
            demo.snapshot,
            demo.facts,
            demo.settings,
            now_s,
            budgets=operator.state.budgets.values,
            plan=lambda: operator.plan,
            ready=lambda: operator.state.synced,
        )

    async def run(self) -> None:
        page = await serve(
            local(self._port),
            self._operator.metrics.pieces,
            lambda: None,
            lambda: None if self._operator.state.synced else "not all objects are known yet",
            self._dashboard.routes(),
            variable="--port",
        )
        try:
            await self._dashboard.run()
        finally:
            await page.cleanup()

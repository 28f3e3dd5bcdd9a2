"""The dashboard as a whole: looks at the cluster as often as viewers need it, and answers over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from aiohttp import web

from joulie.catalogue.lookup import Catalogue
from joulie.control.placement.score_table import ScoreTable, score_table
from joulie.control.plan import Plan
from joulie.logs import Log
from joulie.model.api import PowerBudget
from joulie.model.snapshot import Snapshot
from joulie.overview.findings import FindingThresholds
from joulie.overview.summary import Facts
from joulie.settings import OperatorSettings, ScoreSettings
from joulie.web.answers import cluster_document
from joulie.web.changes import ChangeLog
from joulie.web.handlers import Handlers
from joulie.web.history import History
from joulie.web.reasons import FORESEEN, Reasons
from joulie.web.scene import Scene
from joulie.web.stream import Feed

WATCHED_S = 0.5  # between two looks while there are viewers; a large cluster is looked at less often
WATCHED_LARGE_S = 1.0
LARGE = 1_000  # nodes
UNWATCHED_S = 1.0
UNWATCHED_LARGE_S = 5.0
TOLD_EVERY_S = 3.0  # also when nothing changed but the time
SCORED_ANEW_S = 5.0
SHOWN_CHANGES = 100


class Dashboard:
    """`read` gives the cluster as it is known now, `facts` what its objects do not say. `plan` is the last decision
    of an operator in the same process, whose reasons are then told; without one they are worked out. `budgets` are
    the PowerBudgets, with what the operator said of them."""

    def __init__(  # noqa: PLR0913 - each is a part of the world that tests or the demo replace
        self,
        read: Callable[[], Snapshot],
        facts: Callable[[], Facts],
        settings: OperatorSettings,
        clock: Callable[[], float] = time.time,
        *,
        budgets: Callable[[], Collection[PowerBudget]] = tuple,
        plan: Callable[[], Plan | None] = lambda: None,
        catalogue: Catalogue | None = None,
        ready: Callable[[], bool] = lambda: True,
        hosts: Collection[str] = (),
    ) -> None:
        self._read, self._facts, self._clock, self._ready = read, facts, clock, ready
        self._budgets = budgets
        self.settings = settings
        self.hosts = hosts
        self._catalogue = catalogue or Catalogue()
        self._score_settings = replace(
            ScoreSettings(),
            power_profile_label=settings.decision.plan.power_profile_label,
            enable_facility_metrics=settings.enable_facility_metrics,
        )
        self.scene = Scene(
            settings.decision.plan, FindingThresholds(twin_stale_s=self._score_settings.twin_staleness_s)
        )
        self._cluster = cluster_document(self.scene.cluster)
        self.history = History()
        self.changes = ChangeLog()
        self.feed = Feed(self._everything)
        self._reasons = Reasons(settings.decision, plan)
        self._looked_at_s = self._told_at_s = float("-inf")
        self._table: ScoreTable | None = None
        self._table_made_at_s = float("-inf")
        self._log = Log("dashboard")
        self._fault = ""

    def routes(self) -> list[web.RouteDef]:
        """GET and HEAD only."""
        return Handlers(self).routes()

    async def run(self) -> None:
        """Until it is cancelled; then viewers are let go, so that the server can end."""
        try:
            while True:
                self._try_to_look()
                await self._pause()
        finally:
            self.feed.close()

    @property
    def ready(self) -> bool:
        return self._ready()

    @property
    def snapshot(self) -> Snapshot:
        return self._read()

    def look(self) -> None:
        """Compare the cluster with what was seen last, and tell viewers what changed. Costs nothing when just done."""
        if not self._ready() or time.monotonic() - self._looked_at_s < self._interval_s / 2:
            return
        self._looked_at_s = time.monotonic()
        now_s, scene = self._clock(), self.scene
        set_back = now_s < scene.cluster.now_s
        moved = scene.look(self._read(), self._facts(), now_s, self._budgets())
        lines = self.changes.compare(scene.views, scene.pins, scene.cluster, self._why_now)
        sampled = self.history.is_due(now_s)
        if sampled:
            self.history.take(scene.cluster, scene.views, scene.names)
        before, self._cluster = self._cluster, cluster_document(scene.cluster)
        if moved is None or set_back:  # the past that viewers hold is another one now
            self.feed.restart()
            return
        news = {key: value for key, value in self._cluster.items() if before.get(key) != value}
        quiet_s = time.monotonic() - self._told_at_s
        if moved or lines or sampled or news.keys() - {"nowS"} or quiet_s > TOLD_EVERY_S:
            delta: dict[str, Any] = {"cluster": news}
            if moved:
                delta["nodes"] = moved
            if lines:
                delta["changes"] = lines[-SHOWN_CHANGES:]
            if sampled:
                delta["sample"] = [now_s, scene.cluster.power_w, scene.cluster.capped_w]
            self.feed.publish(delta)
            self._told_at_s = time.monotonic()

    def why(self, node: str) -> str:
        """The reason for a node's state; empty where none is known."""
        return self._reasons.of(self.scene.views[node], self._read(), self._clock())

    def _why_now(self, node: str) -> str:
        """Of a state that was just taken on; what comes next is another line."""
        reason = self.why(node)
        return "" if reason.startswith(FORESEEN) else reason

    def score_table(self) -> ScoreTable:
        """Made anew every few seconds at most: for thousands of nodes it takes a while."""
        if self._table is None or time.monotonic() - self._table_made_at_s > SCORED_ANEW_S:
            decision = self.settings.decision
            self._table = score_table(
                self._read(),
                self._score_settings,
                decision.marginal,
                decision.hardware,
                self._catalogue,
                self._clock(),
                self._budgets(),
            )
            self._table_made_at_s = time.monotonic()
        return self._table

    def _everything(self) -> dict[str, Any]:
        return {
            "cluster": self._cluster,
            "nodes": self.scene.columns,
            "changes": self.changes.lines(SHOWN_CHANGES),
            "history": self.history.of_cluster(),
        }

    @property
    def _is_large(self) -> bool:
        return len(self.scene.names) > LARGE

    @property
    def _interval_s(self) -> float:
        return WATCHED_LARGE_S if self._is_large else WATCHED_S

    def _try_to_look(self) -> None:
        """A fault of ours costs this look and is said once, never the process that serves us."""
        try:
            self.look()
            self._fault = ""
        except Exception as error:  # noqa: BLE001
            if repr(error) != self._fault:
                self._fault = repr(error)
                self._log.error("the dashboard could not read the cluster", exc_info=True)

    async def _pause(self) -> None:
        if self.feed.viewers:
            await asyncio.sleep(self._interval_s)
            return
        self.feed.arrived.clear()
        try:
            async with asyncio.timeout(UNWATCHED_LARGE_S if self._is_large else UNWATCHED_S):
                await self.feed.arrived.wait()
        except TimeoutError:
            pass

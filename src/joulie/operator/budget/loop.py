"""One turn after another while leading: read, decide, order, say, renew."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from joulie.cluster.decoding.decoders import DECODERS
from joulie.cluster.port import NODE_TWINS, NODES, POWER_BUDGETS, Cluster, ClusterError, Resource
from joulie.cluster.watch.listing import listed
from joulie.control.budget.counting import CountedCaps, Order
from joulie.control.budget.cycle import BudgetTurn, decide_budgets, short_form, under_orders
from joulie.control.budget.groups import Readings, group_name, spec_w
from joulie.control.budget.limits.in_force import SignalReading
from joulie.control.budget.limits.meters import Meter, MeteredGroup, after_reading, remembered
from joulie.control.budget.members import BudgetInput
from joulie.control.budget.memory import BudgetMemory
from joulie.errors import JoulieError
from joulie.logs import Log
from joulie.model.api import PowerBudget
from joulie.model.api.budget import BudgetSignal, Mode
from joulie.operator.apply import Applier, WriteOutcome
from joulie.operator.budget.asking import Question
from joulie.operator.budget.renewal import RENEW_S, BudgetLease
from joulie.operator.budget.statuses import budget_jobs
from joulie.operator.budget.uncapped import to_untaint, untaint
from joulie.operator.budget.writer import WRITE_S, OrderWriter
from joulie.operator.rate_limit import TokenBucket, write_rate_per_s
from joulie.operator.watts import watts_jobs
from joulie.operator.writes import Job
from joulie.settings import OperatorSettings
from joulie.sources.budget_readings import SignalReader, known_zones

if TYPE_CHECKING:
    from joulie.operator.loop import Operator

Signal = tuple[BudgetSignal | None, SignalReading]  # with the part of the spec that it was read for

LIST_S = 20.0
STATUS_WRITES_PER_S = 20.0


class BudgetLoop:
    """Beside the reconcile loop: takes its last plan and the newest objects, and writes orders and statuses."""

    def __init__(
        self,
        operator: Operator,
        cluster: Cluster,
        settings: OperatorSettings,
        lead_left_s: Callable[[], float],
        term: Callable[[], int],
        lease: BudgetLease,
        reader: SignalReader,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.last: BudgetTurn | None = None  # for the dashboard
        self.memory = BudgetMemory()
        self._operator = operator
        self._state = operator.state
        self._cluster = cluster
        self._settings = settings
        self._lead_left_s = lead_left_s
        self._term_now = term  # counts how often this process became the leader
        self._lease = lease
        self._reader = reader
        self._monotonic_s = monotonic_s
        self._metrics = operator.metrics.budgets
        self._writer = OrderWriter(cluster, operator.state, lead_left_s, monotonic_s)
        bucket = TokenBucket(STATUS_WRITES_PER_S, 20, time.monotonic)
        self._statuses = Applier(cluster, bucket, lead_left_s, operator.state)
        self._meters: dict[str, Meter] | None = None  # by group; None: as their statuses say
        self._signals: dict[str, Signal] = {}  # by budget, as last read
        self._asked_signals, self._asked_meters = Question[dict[str, Signal]](), Question[dict[str, Meter]]()
        self._term = -1
        self._raises_from_s = 0.0
        self._listed = False
        self._said: dict[str, str] = {}
        self._said_of_watts = ""
        self._said_of_taints = ""
        self.advertising: asyncio.Task[None] | None = None  # writes watts as a resource
        self._log = Log("operator")

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; an error costs a turn, and agents that see no renewal go to their failsafe caps."""
        while not stop.is_set():
            started_s = time.monotonic()
            if self._lead_left_s() > 0 and self._state.budgets_synced and self._operator.plan is not None:
                await self._safe_turn()
            elif self._lead_left_s() <= 0:
                self._stop_leading()
            left_s = self._settings.budget_interval_s - (time.monotonic() - started_s)
            wait_s = max(0.05, left_s if self._lead_left_s() > 0 else min(left_s, 0.5))
            await self._until_due(stop, wait_s)

    async def _until_due(self, stop: asyncio.Event, wait_s: float) -> None:
        """Until the next turn; a changed budget makes it due at once."""
        changed = self._operator.budgets_changed
        waits = [asyncio.create_task(event.wait()) for event in (stop, changed)]
        try:
            await asyncio.wait(waits, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()
        changed.clear()

    async def _safe_turn(self) -> None:
        started_s = time.monotonic()
        try:
            await self.turn()
        except JoulieError as error:
            self._metrics.errors.inc()
            self._log.error("a turn of the budget loop failed", error=str(error))
        except Exception:  # noqa: BLE001 - a bug of ours must not end the process that holds the lease
            self._metrics.errors.inc()
            self._log.error("a turn of the budget loop failed: internal error", exc_info=True)
        else:
            self._metrics.turn_seconds.observe(time.monotonic() - started_s)

    async def turn(self) -> None:
        budgets = self.budgets()
        unreadable = self._state.undecodable.count(POWER_BUDGETS.kind)
        if not budgets and not unreadable and not self.memory.members and not under_orders(self._state.twins):
            self.last = None
            self._metrics.show(None)
            self._advertise({})
            await self._untaint({})
            return
        may_raise = await self._may_raise()
        await self._writer.ask_for_lost()
        if self._meters is None:
            self._meters = _remembered(budgets)
        readings = Readings(known_zones(budgets), await self._read_signals(budgets), self._meters)
        turn, self.memory = decide_budgets(self._given(), budgets, self.memory, readings, may_raise=may_raise)
        self.last = turn
        self._operator.kept_twins = self.memory.groups.keys() - self._state.nodes.keys()
        self._metrics.show(turn)
        async with asyncio.TaskGroup() as tasks:
            renewing = tasks.create_task(self._keep_renewing(turn))
            await self._writer.write(turn.plan.writes)
            renewing.cancel()
        self._count(turn)
        await self._renew(turn)
        await self._write_statuses(turn)
        self._advertise({write.node: write.order for write in turn.plan.writes})
        if may_raise:
            await self._untaint(turn.plan.standing)
        if (meters := await self._asked_meters.ask(partial(self._read_meters, turn))) is not None:
            self._meters = meters

    async def _keep_renewing(self, turn: BudgetTurn) -> None:
        """While orders are written: those of a thousand nodes may take longer than agents wait for a renewal."""
        while True:
            await asyncio.sleep(RENEW_S)
            if self._lead_left_s() > 0:
                with suppress(ClusterError):  # the renewal at the end of the turn tells of it
                    await self._renew(turn)

    async def _renew(self, turn: BudgetTurn) -> None:
        if turn.plan.standing or under_orders(self._state.twins):  # else no agent waits for it
            await self._lease.renew_if_due(self._monotonic_s())

    def budgets(self) -> list[PowerBudget]:
        """All of them, the short form included."""
        settings = self._settings
        budgets = list(self._state.budgets.values())
        if settings.power_budget_w > 0:
            mode: Mode = "enforce" if settings.power_budget_mode == "enforce" else "report"
            budgets.append(short_form(settings.power_budget_w, mode))
        return budgets

    def _given(self) -> BudgetInput:
        operator = self._operator
        assert operator.plan is not None
        return BudgetInput(
            self._state.snapshot(operator.latest_telemetry()),
            operator.plan,
            self._settings.decision,
            operator.now_s(),
            operator.catalogue,
            self._writer.in_flight,
            monotonic_s=self._monotonic_s(),
        )

    async def _may_raise(self) -> bool:
        """Whether the last leader's writes are dead, everything was listed since, and every budget can be read.

        A budget that cannot be read may hold nodes, so none is released or raised on the strength of its absence.
        """
        if self._term != self._term_now():
            self._stop_leading()
            self._term = self._term_now()
            self._raises_from_s = self._monotonic_s() + WRITE_S
        if not self._listed and self._monotonic_s() > self._raises_from_s:
            self._listed = await self._is_up_to_date()
        may_raise = self._listed and not self._state.undecodable.count(POWER_BUDGETS.kind)
        self._metrics.raises.set(float(may_raise))
        return may_raise

    async def _is_up_to_date(self) -> bool:
        """Whether the watches have reached what the server has now."""
        try:
            async with asyncio.timeout(LIST_S):
                return all([await self._has_reached(resource) for resource in (NODES, NODE_TWINS, POWER_BUDGETS)])
        except TimeoutError:
            return False

    async def _has_reached(self, resource: Resource) -> bool:
        found = await listed(self._cluster, resource, DECODERS[resource])
        return self._state.has_reached(resource, {each.key: each.version for each in found})

    def _stop_leading(self) -> None:
        self.memory, self.last, self._listed, self._term = BudgetMemory(), None, False, -1
        self._meters, self._signals = None, {}
        self._asked_signals.drop()
        self._asked_meters.drop()
        self._writer.forget()
        self._metrics.show(None)
        self._metrics.raises.set(0.0)

    def _count(self, turn: BudgetTurn) -> None:
        failed = self._writer.failed
        self._metrics.orders.inc(self._writer.written)
        self._metrics.order_errors.inc(len(failed))
        if turn.plan.writes:
            cuts = sum(write.is_cut for write in turn.plan.writes)
            first = {"first_failure": dict([min(failed.items())])} if failed else {}
            self._log.info("budget orders", cuts=cuts, others=len(turn.plan.writes) - cuts, failed=len(failed), **first)
        self._writer.written = 0
        said = {
            f"{report.budget.metadata.name} {each.type}": f"{each.status} {each.reason}: {each.message}"
            for report in turn.reports
            for each in report.statements
            if each.status == "False"
        }
        said |= self._reader.failures
        for what, why in said.items():
            if self._said.get(what, "").split(":")[0] != why.split(":")[0]:
                self._log.warning("budget", what=what, why=why)
        self._said = said

    async def _write_statuses(self, turn: BudgetTurn) -> None:
        operator = self._operator
        jobs = budget_jobs(turn.reports, self._settings.status_deadband_pct, operator.now_s(), operator.identity)
        outcome = WriteOutcome()
        await self._statuses.run(jobs, outcome)
        operator.metrics.count(outcome)

    def _advertise(self, orders: Mapping[str, Order]) -> None:
        """Watts as a resource of nodes, in the background: no cut waits for it."""
        if self.advertising is not None and not self.advertising.done():
            return
        jobs = watts_jobs(self._given(), orders, enabled=self._settings.watts_resource)
        if jobs:
            self.advertising = asyncio.create_task(self._write_watts(jobs))

    async def _write_watts(self, jobs: list[Job]) -> None:
        rate_per_s = write_rate_per_s(self._settings.kube_client_qps, len(self._state.nodes))
        bucket = TokenBucket(rate_per_s, self._settings.kube_client_burst, time.monotonic)
        outcome = await Applier(self._cluster, bucket, self._lead_left_s, self._state).run(jobs)
        self._operator.metrics.count(outcome)
        why = min(outcome.failed.values(), default="")
        if why and why != self._said_of_watts:
            self._log.warning("budget orders could not be written", nodes=len(outcome.failed), error=why)
        self._said_of_watts = why

    async def _untaint(self, standing: Mapping[str, CountedCaps]) -> None:
        """Lets pods onto nodes that registered with a taint until their cap is confirmed."""
        names = to_untaint(self._state.nodes.values(), self.memory, standing)
        answers = await untaint(self._cluster, names, lambda: self._lead_left_s() > 0) if names else {}
        for name, answer in answers.items():
            if isinstance(answer, bytes):
                self._state.written(NODES, name, answer)
        failed = {name: answer for name, answer in answers.items() if isinstance(answer, str)}
        why = min(failed.values(), default="")
        if why and why != self._said_of_taints:
            self._log.warning("taints of nodes were not removed", nodes=len(failed), error=why)
        if len(answers) > len(failed):
            self._log.info("nodes take pods now: their caps are confirmed", nodes=len(answers) - len(failed))
        self._said_of_taints = why

    async def _read_signals(self, budgets: list[PowerBudget]) -> dict[str, SignalReading]:
        """As they are now, or as they were if the source is slow. What belongs to another spec is none."""
        spec = {budget.metadata.name: budget.spec.signal for budget in budgets}

        async def read() -> dict[str, Signal]:
            return {name: (spec[name], found) for name, found in (await self._reader.signals(budgets)).items()}

        if (answer := await self._asked_signals.ask(read)) is not None:
            self._signals = answer
        return {name: found for name, (of, found) in self._signals.items() if of == spec.get(name)}

    async def _read_meters(self, turn: BudgetTurn) -> dict[str, Meter]:
        """After the turn: what a meter shows now lowers the limits of the next."""
        before, groups = self._meters or {}, dict[str, MeteredGroup]()
        asked: dict[str, tuple[str, str]] = {}
        for report in turn.reports:
            spec = report.budget.spec
            if spec.meter is None:
                continue
            for group, status in zip(report.groups, report.statuses, strict=True):
                own_w = spec_w(spec, group.value)
                groups[group.name] = MeteredGroup(group.limit_w, own_w, status.floor_watts, group.is_enforced)
                asked[group.name] = group.value, spec.meter.query
        shown = await self._reader.meters(asked) if asked else {}
        now_s, failures = self._monotonic_s(), self._reader.failures
        return {
            name: after_reading(
                before.get(name, Meter()), shown.get(name), failures.get(f"meter of {name}", ""), group, now_s
            )
            for name, group in groups.items()
        }


def _remembered(budgets: Iterable[PowerBudget]) -> dict[str, Meter]:
    return {group_name(budget.metadata.name, value): meter for budget in budgets for value, meter in remembered(budget)}

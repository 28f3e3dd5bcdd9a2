"""One node: its routes, its devices, its target, and what became of it. One `tick` at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from joulie.agent.budget.contact import BudgetContact
from joulie.agent.budget.limiting import explained, held_caps, limited
from joulie.agent.budget.node_budget import NodeBudget
from joulie.agent.budget.order_file import OrderFile, order_path
from joulie.agent.budget.sessions import Sessions
from joulie.agent.cluster_view import AgentView, SeenNode
from joulie.agent.enforcement.attempts import RetryDelay
from joulie.agent.enforcement.node_control import NodeControl
from joulie.agent.outcome import CapLimits, CapOutcome, Enforced, Notice
from joulie.agent.reporting.hardware import hardware_of, limits_of
from joulie.agent.reporting.reporter import Reporter
from joulie.agent.reporting.status import PinReport, claim_of, control_status_of, pin_reports, results_of
from joulie.agent.restore.cap_lease import CapLease, Refreshes, Verdict
from joulie.agent.restore.journal import POOL_BOOT_ID, Journal, journal_path
from joulie.agent.restore.pending import PendingRestore
from joulie.agent.routing.other_routes import OtherRoutes
from joulie.agent.routing.routes import Route, route_of
from joulie.agent.routing.wiring import Wired, Wiring
from joulie.agent.targets import CapTarget, is_in_scope, live_pin, target_of
from joulie.catalogue.lookup import Catalogue
from joulie.cluster.watch.observer import ContactClock
from joulie.control.budget.counting import Pair
from joulie.devices.interface import CpuFrequency, DeviceError, EnergyReader, FrequencyReader, ZonePower
from joulie.logs import Log
from joulie.model.api import NodeHardwareStatus
from joulie.model.api.twin import NodeTwin
from joulie.model.snapshot import Node, Pin
from joulie.settings import AgentSettings

RESCAN_S = 300.0  # how often devices are looked at again, for what was plugged in or removed
RESCAN_BLIND_S = 60.0  # where nothing could be found out

_NOTHING = CapOutcome("none")


class AgentContext(NamedTuple):
    """What all nodes of an agent share."""

    settings: AgentSettings
    catalogue: Catalogue
    view: AgentView
    wiring: Wiring
    reporter: Reporter
    contact: ContactClock
    boot_id: str
    refreshes: Refreshes
    budget: BudgetContact
    sessions: Sessions
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time


class NodeAgent:
    """Enforces one node's target and remembers what it last saw, for metrics."""

    def __init__(self, name: str, around: AgentContext) -> None:
        settings = around.settings
        self.name = name
        self.target: CapTarget | None = None
        self.enforced = Enforced(_NOTHING, _NOTHING)
        self.verdict: Verdict | None = None
        self.zones: Sequence[ZonePower] = ()
        self.frequencies: Sequence[CpuFrequency] = ()
        self.errors = 0
        self.restore_failures = 0
        self.last_tick_at_s: float | None = None
        self.series: tuple[str, ...] = ()  # of the metrics, as they were after the last tick
        self.hardware: NodeHardwareStatus | None = None
        self._around = around
        pool = settings.mode == "pool"
        path = journal_path(Path(settings.state_dir), name if pool else None)
        self.journal = Journal.open(path, node=name, boot_id=POOL_BOOT_ID if pool else around.boot_id)
        self._pending = PendingRestore(inherited=bool(self.journal.entries))
        self.budget = NodeBudget(
            OrderFile.open(order_path(Path(settings.state_dir), name if pool else None), name),
            around.sessions,
            writes=not settings.simulate_only,
            offload=pool,
        )
        self.in_contact = False  # with the operator's budget loop
        self.control: NodeControl | None = None
        self._wanted: CapTarget | None = None  # the last target of a profile that counted
        self._boot_id = around.boot_id
        self._lease = CapLease(
            name,
            lease_s=settings.cap_lease_s,
            action="hold" if settings.cap_lease_action == "hold" else "restore",
            interval_s=settings.reconcile_interval_s,
            started_at_s=around.clock(),
        )
        self._wired: Wired | None = None
        self._route: Route | None = None
        self._routed_by: tuple[int, dict[str, str]] | None = None
        self._limits = CapLimits()
        self._look_at_s = 0.0
        self._why_restored = ""
        self._generation: int | None = None  # of the twin's spec that was last acted on
        self._restoring = RetryDelay(settings.reconcile_interval_s)  # unwanted caps here
        self._elsewhere = OtherRoutes(name, self.journal, around.wiring, around.clock, settings.reconcile_interval_s)
        self._may_have_leftovers = True
        self._log = Log("agent")

    @property
    def left(self) -> int:
        """How many values of this node hold an unwanted cap and could not be restored (yet)."""
        own = len(self.enforced.left)
        return own or (len(self.control.foreign) if self.control is not None else 0)

    async def tick(self) -> None:
        """Look, decide, enforce, report; a failure costs this tick of this node and is counted."""
        around = self._around
        seen, twin = self._seen(), around.view.twins.get(self.name)
        await self._follow_orders(seen.node, twin)
        control = await self._follow_route(seen.node)
        await self._look_at_devices(seen.node)
        now_s, wall_s = around.clock(), around.wall()
        pins = around.view.pins_of(self.name)
        self.target = target_of(
            self.name, seen.node.labels, twin, pins, around.settings, wall_s, has_gpus=self._may_have_gpus()
        )
        self._generation = twin.metadata.generation if twin else None
        self._consider_leftovers(control, twin, live_pin(self.name, pins, wall_s))
        self.verdict = self._lease.judge(
            now_s=now_s,
            last_contact_s=None if (age_s := around.contact.age_s()) is None else now_s - age_s,
            target=self.target,
            twin_age_s=self._twin_age_s(now_s),
        )
        capped = bool(self.journal.entries)
        if self.verdict.act != "restore":
            self._why_restored = ""
        if self.verdict.act == "enforce":
            self._wanted = self.target
        elif self.verdict.act == "restore":
            self._wanted = None
        if self.budget.holds:
            # A twin that is gone lifts nothing; an operator that is, no more than the caps of its profiles.
            never_raise = self._wanted is None and (twin is None or self.verdict.act == "hold") and not self.in_contact
            await self._hold_to_budget(control, self._wanted, now_s, never_raise=never_raise)
        elif self.verdict.act == "enforce" and self.target is not None:
            self._take(await control.enforce(self.target, self._limits, now_s))
        elif self.verdict.act == "hold":
            self._take(await control.hold(now_s))
        else:  # the reason changes with every tick; what is written is the one that ended the caps
            if not self._why_restored:
                self._why_restored = self.verdict.reason
                self._restoring.reset()
            if self._restoring.is_due(now_s):
                await self._restore(control, self._why_restored)
        if self.verdict.notice is not None and (capped or self.verdict.act != "restore"):
            self._tell(_beside_a_budget(self.verdict.notice) if self.budget.holds else self.verdict.notice)
        self._say_of_pins(seen.node, () if twin else pins, wall_s)
        await self._restore_elsewhere(control)
        self._say_what_is_left(now_s)
        await self._read_sensors(control)
        around.refreshes.save(now_s)
        self.last_tick_at_s = wall_s

    async def leave(self, why: str) -> bool:
        """Restore everything, as far as possible; True: nothing is left to do."""
        control, seen = self.control, self._seen()
        await self._follow_orders(seen.node, self._around.view.twins.get(self.name))
        if control is None:  # never ticked: the journal of an earlier process may still hold something
            control = await self._follow_route(seen.node)
        if self.budget.holds:
            self.in_contact = False
            await self._look_at_devices(seen.node)
            await self._hold_to_budget(control, None, self._around.clock(), never_raise=True)
            return "error" not in (self.enforced.cpu.result, self.enforced.gpu.result)
        await self._restore_elsewhere(control, at_once=True)
        await self._restore(control, why)
        self._say_what_is_left(self._around.clock())
        return not self.enforced.left

    async def leave_in_time(self, why: str) -> bool:
        """The same, but not again right after it failed: may be called at any time."""
        if not self._restoring.is_due(self._around.clock()):
            return False
        done = await self.leave(why)
        return done and not self.budget.holds  # only an order may end that, which has to be seen

    def still_capped(self) -> list[str]:
        """What the journal still holds, in words, each with the reason."""
        return list(self.enforced.left) or [f"{entry.device} {entry.attribute}" for entry in self.journal.entries]

    async def close(self) -> None:
        """Let go of the devices as they are."""
        if self.control is not None:
            await self.control.close()

    async def _follow_route(self, node: Node) -> NodeControl:
        """The control of the current route; what was capped by another route is restored first."""
        view = self._around.view
        routed_by = (view.profiles_version, dict(node.labels))
        if self.control is not None and routed_by == self._routed_by:
            return self.control
        route = route_of(self.name, node.labels, view.profiles.values(), self._around.settings)
        self._routed_by, self._look_at_s = routed_by, 0.0  # labels name hardware, too
        if self.control is not None:
            if route == self._route:
                return self.control
            if not self.budget.holds:  # else the new route has to hold the devices first
                self._take(await self.control.restore(), why="the route has changed")
            await self.control.close()
        self._route = route
        return await self._wire(route)

    async def _wire(self, route: Route) -> NodeControl:
        settings = self._around.settings
        wired = self._around.wiring.wire(self.name, route, self.journal.found)
        self._wired = wired
        self.control = NodeControl(
            self.name,
            wired.cappers,
            self.journal,
            dvfs=settings.dvfs,
            cpu_power=wired.cpu_power,
            simulate_only=settings.simulate_only,
            offload_journal=settings.mode == "pool",
        )
        self._elsewhere.reset()
        return self.control

    def _seen(self) -> SeenNode:
        return self._around.view.nodes.get(self.name) or SeenNode(Node(self.name, {}), None)

    async def _follow_orders(self, node: Node, twin: NodeTwin | None) -> None:
        """Before devices are touched: the newest order is on disk, and the boot in which they are read is known."""
        if self._around.settings.mode == "pool" and node.boot_id != self._boot_id:
            self._boot_id = node.boot_id  # a machine behind HTTP says nothing of its boots, but its Node does
            if self._wired is not None:
                self._wired.forget()
        await self.budget.follow(twin)
        self.in_contact = twin is not None and self._around.budget.is_alive
        while self.budget.notices:
            self._tell(self.budget.notices.pop(0))

    async def _hold_to_budget(
        self, control: NodeControl, wanted: CapTarget | None, now_s: float, *, never_raise: bool
    ) -> None:
        """The lower of what a profile wants and what the order allows."""
        ceiling = self.budget.ceiling(in_contact=self.in_contact)
        if ceiling is None:
            return
        never_raise = never_raise or not self.budget.is_known
        target = limited(wanted, ceiling, self._limits, has_gpus=self._may_have_gpus(), never_raise=never_raise)
        self._take(explained(await control.enforce(target, self._limits, now_s), target, ceiling))

    def _held(self) -> Pair | None:
        """What the devices hold in watts, as last read back; None: nothing that a budget may count on."""
        if not self.budget.holds:
            return None
        return held_caps(self.enforced, self._limits, has_gpus=self._may_have_gpus())

    async def _restore(self, control: NodeControl, why: str) -> None:
        self._take(await control.restore(), why=why)
        if self.enforced.left:
            self.restore_failures += 1
            self._restoring.failed(self._around.clock())
        else:
            self._restoring.reset()

    async def _restore_elsewhere(self, control: NodeControl, *, at_once: bool = False) -> None:
        if self.budget.holds and self._held() is None:
            return  # what another route capped may be all that holds the devices
        notice, failed = await self._elsewhere.restore(control, at_once=at_once)
        self.restore_failures += failed
        if notice is not None:
            self._tell(notice)

    def _twin_age_s(self, now_s: float) -> float | None:
        """How long no write of the operator has been seen; None where no operator is involved."""
        if self.target is None or self.target.origin != "twin":
            return None
        return self._around.refreshes.age_s(self.name, self.target.refresh, now_s)

    def _consider_leftovers(self, control: NodeControl, twin: NodeTwin | None, pin: Pin | None) -> None:
        """Before the first reading of the devices: what the twin says an earlier agent held them to.

        Where there is no operator the pin says so.
        """
        if (twin is None and pin is None) or not self._may_have_leftovers:
            return
        self._may_have_leftovers = False
        told = pin.status.control if twin is None and pin and pin.status else control_status_of(twin)
        if told is not None:
            control.consider(claim_of(told.cpu), claim_of(told.gpu))

    async def _look_at_devices(self, node: Node) -> None:
        """What is there, published when it changed."""
        now_s = self._around.clock()
        wired = self._wired
        if now_s < self._look_at_s or wired is None:
            return
        told = None
        if wired.http is not None and self._route is not None and self._route.cpu.type == "http":
            try:
                told = await wired.http.hardware()
            except DeviceError:
                told = None  # the cappers' own look says why
        found = [await capper.discover() for capper in wired.cappers]
        host = self._around.wiring.host
        topology = host.topology() if host is not None else None
        settings, catalogue = self._around.settings.hardware, self._around.catalogue
        elsewhere = self._route is not None and self._route.gpus_elsewhere
        self.hardware = hardware_of(node, found, topology, told, settings, catalogue, gpus_elsewhere=elsewhere)
        self._limits = limits_of(node, self.hardware, settings, catalogue)
        blind = not any(each.present for each in found) and told is None
        self._look_at_s = now_s + (RESCAN_BLIND_S if blind else RESCAN_S)
        self._around.reporter.hardware(self.name, self.hardware)

    async def _read_sensors(self, control: NodeControl) -> None:
        """Only what the metrics show, and only where it exists."""
        wired = self._wired
        self.zones = self.frequencies = ()
        if wired is None:
            return
        try:
            for sensor in wired.sensors:
                if isinstance(sensor, EnergyReader):
                    self.zones = await sensor.zone_powers()
                if isinstance(sensor, FrequencyReader) and control.cpu_mode == "dvfs":
                    self.frequencies = await sensor.frequencies()
        except DeviceError:
            return

    def _take(self, enforced: Enforced, why: str = "") -> None:
        """Remember, report and log what is new."""
        faults = self._wired.faults if self._wired else {}
        cpu = _explained(enforced.cpu, faults.get("cpu"), why)
        has_gpu = self.hardware is not None and self.hardware.gpu is not None and self.hardware.gpu.present is True
        gpu = _explained(enforced.gpu, faults.get("gpu"), why if has_gpu else "")
        enforced = replace(enforced, cpu=cpu, gpu=gpu)
        self.errors += "error" in (cpu.result, gpu.result)
        self._log_changes(self.enforced, enforced)
        self.enforced = enforced
        said = self.budget.confirmed(self._around.view.twins.get(self.name), self._boot_id, self._held())
        results = results_of(cpu, gpu, self._generation, said)
        self._around.reporter.results(self.name, results, self._route.reports_to if self._route else ())
        for notice in enforced.notices:
            self._tell(notice)

    def _may_have_gpus(self) -> bool:
        gpu = self.hardware.gpu if self.hardware is not None else None
        return self.hardware is None or (gpu is not None and gpu.present is not False)

    def _say_of_pins(self, node: Node, pins: Sequence[Pin], wall_s: float) -> None:
        """Where there is no twin, there is no operator to report the result of a pin."""
        reports: dict[str, PinReport] = {}
        if pins:
            results = results_of(self.enforced.cpu, self.enforced.gpu)
            in_scope = is_in_scope(node.labels, self._around.settings)
            reports = pin_reports(node, pins, results, wall_s, in_scope=in_scope)
        self._around.reporter.pins(self.name, reports)

    def _log_changes(self, before: Enforced, after: Enforced) -> None:
        for kind, old, new in (("cpu", before.cpu, after.cpu), ("gpu", before.gpu, after.gpu)):
            if (old.result, old.backend, old.message) == (new.result, new.backend, new.message):
                continue
            say = self._log.warning if new.result in ("blocked", "error") else self._log.info
            if self._around.settings.mode == "pool" and new.result not in ("blocked", "error"):
                say = self._log.debug  # for thousands of nodes the pool logs counts instead
            say("control", node=self.name, device=kind, result=new.result, backend=new.backend, reason=new.message)

    def _say_what_is_left(self, now_s: float) -> None:
        if (notice := self._pending.due(now_s, left=bool(self.left), is_empty=not self.journal.entries)) is not None:
            self._tell(notice)

    def _tell(self, notice: Notice) -> None:
        self._pending.said(notice, self._around.clock())
        quiet = self._log.debug if self._around.settings.mode == "pool" and not notice.event else self._log.info
        say = self._log.warning if notice.level == "warning" else quiet
        say(notice.message, node=self.name, what=notice.reason)
        if notice.event:
            self._around.reporter.event(self.name, notice)


def _beside_a_budget(notice: Notice) -> Notice:
    return replace(notice, message=f"{notice.message}, but for the caps of a power budget, which stay")


def _explained(outcome: CapOutcome, fault: str | None, why: str) -> CapOutcome:
    """With the reason that only the shell knows: a route that leads nowhere, or why nothing is enforced."""
    if fault and outcome.result in ("blocked", "error"):
        return replace(outcome, message=fault)
    if why and outcome.result == "none":
        return replace(outcome, message=f"{outcome.message}: {why}" if outcome.message else why)
    return outcome

"""One node: its routes, its devices, its target, and what became of it. One `tick` at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from joulie.agent.deadman import DeadMan, Verdict
from joulie.agent.enforcement import NodeControl
from joulie.agent.hardware import hardware_of, limits_of
from joulie.agent.journal import POOL_BOOT_ID, Journal, journal_path
from joulie.agent.outcome import Enforced, Limits, Notice, Outcome
from joulie.agent.reporting import Reporter
from joulie.agent.restoring import restore_entries
from joulie.agent.routing import Route, route_of
from joulie.agent.status import results_of
from joulie.agent.targets import Target, target_of
from joulie.agent.watching import SeenNode, View
from joulie.agent.wiring import Wired, Wiring
from joulie.catalogue.lookup import Catalogue
from joulie.cluster.observer import ContactClock
from joulie.devices.cpufreq import CpuFrequency
from joulie.devices.energy import ZonePower
from joulie.devices.interface import DeviceError
from joulie.logs import Log
from joulie.model.api import NodeHardwareStatus
from joulie.model.snapshot import Node
from joulie.settings import AgentSettings

LOOK_AGAIN_S = 300.0  # devices are looked at anew so often, for what was plugged in or taken out
LOOK_AGAIN_BLIND_S = 60.0  # where nothing could be found out

_NOTHING = Outcome("none")


class Surroundings(NamedTuple):
    """What all nodes of an agent share."""

    settings: AgentSettings
    catalogue: Catalogue
    view: View
    wiring: Wiring
    reporter: Reporter
    contact: ContactClock
    boot_id: str
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time


class NodeAgent:
    """Enforces one node's target and remembers what it last saw, for metrics."""

    def __init__(self, name: str, around: Surroundings) -> None:
        settings = around.settings
        self.name = name
        self.target: Target | None = None
        self.enforced = Enforced(_NOTHING, _NOTHING)
        self.verdict: Verdict | None = None
        self.zones: Sequence[ZonePower] = ()
        self.frequencies: Sequence[CpuFrequency] = ()
        self.errors = 0
        self.last_tick_at_s: float | None = None
        self.series: tuple[str, ...] = ()  # of the metrics, as they were after the last tick
        self.hardware: NodeHardwareStatus | None = None
        self._around = around
        pool = settings.mode == "pool"
        path = journal_path(Path(settings.state_dir), name if pool else None)
        self.journal = Journal.open(path, node=name, boot_id=POOL_BOOT_ID if pool else around.boot_id)
        self.control: NodeControl | None = None
        self._deadman = DeadMan(
            name,
            lease_s=settings.cap_lease_s,
            action="hold" if settings.cap_lease_action == "hold" else "restore",
            interval_s=settings.reconcile_interval_s,
            started_at_s=around.clock(),
        )
        self._wired: Wired | None = None
        self._route: Route | None = None
        self._routed_by: tuple[int, dict[str, str]] | None = None
        self._limits = Limits()
        self._look_at_s = 0.0
        self._why_restored = ""
        self._log = Log("agent")

    async def tick(self) -> None:
        """Look, decide, enforce, say; whatever goes wrong costs this tick of this node and is counted."""
        around = self._around
        seen = around.view.nodes.get(self.name) or SeenNode(Node(self.name, {}), None)
        control = await self._follow_route(seen.node)
        await self._look_at_devices(seen.node)
        now_s, wall_s = around.clock(), around.wall()
        twin = around.view.twins.get(self.name)
        pins = around.view.pins_of(self.name)
        self.target = target_of(self.name, seen.node.labels, twin, pins, around.settings, wall_s)
        refreshed_at_s = self.target.refreshed_at_s if self.target else None
        self.verdict = self._deadman.judge(
            now_s=now_s,
            last_contact_s=None if (age_s := around.contact.age_s()) is None else now_s - age_s,
            target=self.target,
            twin_age_s=None if refreshed_at_s is None else wall_s - refreshed_at_s,
        )
        capped = bool(self.journal.entries)
        if self.verdict.act == "enforce" and self.target is not None:
            self._why_restored = ""
            self._take(await control.enforce(self.target, self._limits, now_s))
        elif self.verdict.act == "hold":
            self._take(await control.hold(now_s))
        else:  # the reason grows older with every tick; what is written is the one that made it let go
            self._why_restored = self._why_restored or self.verdict.reason
            self._take(await control.restore(), why=self._why_restored)
        if self.verdict.notice is not None and (capped or self.verdict.act != "restore"):
            self._tell(self.verdict.notice)
        await self._read_sensors(control)
        self.last_tick_at_s = wall_s

    async def leave(self, why: str) -> bool:
        """Put everything back, as far as it can be; True: nothing is left to do."""
        control = self.control
        if control is None:  # never ticked: a journal of an earlier life may still hold something
            seen = self._around.view.nodes.get(self.name) or SeenNode(Node(self.name, {}), None)
            control = await self._follow_route(seen.node)
        self._take(await control.restore(), why=why)
        return not self.enforced.left

    async def close(self) -> None:
        """Let go of the devices as they are."""
        if self.control is not None:
            await self.control.close()

    async def _follow_route(self, node: Node) -> NodeControl:
        """The control of the route that holds now; what was capped by another route is put back first."""
        view = self._around.view
        routed_by = (view.profiles_version, dict(node.labels))
        if self.control is not None and routed_by == self._routed_by:
            return self.control
        route = route_of(self.name, node.labels, view.profiles.values(), self._around.settings)
        self._routed_by, self._look_at_s = routed_by, 0.0  # labels name hardware, too
        if self.control is not None:
            if route == self._route:
                return self.control
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
        if self.control.foreign and not settings.simulate_only:
            others = self._around.wiring.cappers_for(self.name, self.control.foreign, self.journal.found)
            only = [entry.knob for entry in self.control.foreign]
            for restored in await restore_entries(self.journal, others, only):
                level = self._log.info if restored.done else self._log.warning
                level("cap of an earlier route", node=self.name, device=restored.knob.device, what=restored.message)
        return self.control

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
        self.hardware = hardware_of(node, found, topology, told, settings, catalogue)
        self._limits = limits_of(node, self.hardware, settings, catalogue)
        blind = not any(each.present for each in found) and told is None
        self._look_at_s = now_s + (LOOK_AGAIN_BLIND_S if blind else LOOK_AGAIN_S)
        self._around.reporter.hardware(self.name, self.hardware)

    async def _read_sensors(self, control: NodeControl) -> None:
        """Only what somebody may ask for in the metrics, and only where it is there."""
        wired = self._wired
        self.zones = self.frequencies = ()
        if wired is None:
            return
        try:
            if wired.rapl is not None:
                self.zones = await wired.rapl.zone_powers()
            if wired.cpufreq is not None and control.cpu_mode == "dvfs":
                self.frequencies = await wired.cpufreq.frequencies()
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
        self._around.reporter.results(self.name, results_of(cpu, gpu), self._route.reports_to if self._route else ())
        for notice in enforced.notices:
            self._tell(notice)

    def _log_changes(self, before: Enforced, after: Enforced) -> None:
        for kind, old, new in (("cpu", before.cpu, after.cpu), ("gpu", before.gpu, after.gpu)):
            if (old.result, old.backend, old.message) == (new.result, new.backend, new.message):
                continue
            say = self._log.warning if new.result in ("blocked", "error") else self._log.info
            if self._around.settings.mode == "pool" and new.result not in ("blocked", "error"):
                say = self._log.debug  # a thousand nodes at once are counted by the pool instead
            say("control", node=self.name, device=kind, result=new.result, backend=new.backend, reason=new.message)

    def _tell(self, notice: Notice) -> None:
        quiet = self._log.debug if self._around.settings.mode == "pool" and not notice.event else self._log.info
        say = self._log.warning if notice.level == "warning" else quiet
        say(notice.message, node=self.name, what=notice.reason)
        if notice.event:
            self._around.reporter.event(self.name, notice)


def _explained(outcome: Outcome, fault: str | None, why: str) -> Outcome:
    """With the reason that only the shell knows: the route that leads nowhere, or why nothing is enforced."""
    if fault and outcome.result in ("blocked", "error"):
        return replace(outcome, message=fault)
    if why and outcome.result == "none":
        return replace(outcome, message=f"{outcome.message}: {why}" if outcome.message else why)
    return outcome

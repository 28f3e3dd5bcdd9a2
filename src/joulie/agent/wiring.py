"""From routes to devices: which cappers a node gets, and who says what its CPUs draw."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple

from joulie.agent.journal import Entry
from joulie.agent.routing import ControlRoute, PowerRoute, Route, beside
from joulie.catalogue.lookup import Catalogue
from joulie.devices.amd_gpus import amd_gpus
from joulie.devices.cpufreq import Cpufreq
from joulie.devices.hsmp import Hsmp
from joulie.devices.hsmp_sockets import open_mailbox
from joulie.devices.http import HttpGpus, HttpThrottle, HttpWatts
from joulie.devices.http_client import HttpClient, HttpNode
from joulie.devices.interface import Capper, DeviceError, Kind, Knob, Value
from joulie.devices.nvidia import nvidia_gpus
from joulie.devices.rapl import Rapl
from joulie.devices.sysfs import SysFs
from joulie.devices.topology import Topology, read_topology
from joulie.settings import AgentSettings

Found = Mapping[Knob, Value]
ReadPower = Callable[[], Awaitable[float | None]]

_NO_HOST = "a pool agent cannot reach the devices of another machine: route this node to http"


class Wired(NamedTuple):
    """One node's devices, in order of preference, and why a kind has none."""

    cappers: tuple[Capper, ...]
    cpu_power: ReadPower | None
    faults: dict[Kind, str]
    http: HttpNode | None = None  # where the node's own word about its hardware can be had
    rapl: Rapl | None = None  # for what only it can tell
    cpufreq: Cpufreq | None = None


class HostDevices:
    """The devices of the machine that this agent runs on."""

    def __init__(self, settings: AgentSettings, catalogue: Catalogue, proc: str = "/proc") -> None:
        self._sysfs = SysFs(settings.host_sys_path)
        self._settings = settings
        self._catalogue = catalogue
        self._proc = proc

    def topology(self) -> Topology:
        return read_topology(self._sysfs, self._proc)

    def cpu(self, found: Found) -> tuple[Rapl, Hsmp, Cpufreq]:
        """Power limits first, frequency after them. `found` lives: it tells the maximum while a cap hides it."""
        model = self._catalogue.cpu(self.topology().raw_model)
        max_w = model.max_w if model else None
        return (
            Rapl(self._sysfs, time.monotonic, max_w, found),
            Hsmp(self._sysfs, catalogue_max_w=max_w, found=found, mailbox=open_mailbox()),
            Cpufreq(self._sysfs, self._settings.dvfs),
        )

    def gpus(self) -> tuple[Capper, ...]:
        return nvidia_gpus(), amd_gpus(self._sysfs)


class Wiring:
    """Makes devices for routes. Connections are shared by all nodes of the agent."""

    def __init__(
        self, host: HostDevices | None, http: HttpClient, prometheus: Callable[[PowerRoute], ReadPower]
    ) -> None:
        self.host = host
        self._http = http
        self._prometheus = prometheus

    def wire(self, node: str, route: Route, found: Found) -> Wired:
        faults: dict[Kind, str] = {}
        cappers: list[Capper] = []
        rapl: Rapl | None = None
        cpufreq: Cpufreq | None = None
        hsmp: Hsmp | None = None
        if self.host is not None and "host" in (route.cpu.type, route.cpu_power.type):
            rapl, hsmp, cpufreq = self.host.cpu(found)
        http = self._http_node(route)
        if (fault := self._fault(route.cpu)) is not None:
            faults["cpu"] = fault
        elif route.cpu.type == "host" and rapl and hsmp and cpufreq:
            cappers += [rapl, hsmp, cpufreq]
        elif route.cpu.type == "http" and http is not None:
            cappers += _http_cpu(http, node, route.cpu)
        if (fault := self._fault(route.gpu)) is not None:
            faults["gpu"] = fault
        elif route.gpu.type == "host" and self.host is not None:
            cappers += self.host.gpus()
        elif route.gpu.type == "http":
            cappers.append(HttpGpus(http if _same(route) and http else self._node_at(route.gpu), node))
        power = self._cpu_power(route, http, rapl, hsmp)
        return Wired(tuple(cappers), power, faults, http, rapl, cpufreq)

    def cappers_for(self, node: str, entries: Iterable[Entry], found: Found) -> list[Capper]:
        """Whoever can put back what another route once capped."""
        entries = list(entries)
        cappers: list[Capper] = []
        for url in dict.fromkeys(entry.device for entry in entries if entry.device.startswith(("http://", "https://"))):
            at = self._node_at(ControlRoute("http", url))
            cappers += [HttpWatts(at, node), HttpThrottle(at, node), HttpGpus(at, node)]
        if self.host is not None and any(not entry.device.startswith("http") for entry in entries):
            cappers += [*self.host.cpu(found), *self.host.gpus()]
        return cappers

    def _fault(self, route: ControlRoute) -> str | None:
        """Why this route reaches no device; None: it does, or nobody wants it to."""
        if route.type == "none":
            return "control is routed to none" + (f" by TelemetryProfile {route.profile}" if route.profile else "")
        if route.type == "host" and self.host is None:
            return _NO_HOST
        return route.fault or None

    def _http_node(self, route: Route) -> HttpNode | None:
        """One node at one address: what its CPU and its GPUs are asked comes from one answer."""
        for control in (route.cpu, route.gpu):
            if control.type == "http" and not control.fault:
                return self._node_at(control, route.cpu_power)
        return None

    def _node_at(self, control: ControlRoute, power: PowerRoute | None = None) -> HttpNode:
        telemetry = beside(control.endpoint, "telemetry")
        if not telemetry and power is not None and power.type == "http":
            telemetry = power.endpoint
        return HttpNode(
            self._http,
            control.endpoint,
            telemetry_url=telemetry,
            state_url=beside(control.endpoint, "state"),
            timeout_s=control.timeout_s,
        )

    def _cpu_power(self, route: Route, http: HttpNode | None, rapl: Rapl | None, hsmp: Hsmp | None) -> ReadPower | None:
        power = route.cpu_power
        if power.fault or power.type == "none":
            return None
        if power.type == "prometheus":
            return self._prometheus(power)
        if power.type == "http":
            if http is None or http.telemetry_url != power.endpoint:
                http = HttpNode(self._http, "", telemetry_url=power.endpoint, timeout_s=power.timeout_s)
            return _heard(http)
        if rapl is not None and hsmp is not None:
            return _first_power(rapl, hsmp)
        # A node behind HTTP whose settings still name the host as source: its own endpoint knows better.
        return _heard(http) if http is not None and http.telemetry_url else None


def _http_cpu(http: HttpNode, node: str, route: ControlRoute) -> list[Capper]:
    by_mode: dict[str, list[Capper]] = {
        "auto": [HttpWatts(http, node), HttpThrottle(http, node)],
        "rapl": [HttpWatts(http, node)],
        "dvfs": [HttpThrottle(http, node)],
    }
    return by_mode[route.mode]


def _same(route: Route) -> bool:
    return route.cpu.endpoint == route.gpu.endpoint or route.cpu.type != "http"


def _heard(http: HttpNode) -> ReadPower:
    async def read() -> float | None:
        try:
            return (await http.telemetry()).cpu_power_w
        except DeviceError:
            return None

    return read


def _first_power(*cappers: Capper) -> ReadPower:
    """Whoever can say it: on AMD the energy counters, where there are none HSMP."""

    async def read() -> float | None:
        for capper in cappers:
            try:
                power_w = await capper.power_w()
            except DeviceError:
                continue
            if power_w is not None:
                return power_w
        return None

    return read

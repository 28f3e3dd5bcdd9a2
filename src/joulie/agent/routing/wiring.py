"""From routes to devices: which cappers a node gets, and where the power of its CPUs is read."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple

from joulie.agent.restore.journal import JournalEntry
from joulie.agent.routing.restore_entries import http_cappers
from joulie.agent.routing.routes import ControlRoute, PowerRoute, Route
from joulie.catalogue.lookup import Catalogue
from joulie.devices.backends import open_host
from joulie.devices.host import Host
from joulie.devices.http.capper import HTTP_CAPPERS, HttpCapper
from joulie.devices.http.client import HttpClient, HttpNode
from joulie.devices.interface import Capper, DeviceError, Kind, Knob, Value
from joulie.devices.sysfs import SysFs
from joulie.devices.topology import Topology, read_topology
from joulie.settings import AgentSettings

Found = Mapping[Knob, Value]
ReadPower = Callable[[], Awaitable[float | None]]

PROMETHEUS_MAX_AGE_S = 120.0  # as POWER_MAX_AGE: an older sample says nothing of now
_NO_HOST = "a pool agent cannot reach the devices of another machine: route this node to http"


class Wired(NamedTuple):
    """One node's devices, in order of preference, and why a kind has none."""

    cappers: tuple[Capper, ...]
    cpu_power: ReadPower | None
    faults: dict[Kind, str]
    http: HttpNode | None = None  # where the node describes its own hardware
    sensors: tuple[Capper, ...] = ()  # CPU backends of the host, for the readings that only some of them offer

    def forget(self) -> None:
        """Answers of devices behind HTTP that are still remembered are of a boot that has ended."""
        for capper in self.cappers:
            if isinstance(capper, HttpCapper):
                capper.at.forget()


class HostDevices:
    """The devices of the machine that this agent runs on."""

    def __init__(self, settings: AgentSettings, catalogue: Catalogue, proc: str = "/proc") -> None:
        self._sysfs = SysFs(settings.host_sys_path, read_only=settings.simulate_only)
        self._settings = settings
        self._catalogue = catalogue
        self._proc = proc

    def topology(self) -> Topology:
        return read_topology(self._sysfs, self._proc)

    def cappers(self, found: Found) -> list[Capper]:
        """One of each backend. `found` is kept up to date: it shows the maximum while a cap hides it."""
        model = self._catalogue.cpu(self.topology().raw_model)
        return open_host(Host(self._sysfs, self._settings.dvfs, model.max_w if model else None, found))


class Wiring:
    """Makes devices for routes. Connections are shared by all nodes of the agent."""

    def __init__(self, host: HostDevices | None, http: HttpClient) -> None:
        self.host = host
        self._http = http

    def wire(self, node: str, route: Route, found: Found) -> Wired:
        faults: dict[Kind, str] = {}
        cappers: list[Capper] = []
        host: list[Capper] = []
        if self.host is not None and "host" in (route.cpu.type, route.gpu.type, route.cpu_power.type):
            host = self.host.cappers(found)
        http = self._http_node(route)
        controls: tuple[tuple[Kind, ControlRoute], ...] = (("cpu", route.cpu), ("gpu", route.gpu))
        for kind, control in controls:
            if (fault := self._fault(control)) is not None:
                faults[kind] = fault
            elif control.type == "host":
                cappers += [capper for capper in host if capper.kind == kind]
            else:
                at = http if http is not None and http.control_url == control.endpoint else self._node_at(control)
                cappers += [
                    capper(at, node)
                    for capper in HTTP_CAPPERS
                    if capper.kind == kind and (capper.mode is None or control.mode in ("auto", capper.mode))
                ]
        sensors: tuple[Capper, ...] = ()
        if "host" in (route.cpu.type, route.cpu_power.type):
            sensors = tuple(capper for capper in host if capper.kind == "cpu")
        return Wired(tuple(cappers), self._cpu_power(route, http, sensors), faults, http, sensors)

    def cappers_for(self, node: str, entries: Iterable[JournalEntry], found: Found) -> list[Capper]:
        """Cappers that can restore what another route once capped."""
        entries = list(entries)
        cappers = http_cappers(self._http, node, entries)
        if self.host is not None and any(not entry.endpoint for entry in entries):
            cappers += self.host.cappers(found)
        return cappers

    def _fault(self, route: ControlRoute) -> str | None:
        """Why this route reaches no device; None: it does."""
        if route.type == "none":
            return "control is routed to none" + (f" by TelemetryProfile {route.profile}" if route.profile else "")
        if route.type == "host" and self.host is None:
            return _NO_HOST
        return route.fault or None

    def _http_node(self, route: Route) -> HttpNode | None:
        """One node at one address: what is known of its CPU and its GPUs comes from one answer."""
        for control in (route.cpu, route.gpu):
            if control.type == "http" and not control.fault:
                return self._node_at(control, route.cpu_power)
        return None

    def _node_at(self, control: ControlRoute, power: PowerRoute | None = None) -> HttpNode:
        telemetry = power.endpoint if power is not None and power.type == "http" else ""
        return HttpNode(self._http, control.endpoint, telemetry_url=telemetry, timeout_s=control.timeout_s)

    def _cpu_power(self, route: Route, http: HttpNode | None, host: tuple[Capper, ...]) -> ReadPower | None:
        power = route.cpu_power
        if power.fault or power.type == "none":
            return None
        if power.type == "prometheus":
            return _prometheus_power(self._http, power)
        if power.type == "http":
            if http is None or http.telemetry_url != power.endpoint:
                http = HttpNode(self._http, "", telemetry_url=power.endpoint, timeout_s=power.timeout_s)
            return _heard(http)
        if host:
            return _first_power(*host)
        # A node behind HTTP whose settings still name the host as source: its own endpoint knows better.
        return _heard(http) if http is not None and http.telemetry_url else None


def _heard(http: HttpNode) -> ReadPower:
    async def read() -> float | None:
        try:
            return (await http.telemetry()).cpu_power_w
        except DeviceError:
            return None

    return read


def _first_power(*cappers: Capper) -> ReadPower:
    """From the first that knows: on AMD the energy counters, or else HSMP."""

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


def _prometheus_power(http: HttpClient, route: PowerRoute) -> ReadPower:
    """The sum of the series that answer the route's query; the client is loaded only where a profile asks for it."""
    from joulie.sources.prometheus import PrometheusClient
    from joulie.sources.transport import SourceError

    client: PrometheusClient | None = None

    async def read() -> float | None:
        nonlocal client
        if client is None:
            client = PrometheusClient(http.session(), route.endpoint, route.timeout_s)
        try:
            samples = await client.query(route.query, time.time(), PROMETHEUS_MAX_AGE_S)
        except SourceError:
            return None
        return math.fsum(sample.value for sample in samples) if samples else None

    return read

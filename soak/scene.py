"""Everything that runs in the soak: control plane, two of each of Joulie's processes, machines, people's wishes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from soak import objects
from soak.component import Component
from soak.machines import HostMachine, SimulatedMachines
from soak.relay import Relays
from soak.state_folders import StateFolders
from testbed.api import ApiError
from testbed.control_plane import ControlPlane
from testbed.processes import Processes, free_port
from testbed.scheduler import Scheduler
from tests.support.rights import Rights

POOL_NODES = 8
HOSTS = ("host-0", "host-1")
CAP_LEASE_S = 30
ADMISSION = Path(__file__).parents[1] / "deploy" / "admission" / "performance-affinity.yaml"
SCOPES = (f"{objects.MANAGED}=true", f"{objects.MANAGED}=true,{objects.HALF_LABEL}=0")
WRONG_ROUTE = "wrong"  # every command is answered with 404
TRIES = 30  # of a person who wants something while the API server is away


class Scene:
    """`with Scene() as scene:` starts all of it, and the end of the block leaves nothing behind."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._ends = contextlib.ExitStack()
        try:
            self._set(say)
        except BaseException:
            self.close()
            raise

    def _set(self, say: Callable[[str], None]) -> None:
        say("control plane")
        self.plane = self._ends.enter_context(ControlPlane())
        self.plane.install_crds()
        self.relays = Relays()
        self._ends.callback(self.relays.close)
        self.processes = Processes(self.plane.folder / "soak")
        self.processes.folder.mkdir(exist_ok=True)
        self._ends.callback(self.processes.close)
        self.states = StateFolders(self.processes.folder / "states")
        self._ends.callback(self.states.close)
        namespaces = ("joulie-system", objects.NAMESPACE)
        self.plane.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in namespaces])
        self.plane.apply(yaml.safe_load_all(ADMISSION.read_text()))
        self.pool = objects.pool_nodes(POOL_NODES)
        self.plane.apply([*self.pool, *map(objects.host_node, HOSTS)])
        self.hosts = {name: HostMachine(self.processes.folder / name) for name in HOSTS}

        # What may be changed while it runs.
        self.route: str | None = "sim-a"
        self.shards = 2
        self.selector = SCOPES[0]
        self.performance = 0.5
        self.pins: dict[str, str] = {}
        self._has_kept_wishes = False
        self.disturbed: dict[str, list[float]] = {}
        self._pod_numbers = count()

        self.components: dict[str, Component] = {}
        self._extender_ports: list[int] = []
        self.machines = {name: SimulatedMachines(free_port()) for name in ("sim-a", "sim-b")}
        self._add_components()
        say("simulators and operators")
        self.send_route()
        for component in self.components.values():
            self._ends.callback(component.kill)
            component.start()
        say("kube-scheduler")
        self.scheduler = self._scheduler()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._ends.close()

    # Looking

    def get(self, path: str) -> list[dict[str, Any]]:
        return list(self.plane.api.get(path).get("items") or ())

    @property
    def agents(self) -> list[Component]:
        return [component for name, component in self.components.items() if name.startswith("agent")]

    # What people and controllers do

    def persistently(self, act: Callable[[], object]) -> None:
        """Again while the API server is away or has not heard of a kind yet."""
        for attempt in range(TRIES):
            try:
                act()
                return
            except (OSError, ApiError) as error:
                final = isinstance(error, ApiError) and error.status in (400, 404, 422)
                if final or attempt == TRIES - 1:
                    raise
                time.sleep(1)

    def apply(self, *manifests: objects.Manifest) -> None:
        self.persistently(lambda: self.plane.apply(manifests))

    def wish(self, manifest: objects.Manifest) -> None:
        """As `apply`; while its kind is gone it is kept for later."""
        try:
            self.apply(manifest)
        except ApiError as error:
            if error.status != 404:
                raise
            self._has_kept_wishes = True

    def send_wishes(self) -> None:
        """The route and every pin, as a person wants them now."""
        self._has_kept_wishes = False
        self.send_route()
        for node, profile in self.pins.items():
            self.wish(objects.pin(node, profile))

    def delete(self, path: str) -> None:
        self._if_there(lambda: self.plane.api.delete(f"{path}?gracePeriodSeconds=0"))

    def label(self, node: str, key: str, value: str | None) -> None:
        """A node that is gone comes back with the labels that it was made with."""
        body = {"metadata": {"labels": {key: value}}}
        self._if_there(lambda: self.plane.api.patch(f"/api/v1/nodes/{node}", body))

    def _if_there(self, act: Callable[[], object]) -> None:
        try:
            self.persistently(act)
        except ApiError as error:
            if error.status != 404:
                raise

    def send_route(self) -> None:
        ways: dict[str | None, str | None] = {name: machines.control for name, machines in self.machines.items()}
        ways[WRONG_ROUTE] = self.machines["sim-a"].control.replace("/control/", "/nowhere/")
        self.wish(objects.route(ways.get(self.route)))

    def new_pods(self, classes: Iterator[str] | list[str], cores: int) -> None:
        for workload_class in classes:
            self.apply(objects.pod(f"pod-{next(self._pod_numbers)}", workload_class, cores))

    def may_disturb(self, node: str, window_s: float = 660.0, at_most: int = 3) -> bool:
        """A cap that others change more than three times in ten minutes is given up as contested, and rightly so."""
        now_s = time.monotonic()
        recent = [at_s for at_s in self.disturbed.get(node, []) if now_s - at_s < window_s]
        if len(recent) >= at_most:
            return False
        self.disturbed[node] = [*recent, now_s]
        return True

    def heal(self) -> None:
        """Whatever was done to processes is over; what people asked for stays as they asked."""
        self.plane.start_apiserver()
        if self._has_kept_wishes:
            self.send_wishes()
        for component in self.components.values():
            self.relays.switch(component.relay, "pass")
            if component.wanted:
                component.start()
        if not self.scheduler.process.running:
            self.scheduler = self._scheduler()
        for machines in self.machines.values():  # a simulator that hung was not told that a fault is over
            self.persistently(machines.end_faults)

    # Within

    def _add_components(self) -> None:
        admin = self.plane.admin_token
        for name, machines in self.machines.items():
            self._add(name, "simulator", admin, partial(_simulator, machines))
        for number in (1, 2):
            self._add(f"operator-{number}", "operator", admin, self._operator)
            port = free_port()
            self._extender_ports.append(port)
            self._add(f"extender-{number}", "extender", admin, partial(_extender, port))
        token = Rights("agent").grant(self.plane)
        for shard in (0, 1):
            self._add(f"agent-{shard}", "agent", token, partial(self._pool_agent, shard))
        for name in HOSTS:
            self._add(f"agent-{name}", "agent", token, partial(self._host_agent, name))

    def _add(self, name: str, command: str, token: str, settings: Callable[[], Mapping[str, str]]) -> None:
        relay = self.relays.to(lambda: [self.plane.port])
        credentials = (Path(self.plane.ca_file), token)
        self.components[name] = Component(name, command, self.processes, relay, credentials, settings)

    def _operator(self) -> dict[str, str]:
        return {
            "RECONCILE_INTERVAL": "1s",
            "TWIN_REFRESH_INTERVAL": "4s",
            "NODE_SELECTOR": self.selector,
            "STATIC_HP_FRAC": str(self.performance),
            "OPERATOR_NODE_POWER_SOURCE": "http",
            "OPERATOR_NODE_POWER_HTTP_ENDPOINT": self.machines["sim-a"].control.replace("control", "telemetry"),
            "POD_NAMESPACE": "joulie-system",
        }

    def _pool_agent(self, shard: int) -> dict[str, str]:
        control = self.machines["sim-a"].control
        return {
            "AGENT_MODE": "pool",
            "POOL_NODE_SELECTOR": f"{objects.MANAGED}=true,{objects.POOL_LABEL}",
            "POOL_SHARDS": str(self.shards),
            "POOL_SHARD_ID": str(shard),
            "TELEMETRY_CPU_CONTROL": "http",
            "TELEMETRY_GPU_CONTROL": "http",
            "TELEMETRY_CPU_CONTROL_HTTP_ENDPOINT": control,
            "TELEMETRY_GPU_CONTROL_HTTP_ENDPOINT": control,
            "TELEMETRY_HTTP_TIMEOUT_SECONDS": "2",
            **self._agent(f"agent-{shard}"),
        }

    def _host_agent(self, name: str) -> dict[str, str]:
        return {"NODE_NAME": name, "HOST_SYS_PATH": str(self.hosts[name].tree.sys), **self._agent(f"agent-{name}")}

    def _agent(self, name: str) -> dict[str, str]:
        return {
            "RECONCILE_INTERVAL": "1s",
            "CAP_LEASE": f"{CAP_LEASE_S}s",
            "STATE_DIR": str(self.states.of(name)),
        }

    def _scheduler(self) -> Scheduler:
        service = self.relays.to(lambda: self._extender_ports)
        extender = {
            "urlPrefix": f"http://127.0.0.1:{service.port}",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "preemptVerb": "preempt",
            "weight": 1,
            "nodeCacheCapable": True,
            "ignorable": True,
            "httpTimeout": "500ms",
        }
        return self.plane.scheduler({"extenders": [extender]})


def _simulator(machines: SimulatedMachines) -> dict[str, str]:
    return {"SIM_ADDR": f"127.0.0.1:{machines.port}", "SIM_NODE_SELECTOR": objects.POOL_LABEL, "SIM_NOISE_PCT": "0"}


def _extender(port: int) -> dict[str, str]:
    return {"EXTENDER_ADDR": f"127.0.0.1:{port}"}

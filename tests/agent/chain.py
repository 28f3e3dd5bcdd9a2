"""Operator, pool agents and simulator as real processes on a real API server, and what can be seen of them."""

from __future__ import annotations

import json
import re
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.objects import load
from testbed.processes import free_port
from tests.agent.agent_processes import AgentProcess, CommandProcess
from tests.support.rights import Rights

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

JOULIE = "/apis/joulie.io/v1alpha1"
_CAP = re.compile(r'^joulie_agent_(requested|enforced)_cap_watts\{node="([^"]+)",device="(\w+)"\} (\S+)$', re.MULTILINE)
_OWNED = re.compile(r'^joulie_agent_last_tick_timestamp_seconds\{node="([^"]+)"\}', re.MULTILINE)


class Chain:
    """A cluster of machines at full load; everything else is started by the test."""

    def __init__(self, plane: ControlPlane, folder: Path, nodes: int, ends: ExitStack) -> None:
        self.plane = plane
        self.folder = folder
        self.names = [f"node-{number:05d}" for number in range(nodes)]
        self._ends = ends
        plane.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "joulie-system"}}])
        load(plane, nodes, 0, kinds=("Node",))
        self._token = Rights("agent").grant(plane)
        busy = folder / "busy.csv"
        busy.write_text("time_s,node,cpu,gpu\n" + "".join(f"0,{name},1.0,1.0\n" for name in self.names))
        self.sim_port = free_port()
        settings = {"SIM_ADDR": f"127.0.0.1:{self.sim_port}", "SIM_NOISE_PCT": "0"}
        self.simulator = ends.enter_context(
            CommandProcess(plane, folder, "simulator", "simulator", "--load", str(busy), **settings)
        )
        self.simulator.wait_until(lambda: len(self.machines()) == nodes, 120, "all machines are simulated")

    def operator(self, performance: float, **settings: str) -> CommandProcess:
        """An operator that keeps this share of nodes at full power."""
        settings = {
            "STATIC_HP_FRAC": str(performance),
            "RECONCILE_INTERVAL": "2s",
            "KUBE_CLIENT_QPS": "5000",
            "KUBE_CLIENT_BURST": "5000",
            **settings,
        }
        return self._ends.enter_context(CommandProcess(self.plane, self.folder, "operator", "operator", **settings))

    def agent(self, shard: int, shards: int, **settings: str) -> AgentProcess:
        """One shard of the pool."""
        control = f"http://127.0.0.1:{self.sim_port}/control/{{node}}"
        settings = {
            "AGENT_MODE": "pool",
            "POOL_SHARDS": str(shards),
            "POD_NAME": f"joulie-agent-{shard}",
            "RECONCILE_INTERVAL": "5s",
            "TELEMETRY_CPU_CONTROL": "http",
            "TELEMETRY_GPU_CONTROL": "http",
            "TELEMETRY_CPU_CONTROL_HTTP_ENDPOINT": control,
            "TELEMETRY_GPU_CONTROL_HTTP_ENDPOINT": control,
            **settings,
        }
        return self._ends.enter_context(
            AgentProcess(self.plane, self.folder, f"agent-{shard}", token=self._token, **settings)
        )

    def machines(self) -> dict[str, dict[str, Any]]:
        """Every machine as it is; none before the simulator listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.sim_port}/debug/nodes", timeout=20) as answer:
                return {machine["node"]: machine for machine in json.load(answer)}
        except OSError:
            return {}

    def cpu_caps_w(self) -> dict[str, float | None]:
        return {name: machine["cpu"]["capWatts"] for name, machine in self.machines().items()}

    def power_w(self) -> float:
        return float(sum(machine["power"]["nodeWatts"] for machine in self.machines().values()))

    def twins(self) -> dict[str, dict[str, Any]]:
        return {twin["metadata"]["name"]: twin for twin in self.plane.api.get(f"{JOULIE}/nodetwins")["items"]}

    def said(self, field: str = "result", kind: str = "cpu") -> dict[str, Any]:
        """What each twin's controlStatus says."""
        return {
            name: twin.get("status", {}).get("controlStatus", {}).get(kind, {}).get(field)
            for name, twin in self.twins().items()
        }

    def hardware(self) -> dict[str, dict[str, Any]]:
        """What is published of each node; an object is there a moment before its status is."""
        items = self.plane.api.get(f"{JOULIE}/nodehardwares")["items"]
        return {item["metadata"]["name"]: item["status"] for item in items or () if "status" in item}


def caps_in_metrics(page: str, which: str) -> dict[tuple[str, str], float]:
    """Requested or enforced watts by node and device."""
    return {(node, device): float(watts) for kind, node, device, watts in _CAP.findall(page) if kind == which}


def owned_in_metrics(page: str) -> set[str]:
    return set(_OWNED.findall(page))

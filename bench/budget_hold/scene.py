"""The cluster of the bench: nodes in racks and on feeds, budgets for both and for all, and every process of ours."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from bench.agent_scale import Command
from bench.budget_hold.machines import Machines
from testbed.api import ApiError
from testbed.control_plane import ControlPlane
from testbed.objects import create_all

Manifest = dict[str, Any]

BUDGETS = "/apis/joulie.io/v1alpha1/powerbudgets"
SHARES = {"rack": 0.80, "feed": 0.78, "cluster": 0.76}  # of what uncapped nodes may draw
CPU_ONLY, WITH_GPUS = "AMD-EPYC-9654", "NVIDIA-H100-80GB-HBM3"


class Size(NamedTuple):
    """How large and how long."""

    nodes: int = 1_000
    racks: int = 50
    agents: int = 10  # pool agents, each with its share of the nodes
    churn_s: float = 60.0
    outage_s: float = 300.0
    budget_lease: str = "60s"
    patience_s: float = 300.0


def node_name(number: int) -> str:
    return f"node-{number:04d}"


class Scene:
    """Everything that runs; the end of the block ends it."""

    def __init__(self, plane: ControlPlane, size: Size, ends: ExitStack) -> None:
        self.plane, self.size = plane, size
        self.random = random.Random(7)
        self._ends = ends
        self.writes_per_s = 0.0  # of this API server, as seen while the nodes were filled
        self._pods: dict[str, str] = {}
        self._number = 0
        self._processes = count()
        racks = {f"r{number % size.racks:02d}" for number in range(size.nodes)}
        self.groups: dict[str, list[str]] = {f"rack/{rack}": [] for rack in sorted(racks)}
        self.groups |= {"feed/a": [], "feed/b": [], "cluster": []}
        plane.install_crds()
        plane.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "joulie-system"}}])
        asyncio.run(create_all(plane, [self._node(number) for number in range(size.nodes)]))
        self.machines = Machines(plane, self.groups)
        ends.enter_context(self.machines.running())
        self.operators: list[Command] = []
        self.agents: list[Command] = []
        for _ in range(2):
            self.start_operator()
        for shard in range(size.agents):
            self.start_agent(shard)

    # Processes

    def start_operator(self) -> None:
        self.operators.append(
            self._ends.enter_context(
                Command(
                    self.plane.kubeconfig,
                    self._folder("operator"),
                    "operator",
                    RECONCILE_INTERVAL="20s",
                    STATIC_HP_FRAC="1",
                    OPERATOR_NODE_POWER_SOURCE="http",
                    OPERATOR_NODE_POWER_HTTP_ENDPOINT=f"{self.machines.url}/telemetry/{{node}}",
                    POD_NAME=f"operator-{len(self.operators)}",
                )
            )
        )

    def start_agent(self, shard: int) -> None:
        control = f"{self.machines.url}/control/{{node}}"
        agent = self._ends.enter_context(
            Command(
                self.plane.kubeconfig,
                self._folder("agent"),
                "agent",
                AGENT_MODE="pool",
                POOL_SHARDS=str(self.size.agents),
                POOL_SHARD_ID=str(shard),
                STATE_DIR=str(self.plane.folder / f"state-{shard}"),
                BUDGET_LEASE=self.size.budget_lease,
                TELEMETRY_CPU_SOURCE="none",
                TELEMETRY_CPU_CONTROL="http",
                TELEMETRY_GPU_CONTROL="http",
                TELEMETRY_CPU_CONTROL_HTTP_ENDPOINT=control,
                TELEMETRY_GPU_CONTROL_HTTP_ENDPOINT=control,
            )
        )
        self.agents[shard : shard + 1] = [agent]

    def _folder(self, command: str) -> Path:
        """One for each process, for its log."""
        folder = self.plane.folder / f"{command}-{next(self._processes)}"
        folder.mkdir()
        return folder

    def leader(self) -> Command:
        for operator in self.operators:
            if "\njoulie_operator_leader 1.0" in operator.page():
                return operator
        raise TimeoutError("no operator leads")

    # Budgets

    def apply_budgets(self, factor: float = 1.0) -> dict[str, float]:
        """The limits, by group; the meter compares with the larger of old and new until `hold` says otherwise."""
        top = self.machines.top_w()
        limits: dict[str, float] = {}
        for kind, label in (("rack", "joulie.io/rack"), ("feed", "example.com/feed"), ("cluster", "")):
            names = [name for name in self.groups if name.split("/")[0] == kind]
            watts = {name: round(factor * SHARES[kind] * top[name]) for name in names}
            limits |= watts
            spec: Manifest = {"watts": max(watts.values()), "restartReserve": 1 if kind != "rack" else 0}
            if label:
                spec["groupBy"] = label
                spec["groups"] = [{"value": name.split("/")[1], "watts": watts[name]} for name in names]
            self.plane.apply(
                [{"apiVersion": "joulie.io/v1alpha1", "kind": "PowerBudget", "metadata": {"name": kind}, "spec": spec}]
            )
        return limits

    def conditions(self) -> dict[str, str]:
        """Of each budget: what its condition Enforced says."""
        found = {}
        for item in self.plane.api.get(BUDGETS).get("items") or ():
            conditions = (item.get("status") or {}).get("conditions") or ()
            said = [f"{each['status']} {each['reason']}" for each in conditions if each["type"] == "Enforced"]
            found[item["metadata"]["name"]] = said[0] if said else "unknown"
        return found

    def is_settled(self) -> bool:
        try:
            return set(self.conditions().values()) == {"True Confirmed"}
        except (OSError, ApiError):
            return False

    # Work

    def fill(self) -> None:
        """Nearly all nodes are busy to the last core and board, so that limits bind."""
        pods = [self._work(number) for number in range(self.size.nodes) if self.random.random() < 0.95]
        began_s = time.monotonic()
        asyncio.run(create_all(self.plane, pods))
        self.writes_per_s = len(pods) / (time.monotonic() - began_s)

    def writing_s(self, writes: int) -> float:
        """What so many writes take at the rate that was measured while everything ran."""
        return writes / self.writes_per_s

    def churn(self, pods: int) -> None:
        """Some pods go, others come elsewhere."""
        gone = self.random.sample(sorted(self._pods), min(len(self._pods), pods))
        for name in gone:
            self.plane.api.delete(f"/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=0")
            del self._pods[name]
        self.plane.apply([self._work(self.random.randrange(self.size.nodes)) for _ in gone])

    def _work(self, number: int) -> Manifest:
        self._number += 1
        name = f"work-{self._number}"
        self._pods[name] = node_name(number)
        gpus = 8 if number % 4 == 3 else 0
        return _pod(name, node_name(number), self.random.choice((150, 190)), gpus, performance=self._number % 5 == 0)

    def writes(self) -> int:
        """Writes to twins that the API server has counted."""
        seen = self.plane.metrics()
        return sum(
            count
            for request, count in seen.items()
            if request.resource == "nodetwins" and request.verb in ("PATCH", "APPLY", "POST")
        )

    def wait(self, done: Callable[[], bool], what: str) -> float:
        began_s = time.monotonic()
        while not done():
            if time.monotonic() - began_s > self.size.patience_s:
                logs = "\n".join(
                    f"{each.log}: {each.log.read_text()[-600:]}" for each in (*self.operators, *self.agents[:1])
                )
                raise TimeoutError(f"{what}: not within {self.size.patience_s:.0f} s; {self.conditions()}\n{logs}")
            time.sleep(0.1)
        return time.monotonic() - began_s

    def _node(self, number: int) -> Manifest:
        name, rack, feed = node_name(number), f"r{number % self.size.racks:02d}", "ab"[number % 2]
        for group in (f"rack/{rack}", f"feed/{feed}", "cluster"):
            self.groups[group].append(name)
        labels = {
            "joulie.io/managed": "true",
            "joulie.io/rack": rack,
            "example.com/feed": feed,
            "joulie.io/hw.cpu-model": CPU_ONLY,
            "joulie.io/hw.cpu-sockets": "2",
        }
        has_gpus = number % 4 == 3
        if has_gpus:
            labels |= {"joulie.io/hw.gpu-model": WITH_GPUS, "joulie.io/hw.gpu-count": "8"}
        status = {
            "capacity": {
                "cpu": "192",
                "memory": "512Gi",
                "pods": "110",
                **({"nvidia.com/gpu": "8"} if has_gpus else {}),
            },
            "nodeInfo": _node_info(f"boot-{number}-0"),
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}

    def reboot(self, number: int) -> None:
        """Caps are gone; kubelet tells the new boot some seconds later."""
        name = node_name(number)
        self.machines.reboot(name)
        boot_id = f"boot-{number}-{time.monotonic():.0f}"
        self.plane.api.patch(f"/api/v1/nodes/{name}/status", {"status": {"nodeInfo": {"bootID": boot_id}}})


def _node_info(boot_id: str) -> Manifest:
    fields = (
        "architecture",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    )
    return {**dict.fromkeys(fields, ""), "bootID": boot_id}


def _pod(name: str, node: str, cores: int, gpus: int, *, performance: bool) -> Manifest:
    requests = {"cpu": str(cores), **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    annotations = {"joulie.io/workload-class": "performance"} if performance else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "work", "image": "none", "resources": {"requests": requests, "limits": requests}}],
        },
    }

"""A cluster that lives: made of the structures that a decision reads, the same for the same seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random
from typing import Any

import msgspec

from joulie.model.api import NodeTwin, PowerBudget
from joulie.model.names import (
    COOLING_ZONE_LABEL,
    CPU_MODEL_LABEL,
    GPU_COUNT_LABEL,
    GPU_MODEL_LABEL,
    MANAGED_LABEL,
    RACK_LABEL,
)
from joulie.model.rfc3339 import format_time
from joulie.model.snapshot import Node, Pin, Pod, Snapshot
from joulie.overview.summary import Facts

KINDS = (("EPYC-9654", "", 0, 800.0), ("EPYC-9534", "H100-SXM", 8, 6400.0), ("XEON-6530", "L40S", 4, 1900.0))
STATES = ("performance", "eco", "eco", "performance", "eco", "performance", "performance", "eco")


class World:
    """Some nodes in racks, with twins that an operator and agents would have written."""

    def __init__(self, nodes: int, now_s: float, *, per_rack: int = 10, pods_per_node: int = 4, seed: int = 7) -> None:
        self.rng = Random(seed)
        self.now_s = now_s
        self.nodes: dict[str, Node] = {}
        self.twins: dict[str, NodeTwin] = {}
        self.pods: dict[str, Pod] = {}
        self.pins: dict[str, Pin] = {}
        self.budgets: dict[str, PowerBudget] = {}
        self.load: dict[str, float] = {}
        self.state: dict[str, str] = {}
        self.blocked: set[str] = set()
        self.silent: dict[str, float] = {}
        self.facts_now = Facts("demo", "operator-1", "queue_aware_v1", 0.0, 50_000.0, 24.5, {"hall-a": 23.0}, 1.31)
        digits = max(2, len(str(nodes - 1)))
        for number in range(nodes):
            self.add_node(f"node-{number:0{digits}d}", f"rack-{number // per_rack}", number, pods_per_node)

    def add_node(
        self, name: str, rack: str, number: int = 0, pods: int = 0, labels: dict[str, str] | None = None
    ) -> None:
        cpu, gpu, gpus, _ = self._kind(number)
        found = {MANAGED_LABEL: "true", RACK_LABEL: rack, COOLING_ZONE_LABEL: "hall-a", CPU_MODEL_LABEL: cpu}
        if gpus:
            found |= {GPU_MODEL_LABEL: gpu, GPU_COUNT_LABEL: str(gpus)}
        self.nodes[name] = Node(name, found | (labels or {}), False, 192.0, float(gpus))
        self.load[name] = self.rng.uniform(0.2, 0.9)
        self.state[name] = STATES[number % len(STATES)]
        for index in range(pods):
            pod = Pod("team-a", f"{name}-work-{index}", name, "standard", 8.0, float(bool(gpus)))
            self.pods[f"{pod.namespace}/{pod.name}"] = pod
        self.write_twin(name, number)

    def write_twin(self, name: str, number: int) -> None:
        _, _, gpus, max_w = self._kind(number)
        eco = self.state[name] == "eco"
        capped_w = max_w * (0.6 if eco else 1.0)
        power_w = min(capped_w, max_w * (0.15 + 0.8 * self.load[name]))
        said = self.silent.get(name, self.now_s - 5)
        held = {"backend": "rapl", "result": "applied", "updatedAt": format_time(said)}
        if name in self.blocked:
            held |= {"result": "blocked", "message": "locked by the BIOS"}
        pct = 60 if eco else 100
        spec: dict[str, Any] = {
            "nodeName": name,
            "profile": "performance" if self.state[name] == "performance" else "eco",
            "cpu": {"packagePowerCapPctOfMax": pct},
            "policy": {"name": "pinned" if any(pin.node == name for pin in self.pins.values()) else "queue_aware_v1"},
        }
        control = {"cpu": held}
        effective: dict[str, Any] = {"cpuPct": 100 if name in self.blocked else pct}
        if gpus:
            spec["gpu"] = {"powerCap": {"scope": "perGpu", "capPctOfMax": pct}}
            control["gpu"] = {**held, "backend": "nvidia", "result": "applied", "message": ""}
            effective["gpuPct"] = pct
        heat = min(100.0, 100 * power_w / 6000 + 12)
        status = {
            "schedulableClass": self.state[name],
            "predictedPowerHeadroomScore": round(100 * (capped_w - power_w) / capped_w, 2),
            "predictedCoolingStressScore": round(heat, 2),
            "predictedPsuStressScore": 38.0,
            "effectiveCapState": effective,
            "estimatedPUE": 1.31,
            "powerMeasurement": {
                "source": "kepler",
                "measuredNodePowerW": round(power_w, 1),
                "nodeCappedPowerW": capped_w,
                "nodeTdpW": max_w,
                "powerTrendWPerMin": round(self.rng.uniform(-40, 40), 1),
            },
            "controlStatus": control,
            "lastUpdated": format_time(self.now_s),
        }
        body = {"metadata": {"name": name}, "spec": spec, "status": status}
        self.twins[name] = msgspec.convert(body, NodeTwin)

    def limit(self, name: str, watts: float, *, seen: bool = True, **more: Any) -> None:
        """A budget for each rack, as a person writes it; `seen`: with what an operator would say of it."""
        before = self.budgets.get(name)
        generation = 1 if before is None else (before.metadata.generation or 0) + 1
        status = msgspec.to_builtins(before.status) if before is not None and before.status is not None else {}
        if seen:
            own_w = {each["value"]: each["watts"] for each in more.get("groups", ())}
            status |= {"observedGeneration": generation, "groups": self._groups(watts, own_w)}
        spec = {"watts": watts, "groupBy": RACK_LABEL, **more}
        body = {"metadata": {"name": name, "generation": generation}, "spec": spec, "status": status}
        self.budgets[name] = msgspec.convert(body, PowerBudget)

    def _groups(self, watts: float, own_w: Mapping[str, float]) -> list[dict[str, Any]]:
        racks: dict[str, list[str]] = {}
        for name, node in self.nodes.items():
            racks.setdefault(node.labels[RACK_LABEL], []).append(name)
        return [
            {
                "value": rack,
                "nodes": len(names),
                "limitWatts": limit_w,
                "allocatedWatts": round(0.97 * limit_w, 1),
                "measuredWatts": round(0.6 * limit_w + 11.5 * len(names), 1),
                "floorWatts": round(0.3 * watts, 1),
                "state": "within",
                "reason": "set by its spec",
            }
            for rack, names in sorted(racks.items())
            for limit_w in (own_w.get(rack, watts),)
        ]

    def step(self, seconds: float, share: float = 1.0) -> None:
        """Time passes: loads wander, and this share of the twins is written again."""
        self.now_s += seconds
        for number, name in enumerate(self.nodes):
            if self.rng.random() < share:
                drift = 0.06 * math.sin(self.now_s / 400 + number) + self.rng.uniform(-0.08, 0.08)
                self.load[name] = min(1.0, max(0.02, self.load[name] + drift * min(1.0, seconds / 10)))
                self.write_twin(name, number)

    def wander(self, count: int, seconds: float) -> None:
        """A few twins are written again, as in a large cluster whose operator spreads its writes."""
        self.now_s += seconds
        names = list(self.nodes)
        for _ in range(count):
            number = self.rng.randrange(len(names))
            self.load[names[number]] = self.rng.uniform(0.1, 1.0)
            self.write_twin(names[number], number)

    def turn(self, name: str, state: str) -> None:
        self.state[name] = state
        self.write_twin(name, list(self.nodes).index(name))

    def read(self) -> Snapshot:
        return Snapshot(self.nodes, self.pods.values(), {}, self.twins, self.pins.values())

    def facts(self) -> Facts:
        return self.facts_now

    def clock(self) -> float:
        return self.now_s

    @staticmethod
    def _kind(number: int) -> tuple[str, str, int, float]:
        return KINDS[number % len(KINDS)]

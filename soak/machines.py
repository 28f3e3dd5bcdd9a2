"""What the devices really hold, read past Joulie: simulated machines over HTTP, and a fake /sys by its files."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

from tests.devices.sysfs_trees import build

CLOSE = 0.015  # of a limit: devices round
WATT = 1.5


class Limit(NamedTuple):
    """One limit of one device: what it holds (None: no limit), and what the device could hold."""

    held_w: float | None
    lowest_w: float
    highest_w: float

    @property
    def in_range(self) -> bool:
        return self.held_w is None or self.lowest_w - WATT <= self.held_w <= self.highest_w + WATT

    def is_as_wanted(self, pct: float) -> bool:
        """Whether this is what `pct` percent of the highest means; 100 percent need no limit at all."""
        wanted_w = max(self.lowest_w, pct / 100 * self.highest_w)
        if pct >= 100 and self.held_w is None:
            return True
        return self.held_w is not None and abs(self.held_w - wanted_w) <= max(WATT, CLOSE * wanted_w)


class SimulatedMachines:
    """The machines behind one simulator."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._ranges: dict[str, dict[str, tuple[float, float]]] = {}

    @property
    def control(self) -> str:
        return f"http://127.0.0.1:{self.port}/control/{{node}}"

    def limits(self) -> dict[str, dict[str, Limit]]:
        """By node: `cpu`, `gpu` where it has some, and `throttle` in percent. OSError while it is away."""
        return {machine["node"]: self._of(machine) for machine in self._get("/debug/nodes")}

    def fault(self, node: str, **fault: Any) -> None:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/debug/faults/{node}", json.dumps(fault).encode(), method="POST"
        )
        urllib.request.urlopen(request, timeout=10).close()

    def end_faults(self) -> None:
        for standing in self._get("/debug/faults"):
            self.fault(standing["node"], fault="none")

    def cap(self, node: str, watts: float) -> None:
        """As a stranger would: past the agent."""
        command = {"node": node, "action": "rapl.set_power_cap_watts", "capWatts": watts}
        request = urllib.request.Request(
            self.control.replace("{node}", node), json.dumps(command).encode(), method="POST"
        )
        urllib.request.urlopen(request, timeout=10).close()

    def _of(self, machine: dict[str, Any]) -> dict[str, Limit]:
        ranges = self._ranges.get(machine["node"]) or self._learn(machine["node"])
        found = {
            "cpu": Limit(machine["cpu"]["capWatts"], *ranges["cpu"]),
            "throttle": Limit(machine["cpu"]["throttlePct"] or None, 0.0, 100.0),
        }
        if "gpu" in ranges:
            found["gpu"] = Limit(machine["gpu"]["capWattsPerGpuTarget"], *ranges["gpu"])
        return found

    def _learn(self, node: str) -> dict[str, tuple[float, float]]:
        state = self._get(f"/state/{node}")
        ranges = {
            device: (float(state[device]["capRangeWatts"]["min"] or 0), float(state[device]["capRangeWatts"]["max"]))
            for device in ("cpu", "gpu")
            if state.get(device)
        }
        self._ranges[node] = ranges
        return ranges

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return json.load(answer)


class HostMachine:
    """Two CPU packages with RAPL limits and cpufreq, as files."""

    def __init__(self, folder: Path) -> None:
        self.tree = build("intel-xeon-6148-dual", folder)
        sys = self.tree.sys / "devices"
        self.packages = [
            name.parent for name in sorted(sys.rglob("name")) if name.read_text().strip().startswith("package-")
        ]
        self._knobs = [
            *(file for package in self.packages for file in sorted(package.glob("constraint_*_power_limit_uw"))),
            *(package / "enabled" for package in self.packages),
            *sorted(sys.rglob("scaling_max_freq")),
        ]
        self.found = self.held()

    def held(self) -> dict[Path, str]:
        return {file: file.read_text().strip() for file in self._knobs}

    @property
    def is_as_found(self) -> bool:
        return self.held() == self.found

    def limits(self) -> dict[str, Limit]:
        """The long-term limit of each package, for as long as it is another than was found."""
        return {
            package.name: Limit(
                self._watts(package, "power_limit") if self.held() != self.found else None,
                1.0,
                self._watts(package, "max_power"),
            )
            for package in self.packages
        }

    @property
    def total_w(self) -> float:
        """The long-term limits of all packages, whatever set them."""
        return sum(self._watts(package, "power_limit") for package in self.packages)

    def long_term(self, package: Path) -> Path:
        return package / "constraint_0_power_limit_uw"

    def _watts(self, package: Path, what: str) -> float:
        return int((package / f"constraint_0_{what}_uw").read_text() or "0") / 1e6

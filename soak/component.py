"""One process of Joulie: started, killed, frozen and started again, with a clock and a relay of its own."""

from __future__ import annotations

import os
import re
import sys
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from soak import child
from soak.relay import Relay
from testbed.credentials import write_kubeconfig
from testbed.processes import Child, Processes, free_port

STOP_S = 90.0
ENFORCED = re.compile(r'^joulie_agent_enforced_cap_watts\{node="([^"]+)",device="([^"]+)"\} (\S+)$', re.MULTILINE)


class Weight(NamedTuple):
    """What a process holds at a moment."""

    memory_mb: float
    descriptors: int


class Component:
    """Restarts keep its ports, its state folder and its clock."""

    def __init__(
        self,
        name: str,
        command: str,
        processes: Processes,
        relay: Relay,
        credentials: tuple[Path, str],  # the authority's certificate, and a token
        settings: Callable[[], Mapping[str, str]],
    ) -> None:
        self.name = name
        self.relay = relay
        self.wanted = True  # whether it should run when nothing is wrong
        self.metrics_port = free_port()
        self.lives: list[list[Weight]] = []
        self._settings = settings
        self._processes = processes
        self._command = command
        self._clock = processes.folder / f"{name}.clock"
        self._clock.write_bytes(child.CLOCK.pack(0.0))
        authority, token = credentials
        url = f"https://127.0.0.1:{relay.port}"
        self._kubeconfig = write_kubeconfig(processes.folder / f"{name}.kubeconfig", url, authority, token)
        self._child: Child | None = None

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.running

    def start(self) -> None:
        """Start it, or let it go on if it is frozen."""
        if self._child is not None and self._child.running:
            self._child.thaw()
            return
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._processes.folder),
            "METRICS_ADDR": f"127.0.0.1:{self.metrics_port}",
            **self._settings(),
        }
        self._child = self._processes.start(
            self.name,
            [
                *("/usr/bin/env", "-i", *(f"{name}={value}" for name, value in variables.items())),
                *(sys.executable, child.__file__, str(self._clock), self._command),
                *("--kubeconfig", str(self._kubeconfig)),
            ],
        )
        self.lives.append([])

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        if self._child is None or not self._child.running:
            return 0
        self._child.thaw()
        return self._child.stop(STOP_S)

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()

    def freeze(self) -> None:
        if self._child is not None:
            self._child.freeze()

    def set_clock(self, offset_s: float) -> None:
        with self._clock.open("r+b") as file:
            file.write(child.CLOCK.pack(offset_s))

    def weigh(self) -> None:
        """Note what it holds now."""
        if not self.running or self._child is None:
            return
        try:
            status = Path(f"/proc/{self._child.pid}/status").read_text()
            descriptors = sum(1 for _ in Path(f"/proc/{self._child.pid}/fd").iterdir())
        except OSError:
            return
        (resident,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
        self.lives[-1].append(Weight(int(resident.split()[1]) / 1000, descriptors))

    def enforced_w(self) -> dict[tuple[str, str], float]:
        """By node and device: the watts that an agent's metrics call enforced. OSError while it does not answer."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as answer:
            return {(node, device): float(watts) for node, device, watts in ENFORCED.findall(answer.read().decode())}

    def log_tail(self) -> str:
        return "" if self._child is None else self._child.log_tail()

"""Every port of ours under attack, with real processes on a real API server.

While a port is attacked, others look on: the operator must keep its lease, a cap that a person asks for must be set,
kube-scheduler's questions and the kubelet's probes must be answered, and no process may take more memory than the chart
gives it, or write a long log. At the end the agent is stopped during an attack, and must leave no cap behind.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import yaml
from rich.console import Console
from rich.table import Table

from bench.agent_scale import NAMESPACE, Command
from bench.attack.witnesses import Asked, CapWatch, LeaseWatch, Witness
from bench.extender.requests import names_body
from bench.joulie_process import ROOT
from testbed.control_plane import ControlPlane
from testbed.objects import load
from testbed.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RENEW_S = 10.0  # for so long the holder of a lease relies on it
QUESTION_S = 0.5
PROBE_S = 5.0  # for so long the chart lets the kubelet wait
LOG_BYTES = 1 << 20
FILES = 1024  # as many as a container often has
SIMULATOR_MB = 1024.0  # the chart does not have it
CHART = ROOT / "deploy" / "chart" / "joulie" / "values.yaml"


class Size(NamedTuple):
    """How hard, how long."""

    nodes: int = 1_000
    seconds: float = 12.0
    idle: int = 5_000
    slow: int = 500
    clients: int = 200
    cap_within_s: float = 30.0  # several intervals of operator and agent
    times: float = 1.0  # what a slow machine may take of the limits


class Port(NamedTuple):
    """One place where we listen, and what there is to ask for."""

    name: str
    port: int
    page: str  # the largest that there is
    post: str


class Seen(NamedTuple):
    """What was seen of one thing during one attack."""

    port: str
    attack: str
    what: str
    seen: float
    limit: float
    unit: str = ""

    @property
    def kept(self) -> bool:
        return self.seen <= self.limit


class Stage:
    """All processes, and all witnesses."""

    def __init__(self, plane: ControlPlane, size: Size, ends: ExitStack) -> None:
        self._plane, self._size = plane, size
        folder = plane.folder
        plane.install_crds()
        plane.apply([NAMESPACE])
        load(plane, size.nodes, 0, kinds=("Node",))
        sim_port, extender_port = free_port(), free_port()
        control = f"http://127.0.0.1:{sim_port}/control/{{node}}"

        def start(command: str, **settings: str) -> Command:
            return ends.enter_context(Command(plane.kubeconfig, folder, command, **settings))

        self.simulator = start("simulator", SIM_ADDR=f"127.0.0.1:{sim_port}")
        fast = {"KUBE_CLIENT_QPS": "100000", "KUBE_CLIENT_BURST": "100000"}
        self.operator = start("operator", RECONCILE_INTERVAL="5s", **fast)
        self.agent = start(
            "agent",
            AGENT_MODE="pool",
            STATE_DIR=str(folder / "state"),
            TELEMETRY_CPU_CONTROL="http",
            TELEMETRY_GPU_CONTROL="http",
            TELEMETRY_CPU_CONTROL_HTTP_ENDPOINT=control,
            TELEMETRY_GPU_CONTROL_HTTP_ENDPOINT=control,
            **fast,
        )
        self.extender = start("extender", EXTENDER_ADDR=f"127.0.0.1:{extender_port}")
        self.processes = {
            "simulator": self.simulator,
            "operator": self.operator,
            "agent": self.agent,
            "extender": self.extender,
        }
        for process in self.processes.values():
            process.bound_files(FILES)
        self.ports = [
            Port("agent", self.agent.port, "/metrics", "/metrics"),
            Port("operator", self.operator.port, "/metrics", "/metrics"),
            Port("dashboard", self.operator.port, "/api/v1/stream", "/api/v1/nodes"),
            Port("extender", extender_port, "/debug/scoring", "/filter"),
            Port("extender metrics", self.extender.port, "/metrics", "/prioritize"),
            Port("simulator", sim_port, "/debug/nodes", "/control/node-00000"),
        ]
        for process in (self.operator, self.agent, self.extender):
            process.wait_until(lambda process=process: _answers(process.port), 120, every_s=0.2)  # type: ignore[misc]
        self.caps = CapWatch(plane.api, "node-00001", sim_port)
        self.operator.wait_until(lambda: self.caps.turn(size.cap_within_s) < size.cap_within_s, 300)
        self.lease = LeaseWatch(plane.api)
        body = names_body(size.nodes, "standard")
        self.questions = Asked(extender_port, "POST", "/prioritize", body)

    def play(self, port: Port, attack: str) -> Iterator[Seen]:
        """One attack on one port."""
        size = self._size
        logs = {name: process.log.stat().st_size for name, process in self.processes.items()}
        path = {"slow readers": port.page, "huge bodies": port.post, "many names": port.post}.get(attack, "/metrics")
        probes = Asked(port.port, "GET", "/healthz", kept=False)
        self.questions.times.seconds.clear()
        self.lease.anew()
        with (
            Witness(self.lease.look, 0.25) as lease,
            Witness(self.questions.look, 0.05) as questions,
            Witness(probes.look, 0.2) as probed,
            self._attackers(port, attack, path),
        ):
            began_s = time.monotonic()
            capped_s = self.caps.turn(size.cap_within_s)
            time.sleep(max(0.0, size.seconds - (time.monotonic() - began_s)))

        def told(what: str, seen: float, limit: float, unit: str = "") -> Seen:
            return Seen(port.name, attack, what, seen, limit, unit)

        yield told("holders of the lease", len(self.lease.holders), 1)
        yield told("lease not renewed for", self.lease.latest_s, RENEW_S, "s")
        yield told("looks at the lease that failed", len(lease.faults), 0)
        yield told("a cap is set after", capped_s, size.cap_within_s, "s")
        yield told("scheduler's p99", self.questions.times.p99_s, QUESTION_S * size.times, "s")
        yield told("questions not answered", len(questions.faults), questions.looks // 100)
        yield told("probe's p99", probes.times.p99_s if probes.times.seconds else 99.0, PROBE_S * size.times, "s")
        yield told("probes not answered", len(probed.faults), probed.looks // 100)
        limits = memory_limits_mb()
        for name, process in self.processes.items():
            yield told(f"memory of {name}", process.peak_mb(), limits.get(name, SIMULATOR_MB), "MB")
            yield told(f"log of {name}", process.log.stat().st_size - logs[name], LOG_BYTES, "bytes")

    def stop_agent(self) -> Seen:
        """During the worst for it: every cap is taken back."""
        port = self.ports[0]
        with self._attackers(port, "idle connections", "/metrics"), self._attackers(port, "scrapes", "/metrics"):
            time.sleep(min(3.0, self._size.seconds))
            code = self.agent.end(60 * self._size.times)
        return Seen(port.name, "stopped meanwhile", "exit code, caps left", code + self.caps.left(), 0)

    def _attackers(self, port: Port, attack: str, path: str) -> subprocess.Popen[bytes]:
        size = self._size
        counts = {
            "nothing": 1,
            "idle connections": size.idle,
            "slow heads": size.slow,
            "many names": 4,
            "huge bodies": 20,
        }
        words = [attack, str(port.port), path, str(counts.get(attack, size.clients)), str(size.seconds)]
        return subprocess.Popen([sys.executable, "-m", "bench.attack.attacks", *words], cwd=ROOT)


def memory_limits_mb() -> dict[str, float]:
    """What the chart gives each component."""
    values = yaml.safe_load(CHART.read_text())
    found = {}
    for name in ("operator", "agent", "extender"):
        text = values[name]["resources"]["limits"]["memory"]
        found[name] = float(text[:-2]) * {"Mi": 1 << 20, "Gi": 1 << 30}[text[-2:]] / 1e6
    return found


def abuse(size: Size, say: Callable[[str], None], attacks: list[str]) -> list[Seen]:
    """All attacks on all ports."""
    seen: list[Seen] = []
    with ControlPlane() as plane, ExitStack() as ends:
        say("starting")
        stage = Stage(plane, size, ends)
        for port in stage.ports:
            for attack in attacks:
                say(f"{port.name}: {attack}")
                seen += stage.play(port, attack)
        say("the agent is stopped")
        seen.append(stage.stop_agent())
    return seen


def print_seen(console: Console, seen: list[Seen]) -> bool:
    """A line for each port and attack, and one more for each promise that is not kept."""
    table = Table(title="Every port under attack: what was seen")
    whats = ("lease not renewed for", "a cap is set after", "scheduler's p99", "probe's p99")
    for heading in ("port", "attack", *whats, "most memory, of its limit", ""):
        table.add_column(heading)
    for port, attack in dict.fromkeys((one.port, one.attack) for one in seen):
        own = [one for one in seen if (one.port, one.attack) == (port, attack)]
        by_what = {one.what: f"{one.seen:.2f} s" for one in own}
        memory = max((one for one in own if one.unit == "MB"), key=lambda one: one.seen / one.limit, default=None)
        told = "" if memory is None else f"{memory.what[10:]} {memory.seen:.0f} of {memory.limit:.0f} MB"
        broken = [f"{one.what}: {one.seen:.4g} {one.unit} > {one.limit:.4g}" for one in own if not one.kept]
        cells = [by_what.get(what, "") for what in whats]
        table.add_row(port, attack, *cells, told, "[bold red]" + "; ".join(broken) + "[/]" if broken else "ok")
    console.print(table)
    return all(one.kept for one in seen)


def _answers(port: int) -> bool:
    try:
        Asked(port, "GET", "/readyz", kept=False).look()
    except OSError:
        return False
    return True

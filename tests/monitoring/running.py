"""All of Joulie as it runs, for a real Prometheus to look at: the demo, or processes on a real API server."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from testbed.processes import free_port
from tests.agent.chain import Chain
from tests.extender.api_objects import pod
from tests.extender.scheduler.processes import RunningExtender

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

NODES = 10
DEMO_PARTS = ("operator", "agent", "extender", "simulator", "agent-1", "agent-2", "agent-3")  # at this speed
MAX_BASE = 65_500
LONG_S = 120.0


class Running(NamedTuple):
    """Where each process of a whole Joulie shows its metrics."""

    targets: dict[str, str]  # operator, agent, extender, simulator, and what else there is: host:port
    nodes: list[str]  # for questions to the extender

    def page(self, process: str) -> str:
        with urllib.request.urlopen(f"http://{self.targets[process]}/metrics", timeout=20) as answer:
            page: str = answer.read().decode()
            return page

    def disturb(self, node: str, fault: str) -> None:
        """A fault of a simulated machine; `gone` does not answer any more, `none` ends all."""
        url = f"http://{self.targets['simulator']}/debug/faults/{node}"
        request = urllib.request.Request(url, json.dumps({"fault": fault}).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert answer.status == 200

    def ask_extender(self) -> None:
        """As kube-scheduler would, for a pod of each class."""
        for performance in (False, True):
            body = json.dumps({"Pod": pod(performance=performance), "Nodes": None, "NodeNames": self.nodes}).encode()
            for verb in ("filter", "prioritize"):
                with urllib.request.urlopen(f"http://{self.targets['extender']}/{verb}", body, timeout=20) as answer:
                    assert answer.status == 200


@contextmanager
def demo(folder: Path) -> Iterator[Running]:
    """`joulie demo` for a while."""
    base = _free_ports()
    command = [sys.executable, "-m", "joulie", "demo", "--speed", "20", "--for", "10m", "--port", "0", "--no-browser"]
    with (folder / "demo.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--metrics-ports", str(base)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        yield Running({part: f"127.0.0.1:{base + number}" for number, part in enumerate(DEMO_PARTS)}, [])
    finally:
        process.kill()  # its own good ending is for its own tests
        process.wait()


def _free_ports() -> int:
    """The first of some ports in a row that are free now."""
    while True:
        base = free_port()
        if base + len(DEMO_PARTS) > MAX_BASE:
            continue
        with ExitStack() as probes, suppress(OSError):
            for number in range(len(DEMO_PARTS)):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", base + number))
            return base


def started(plane: ControlPlane, folder: Path, ends: ExitStack) -> Running:
    """Half of the nodes at full power, half capped, all of them reported."""
    chain = Chain(plane, folder, NODES, ends)
    simulator = f"127.0.0.1:{chain.sim_port}"
    operator = chain.operator(
        performance=0.5,
        RECONCILE_INTERVAL="1s",
        POWER_BUDGET_WATTS="1000000",
        OPERATOR_NODE_POWER_SOURCE="http",
        OPERATOR_NODE_POWER_HTTP_ENDPOINT=f"http://{simulator}/telemetry/{{node}}",
        ENABLE_FACILITY_METRICS="true",
        FACILITY_PROMETHEUS_ADDRESS=f"http://{simulator}",
        FACILITY_POLL_INTERVAL="1s",
    )
    agent = chain.agent(0, 1, RECONCILE_INTERVAL="1s")
    extender = ends.enter_context(RunningExtender(plane, folder))
    agent.wait_until(lambda: set(chain.said().values()) == {"applied"}, LONG_S, "every twin says applied", every_s=0.5)
    ports = {"operator": operator.port, "agent": agent.port, "extender": extender.port, "simulator": chain.sim_port}
    return Running({process: f"127.0.0.1:{port}" for process, port in ports.items()}, chain.names)


def answer_of(prometheus: str, expr: str) -> list[dict[str, Any]]:
    """What an instant query gives."""
    result: list[dict[str, Any]] = _asked(prometheus, f"query?{urllib.parse.urlencode({'query': expr})}")["result"]
    return result


def alerts_of(prometheus: str) -> list[dict[str, Any]]:
    """What fires."""
    return [alert for alert in _asked(prometheus, "alerts")["alerts"] if alert["state"] == "firing"]


def _asked(prometheus: str, what: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{prometheus}/api/v1/{what}", timeout=20) as answer:
        found: dict[str, Any] = json.load(answer)["data"]
        return found

"""The pool agent at 1,000 nodes on a real API server and simulated machines, and how its cost grows up to 10,000.

Operator, simulator, API server and etcd share the machine with the agent; what is measured is the CPU time and memory
of the agent's process alone, at the interval that it has by default. Half of the machines are capped.
"""

from __future__ import annotations

import itertools
import math
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from bench.figures import Figure
from bench.joulie_process import JoulieProcess
from testbed.control_plane import ControlPlane
from testbed.objects import load
from testbed.processes import free_port

NODES = 1_000
GROWTH = (NODES, 2_000, 5_000, 10_000)
INTERVAL_S = 20.0
STEADY_INTERVALS = 3
MAX_SHARE_OF_A_CORE = 0.5
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "joulie-system"}}
FAST = {"KUBE_CLIENT_QPS": "100000", "KUBE_CLIENT_BURST": "100000", "RECONCILE_INTERVAL": "30s"}


class Command(JoulieProcess):
    """A command of `joulie` on this cluster."""

    def __init__(self, kubeconfig: Path, folder: Path, command: str, **settings: str) -> None:
        self.port = free_port()
        arguments = [command, "--kubeconfig", str(kubeconfig)]
        addresses = {"METRICS_ADDR": f"127.0.0.1:{self.port}"}
        super().__init__("joulie", arguments, folder / f"{command}.log", **addresses, **settings)

    def page(self) -> str:
        """Its metrics; empty before it listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
                page: str = answer.read().decode()
                return page
        except OSError:
            return ""


class Size(NamedTuple):
    """One pool agent on one cluster."""

    nodes: int
    first_contact_s: float  # from its start until every node is reported
    share: float  # of a core when nothing changes
    peak_mb: float
    page_s: float  # of one scrape
    page_mb: float


def agent_figures(console: Console) -> list[Figure]:
    """the pool agent on a real API server and simulated machines"""
    began_s = time.monotonic()
    sizes: list[Size] = []
    with console.status("") as status:
        for nodes in GROWTH:

            def say(what: str, nodes: int = nodes) -> None:
                passed_s = time.monotonic() - began_s
                status.update(f"agent at {nodes:,} nodes: {what} ({passed_s // 60:.0f}:{passed_s % 60:02.0f})")

            try:
                with ControlPlane() as plane:
                    sizes.append(measure(plane, nodes, say))
            except TimeoutError as error:
                if not sizes:
                    raise
                reason = str(error).splitlines()[0]
                console.print(f"[bold red]not measured:[/] {nodes:,} nodes on this machine: {reason}")
                break
            console.print(_line(sizes[-1]), highlight=False)
    _print_growth(console, sizes, time.monotonic() - began_s)
    main = next(size for size in sizes if size.nodes == NODES)
    figures = [
        Figure(
            f"pool agent, {NODES:,} nodes: CPU",
            "half a core",
            main.share / MAX_SHARE_OF_A_CORE,
            1.0,
            f"{main.share:.1%} of a core at an interval of {INTERVAL_S:.0f} s",
        )
    ]
    return figures + _growth(sizes)


def measure(plane: ControlPlane, nodes: int, say: Callable[[str], None], intervals: int = STEADY_INTERVALS) -> Size:
    """Fill the cluster, let operator and agent meet every node, then look at the agent while nothing changes."""
    say("filling the cluster")
    plane.install_crds()
    plane.apply([NAMESPACE])
    load(plane, nodes, 0, kinds=("Node",))
    with ExitStack() as ends:
        sim_port = free_port()
        simulator = ends.enter_context(
            Command(plane.kubeconfig, plane.folder, "simulator", SIM_ADDR=f"127.0.0.1:{sim_port}")
        )
        ends.enter_context(Command(plane.kubeconfig, plane.folder, "operator", **FAST))
        say("simulator and operator")
        twins = "/apis/joulie.io/v1alpha1/nodetwins"
        simulator.wait_until(lambda: _count(plane, twins) == nodes, 120 + nodes / 10, every_s=1.0)
        control = f"http://127.0.0.1:{sim_port}/control/{{node}}"
        say("first contact")
        began_s = time.monotonic()
        agent = ends.enter_context(
            Command(
                plane.kubeconfig,
                plane.folder,
                "agent",
                AGENT_MODE="pool",
                STATE_DIR=str(plane.folder / "state"),
                RECONCILE_INTERVAL=f"{INTERVAL_S:.0f}s",
                TELEMETRY_CPU_CONTROL="http",
                TELEMETRY_GPU_CONTROL="http",
                TELEMETRY_CPU_CONTROL_HTTP_ENDPOINT=control,
                TELEMETRY_GPU_CONTROL_HTTP_ENDPOINT=control,
            )
        )
        agent.wait_until(lambda: _reported(agent, nodes), 120 + nodes / 12, every_s=1.0)
        first_contact_s = time.monotonic() - began_s
        say("steady intervals")
        time.sleep(INTERVAL_S)  # what first contact set off is over
        before_s, since_s = agent.cpu_s(), time.monotonic()
        time.sleep(intervals * INTERVAL_S)
        share = (agent.cpu_s() - before_s) / (time.monotonic() - since_s)
        scraped_s = time.monotonic()
        page = agent.page()
        return Size(
            nodes, first_contact_s, share, agent.peak_mb(), time.monotonic() - scraped_s, len(page.encode()) / 1e6
        )


def _count(plane: ControlPlane, path: str) -> int:
    """Without fetching them: the server says how many remain after one."""
    answer = plane.api.get(f"{path}?limit=1")
    return len(answer.get("items") or ()) + int(answer["metadata"].get("remainingItemCount") or 0)


def _reported(agent: Command, nodes: int) -> bool:
    """Every node's hardware and result are written."""
    page = agent.page()
    written = {
        resource: _value(page, f'joulie_agent_api_writes_total{{verb="patch",resource="{resource}/status"}} ')
        for resource in ("nodehardwares", "nodetwins")
    }
    return min(written.values()) >= nodes


def _value(page: str, series: str) -> float:
    _, _, rest = page.partition(f"\n{series}")
    return float(rest.split("\n", 1)[0]) if rest else 0.0


def _growth(sizes: list[Size]) -> list[Figure]:
    """Twice the nodes may cost 2.3 times as much; another factor as much as that many doublings."""
    figures = []
    for few, many in itertools.pairwise(sizes):
        factor = many.nodes / few.nodes
        limit = 2.3 ** math.log2(factor)
        what = f"{few.nodes:,} → {many.nodes:,} nodes"
        figures += [
            Figure(f"pool agent: CPU, {what}", "itself", many.share / few.share, limit, f"{factor:g} × the nodes"),
            Figure(
                f"pool agent: memory, {what}", "itself", many.peak_mb / few.peak_mb, limit, f"{factor:g} × the nodes"
            ),
        ]
    return figures


def _line(size: Size) -> str:
    return (
        f"{size.nodes:>6,} nodes: first contact {size.first_contact_s:.0f} s, {size.share:.1%} of a core, "
        f"peak {size.peak_mb:.0f} MB, a scrape of {size.page_mb:.1f} MB in {size.page_s:.2f} s"
    )


def _print_growth(console: Console, sizes: list[Size], took_s: float) -> None:
    table = Table(title=f"The pool agent's process, interval {INTERVAL_S:.0f} s; measured in {took_s / 60:.1f} minutes")
    for heading in ("nodes", "first contact", "of a core", "CPU a node and tick", "peak memory", "scrape"):
        table.add_column(heading, justify="right")
    for size in sizes:
        table.add_row(
            f"{size.nodes:,}",
            f"{size.first_contact_s:.0f} s",
            f"{size.share:.1%}",
            f"{size.share * INTERVAL_S / size.nodes * 1e6:.0f} µs",
            f"{size.peak_mb:.0f} MB",
            f"{size.page_mb:.1f} MB in {size.page_s:.2f} s",
        )
    console.print(table)

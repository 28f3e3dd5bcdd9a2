"""`joulie simulator` at 5,000 nodes: what real time costs it, how fast a node answers, and how that grows to 10,000.

The simulator is a process of its own that reads its nodes and pods from a file; this program asks it over one
connection, in turns, so that what disturbs one answer disturbs its yardstick too.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from rich.console import Console
from rich.table import Table

from bench.clusters import cluster_json
from bench.figures import Figure
from testbed.processes import free_port

NODES, PODS_PER_NODE = 5_000, 4
GROWTH = (1_250, 2_500, NODES, 10_000)
STEADY_S = 15.0
REQUESTS = 3_000
START_S = 120.0
MAX_SHARE_OF_A_CORE = 0.25
MAX_TIMES_HEALTHZ = 20.0


@dataclass(frozen=True)
class Size:
    """One simulator with so many nodes."""

    nodes: int
    core: float  # share of one core in real time, without requests
    pace: float  # real seconds for a simulated one
    telemetry_p50_s: float
    healthz_p50_s: float
    telemetry_p99_s: float
    healthz_p99_s: float
    page_s: float
    page_mb: float
    peak_mb: float


def simulator_figures(console: Console) -> list[Figure]:
    """the simulator in real time"""
    sizes = []
    for nodes in GROWTH:
        with console.status(f"simulator at {nodes:,} nodes"):
            sizes.append(measure(nodes))
    _print_growth(console, sizes)
    main = next(size for size in sizes if size.nodes == NODES)
    return [
        Figure(
            f"{NODES:,} nodes in real time: CPU",
            "one core",
            main.core,
            MAX_SHARE_OF_A_CORE,
            f"{main.core:.1%} of a core",
        ),
        Figure("simulated time", "the clock", main.pace, 1.2, f"{main.pace:.2f} s for a second, at a step of 1 s"),
        Figure(
            "/telemetry, p99",
            "/healthz, p99",
            main.telemetry_p99_s / main.healthz_p99_s,
            MAX_TIMES_HEALTHZ,
            f"{main.telemetry_p99_s * 1e3:.2f} ms of {main.healthz_p99_s * 1e3:.2f} ms; median "
            f"{main.telemetry_p50_s * 1e3:.2f} ms of {main.healthz_p50_s * 1e3:.2f} ms",
        ),
    ]


def measure(nodes: int, *, steady_s: float = STEADY_S, requests: int = REQUESTS) -> Size:
    """Start a simulator of so many nodes, leave it alone for a while, then ask it."""
    with _running(nodes) as (process, port):
        asked = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        names = [each["node"] for each in json.loads(_get(asked, "/debug/nodes"))]
        if len(names) != nodes:
            raise ValueError(f"{len(names)} nodes are simulated, not {nodes}")
        cpu_s, began_s, simulated_s = _cpu_s(process), time.monotonic(), _simulated_s(asked)
        time.sleep(steady_s)
        core = (_cpu_s(process) - cpu_s) / (time.monotonic() - began_s)
        passed_s = time.monotonic() - began_s
        pace = passed_s / max(_simulated_s(asked) - simulated_s, 1e-9)
        telemetry, healthz = _latencies(asked, names, requests)
        started_s = time.perf_counter()
        page = _get(asked, "/metrics")
        page_s = time.perf_counter() - started_s
        asked.close()
        return Size(
            nodes,
            core,
            pace,
            statistics.median(telemetry),
            statistics.median(healthz),
            _p99(telemetry),
            _p99(healthz),
            page_s,
            len(page) / 1e6,
            _peak_mb(process),
        )


@contextmanager
def _running(nodes: int) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cluster.json"
        file.write_bytes(cluster_json(nodes, PODS_PER_NODE))
        command = [sys.executable, "-m", "joulie", "simulator", "--from", str(file), "--log-level", "warning"]
        env = {"PATH": os.environ["PATH"], "SIM_ADDR": f"127.0.0.1:{port}"}
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait_for(port, process)
            yield process, port
        finally:
            process.terminate()
            process.wait(10)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end_s = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < end_s:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            if _simulated_s(connection) >= 3:  # it has found its pace
                connection.close()
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise TimeoutError("the simulator did not start")


def _latencies(asked: http.client.HTTPConnection, names: list[str], requests: int) -> tuple[list[float], list[float]]:
    rng = Random(1)
    telemetry: list[float] = []
    healthz: list[float] = []
    for _ in range(requests):
        for path, times in ((f"/telemetry/{rng.choice(names)}", telemetry), ("/healthz", healthz)):
            started_s = time.perf_counter()
            _get(asked, path)
            times.append(time.perf_counter() - started_s)
    return telemetry, healthz


def _get(asked: http.client.HTTPConnection, path: str) -> bytes:
    asked.request("GET", path)
    response = asked.getresponse()
    body = response.read()
    if response.status != http.client.OK:
        raise ValueError(f"{path}: HTTP {response.status}")
    return body


def _simulated_s(asked: http.client.HTTPConnection) -> float:
    page = _get(asked, "/metrics").decode()
    line = next(line for line in page.splitlines() if line.startswith("joulie_sim_simulated_seconds_total "))
    return float(line.split()[1])


def _p99(times_s: list[float]) -> float:
    return sorted(times_s)[int(0.99 * len(times_s))]


def _cpu_s(process: subprocess.Popen[bytes]) -> float:
    threads = Path(f"/proc/{process.pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def _peak_mb(process: subprocess.Popen[bytes]) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    (line,) = (line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


def _print_growth(console: Console, sizes: list[Size]) -> None:
    table = Table(title="The simulator's process in real time at a step of 1 s")
    headings = ("nodes", "of a core", "/telemetry p99", "/healthz p99", "times", "/metrics", "peak memory")
    for heading in headings:
        table.add_column(heading, justify="right")
    for size in sizes:
        table.add_row(
            f"{size.nodes:,}",
            f"{size.core:.2%}",
            f"{size.telemetry_p99_s * 1e3:.2f} ms",
            f"{size.healthz_p99_s * 1e3:.2f} ms",
            f"{size.telemetry_p99_s / size.healthz_p99_s:.1f}",
            f"{size.page_mb:.1f} MB in {size.page_s * 1e3:.0f} ms",
            f"{size.peak_mb:.0f} MB",
        )
    console.print(table)

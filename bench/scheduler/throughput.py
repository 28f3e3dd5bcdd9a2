"""How many pods a second a real kube-scheduler binds on 1,000 nodes: alone, by watts as a resource, with extenders.

Nodes, twins and all pods are there before a scheduler starts, so that binding them is all that happens. Each run has
pods of its own; runs go forth and back through the ways of scheduling. Two ways are compared within each round, and the
median of the rounds counts: a machine may be half as fast minutes later, and then medians of each way compare different
moments (they are shown as well). Scheduler, API server, etcd, extender and this program share the machine.
"""

from __future__ import annotations

import contextlib
import socket
import statistics
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml
from rich.console import Console
from rich.table import Table

from bench.clusters import cluster
from bench.extender.process import ExtenderProcess
from bench.figures import Figure
from bench.joulie_process import ROOT, JoulieProcess
from bench.scheduler.pods import WATTS, Bindings, waiting_pods
from testbed.control_plane import ControlPlane
from testbed.objects import store
from testbed.processes import free_port

NODES, PODS = 1_000, 1_000
ROUNDS = 15  # forth, back, forth, …: from one run to the next a machine may be a sixth faster or slower
EVERY = 3  # rounds: what is far from its limit is measured less often
SHIPPED = ROOT / "deploy" / "scheduler" / "second-scheduler.yaml"
BY_WATTS = ROOT / "deploy" / "scheduler" / "spread-by-watts.yaml"
ALONE, BARE, JOULIE, PROFILE = "no extender, defaults", "bare extender", "Joulie's extender", "Joulie, shipped profile"
AS_RESOURCE = "watts as a resource"
WAYS = (ALONE, AS_RESOURCE, BARE, JOULIE, PROFILE)
MIN_OF_BARE, MIN_OF_ALONE = 0.85, 0.55
NODE_W = "1000000"


class Run(NamedTuple):
    """One scheduler on its pods."""

    way: str
    pods_per_s: float
    longest_pause_s: float
    extender_cpu_s: float  # a pod


def scheduler_figures(console: Console) -> list[Figure]:
    """a real kube-scheduler with extenders"""
    began_s = time.monotonic()
    order = [way for number in range(ROUNDS) for way in _ways(number)]
    runs: list[Run] = []
    with console.status("scheduler: filling the cluster") as status, ControlPlane() as plane:
        plane.install_crds()
        pods = [
            pod
            for number, way in enumerate(order)
            for pod in waiting_pods(_scheduler(number), PODS, watts=way == AS_RESOURCE)
        ]
        store(plane, [*_machines(NODES), *pods])
        for number, way in enumerate(order):
            status.update(f"scheduler, run {number + 1} of {len(order)}: {way} ({time.monotonic() - began_s:.0f} s)")
            runs.append(_run(plane, way, _scheduler(number)))
            console.print(_line(runs[-1]), highlight=False)
    rates = {way: statistics.median(_rates(runs, way)) for way in WAYS}
    _print_rates(console, runs, rates, time.monotonic() - began_s)
    return [_figure(runs, rates, *each) for each in ((JOULIE, BARE, MIN_OF_BARE), (PROFILE, ALONE, MIN_OF_ALONE))]


def _ways(number: int) -> tuple[str, ...]:
    """What is measured in a round."""
    ways = WAYS if number % EVERY == 0 else (BARE, JOULIE)
    return ways if number % 2 == 0 else ways[::-1]


def _figure(runs: list[Run], rates: Mapping[str, float], way: str, against: str, least: float) -> Figure:
    """As time for a pod, of which less is better."""
    parts = [mine / theirs for mine, theirs in zip(_rates(runs, way), _rates(runs, against), strict=True)]
    part = statistics.median(parts)
    each = ", ".join(f"{one:.0%}" for one in parts)
    detail = f"{part:.0%} of the pods ({each}); by medians {rates[way]:.0f} of {rates[against]:.0f} pods/s"
    return Figure(f"{way}: time for a pod", against, 1 / part, 1 / least, detail)


def _rates(runs: list[Run], way: str) -> list[float]:
    """Round by round."""
    return [run.pods_per_s for run in runs if run.way == way]


def _machines(nodes: int) -> list[dict[str, Any]]:
    """Nodes with twins of this moment, and more watts than all pods ask for."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    machines = list(cluster(nodes, 0))
    for item in machines:
        if item["kind"] == "NodeTwin":
            item["status"]["lastUpdated"] = now
        elif item["kind"] == "Node":
            for side in ("capacity", "allocatable"):
                item["status"].setdefault(side, {})[WATTS] = NODE_W
    return machines


def _scheduler(number: int) -> str:
    return f"run-{number}"


def _run(plane: ControlPlane, way: str, scheduler: str) -> Run:
    port = free_port()
    if way == ALONE:
        return _bind(plane, way, scheduler, {"profiles": [{"schedulerName": scheduler}]})
    if way == AS_RESOURCE:
        (profile,) = yaml.safe_load(BY_WATTS.read_text())["profiles"]
        return _bind(plane, way, scheduler, {"profiles": [{**profile, "schedulerName": scheduler}]})
    config = shipped_config(scheduler, port)
    if way != PROFILE:
        config["profiles"] = [{"schedulerName": scheduler}]
    if way == BARE:
        log = plane.folder / f"{scheduler}-extender.log"
        with JoulieProcess("bench.extender.bare_extender", [f"127.0.0.1:{port}"], log) as extender:
            extender.wait_until(lambda: _listens(port), 10)
            return _bind(plane, way, scheduler, config, extender)
    arguments = ["--kubeconfig", str(plane.kubeconfig)]
    staleness = {"TWIN_STALENESS_THRESHOLD": "1h"}
    metrics_port = free_port()
    with ExtenderProcess(plane.folder, port, metrics_port, arguments, **staleness) as joulie:
        run = _bind(plane, way, scheduler, config, joulie)
        asked = joulie.requests_answered()
    if min(asked.values()) < PODS:
        raise SystemExit(f"{way}: the extender was asked about fewer than {PODS} pods ({asked}): nothing was measured")
    return run


def _bind(
    plane: ControlPlane, way: str, scheduler: str, config: Mapping[str, Any], extender: JoulieProcess | None = None
) -> Run:
    before_s = extender.cpu_s() if extender else 0.0
    with Bindings(plane, scheduler, PODS) as bindings, plane.scheduler(config):
        bindings.wait()
    cpu_s = (extender.cpu_s() if extender else 0.0) - before_s
    return Run(way, bindings.pods_per_s, bindings.longest_pause_s, cpu_s / PODS)


def shipped_config(scheduler: str, port: int) -> dict[str, Any]:
    """What `deploy/` ships, for this control plane and these pods.

    With more patience: an answer that the scheduler no longer waits for would make it faster.
    """
    shipped = yaml.safe_load(SHIPPED.read_text())
    (profile,), (extender,) = shipped["profiles"], shipped["extenders"]
    return {
        "profiles": [{**profile, "schedulerName": scheduler}],
        "extenders": [{**extender, "urlPrefix": f"http://127.0.0.1:{port}", "httpTimeout": "30s"}],
    }


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def _line(run: Run) -> str:
    return (
        f"{run.way:<24} {run.pods_per_s:6.1f} pods/s, longest pause {run.longest_pause_s:.2f} s, "
        f"extender {run.extender_cpu_s * 1e3:.2f} ms of CPU a pod"
    )


def _print_rates(console: Console, runs: list[Run], rates: Mapping[str, float], took_s: float) -> None:
    table = Table(title=f"{PODS:,} pods on {NODES:,} nodes, medians; measured in {took_s / 60:.1f} minutes")
    for heading in ("kube-scheduler with", "pods/s", "of no extender", "runs", "extender's CPU a pod"):
        table.add_column(heading, justify="left" if heading.startswith("kube") else "right")
    for way, rate in rates.items():
        mine = [run for run in runs if run.way == way]
        cpu_s = statistics.mean(run.extender_cpu_s for run in mine)
        each = ", ".join(f"{run.pods_per_s:.0f}" for run in mine)
        table.add_row(way, f"{rate:.0f}", f"{rate / rates[ALONE]:.0%}", each, f"{cpu_s * 1e3:.2f} ms")
    console.print(table)

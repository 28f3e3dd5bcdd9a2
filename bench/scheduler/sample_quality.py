"""What a sample of the nodes costs in quality: `python -m bench.scheduler.sample_quality`.

A real kube-scheduler with Joulie's extender binds the same pods on the same nodes with different samples. Its bindings
are then replayed on the score board, in their order: what was the chosen node worth at that moment, and what the best?
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.clusters import cluster
from bench.extender.process import ExtenderProcess
from bench.scheduler.pods import PATH, Bindings, waiting_pods
from bench.scheduler.throughput import shipped_config
from joulie.catalogue.lookup import Catalogue
from joulie.cluster.files.collection import Collection
from joulie.control.scoring import CLASS_CODES, score
from joulie.extender.process import Extender
from joulie.model.names import DRAINING, ECO, PERFORMANCE
from joulie.model.snapshot import Pod
from joulie.settings import ExtenderSettings
from testbed.control_plane import ControlPlane
from testbed.objects import store
from testbed.processes import free_port

NODES, PODS = 1_000, 1_000
LARGE = ("2", "4", "8", "16")  # cores
SAMPLES = (10, 0, 100)  # percent; 0: kube-scheduler's own choice, 42 % of 1,000
ALWAYS_BEST = "the best node each time"
# By kind of machine (bench.clusters): what a node may draw when nothing is capped.
FULL_W = (720.0, 1_000.0, 1_940.0, 6_160.0, 6_640.0)
ECO_PART = 0.6

Manifests = Sequence[dict[str, Any]]


class Quality(NamedTuple):
    """How well one way to choose did."""

    chosen: float  # mean score
    best: float  # mean of the best score that there was
    in_top: float  # part of the pods that got one of the best tenth of the nodes
    fullest_headroom: float  # percent of the budget: a twentieth of the nodes has less, afterwards
    most_pods: int  # on one node
    added_w: float


def main() -> None:
    console = Console()
    machines = _spread_out(NODES)
    measured: dict[str, tuple[Quality, float | None]] = {}
    with ControlPlane() as plane, console.status("filling the cluster") as status:
        plane.install_crds()
        pods = {percent: waiting_pods(f"sample-{percent}", PODS, LARGE) for percent in SAMPLES}
        store(plane, [*machines, *(pod for group in pods.values() for pod in group)])
        for percent in SAMPLES:
            status.update(f"{percent} % of the nodes")
            bindings = _bound(plane, percent)
            name = f"{percent} %" if percent else "unset (42 %)"
            measured[name] = _replayed(machines, pods[percent], bindings.nodes), bindings.pods_per_s
            plane.api.delete(f"{PATH}?gracePeriodSeconds=0&fieldSelector=spec.schedulerName%3Dsample-{percent}")
    measured[ALWAYS_BEST] = _replayed(machines, pods[SAMPLES[0]], None), None
    _print(console, measured)


def _spread_out(nodes: int) -> Manifests:
    """Nodes that are busy in different degrees: on average 57 % of the budget is taken."""
    rng = Random(3)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    items = list(cluster(nodes, 0))
    for number, twin in enumerate(item for item in items if item["kind"] == "NodeTwin"):
        status = twin["status"]
        part = ECO_PART if status["schedulableClass"] == ECO else 1.0
        budget_w = FULL_W[number % len(FULL_W)] * part
        status["powerMeasurement"] |= {
            "measuredNodePowerW": budget_w * rng.betavariate(4, 3),
            "nodeCappedPowerW": budget_w,
            "powerTrendWPerMin": rng.gauss(0, 15),
        }
        status["predictedCoolingStressScore"] = 100 * rng.betavariate(2, 5)
        status["lastUpdated"] = now
    return items


def _bound(plane: ControlPlane, percent: int) -> Bindings:
    """What a scheduler does that looks at so many nodes."""
    scheduler, port = f"sample-{percent}", free_port()
    config = shipped_config(scheduler, port)
    config["profiles"][0]["percentageOfNodesToScore"] = percent
    arguments = ["--kubeconfig", str(plane.kubeconfig)]
    with (
        ExtenderProcess(plane.folder, port, free_port(), arguments, TWIN_STALENESS_THRESHOLD="1h"),
        Bindings(plane, scheduler, PODS) as bindings,
        plane.scheduler(config),
    ):
        bindings.wait()
    return bindings


def _replayed(machines: Manifests, waiting: Manifests, nodes: Mapping[str, str] | None) -> Quality:
    """The pods one after the other on the nodes that they were given, or (None) on the best for each."""
    collection = Collection()
    collection.add("generated", [*machines, *waiting])
    snapshot = collection.snapshot()
    pods = {pod.name: pod for pod in snapshot.pods}
    now_s = time.time()
    board = Extender(ExtenderSettings(), Catalogue()).state.board
    for name, node in snapshot.nodes.items():
        board.put_hardware(name, snapshot.hardware.get(name))
        board.put_node(name, node)
        board.put_twin(name, snapshot.twins[name].status)
    board.updated_s[: len(board.names)] = now_s  # every twin is fresh, and every pod comes after it
    rows = np.arange(len(board.names))
    kept_off = np.isin(board.columns.class_code[rows], [CLASS_CODES[ECO], CLASS_CODES[DRAINING]])
    chosen: list[float] = []
    best: list[float] = []
    pods_on = np.zeros(len(rows), dtype=np.int64)
    in_top, added_w = 0, 0.0
    for name in nodes or pods:
        pod = pods[name]
        scored = score(board.prepared(now_s), pod.cpu_cores, pod.gpus, pod.workload_class)
        open_rows = rows[~kept_off] if pod.workload_class == PERFORMANCE else rows
        points = scored.score[open_rows]
        row = board.index[nodes[name]] if nodes else int(open_rows[points.argmax()])
        chosen.append(float(scored.score[row]))
        best.append(float(points.max()))
        in_top += bool(scored.score[row] >= np.quantile(points, 0.9))
        added_w += float(scored.marginal_w[row])
        pods_on[row] += 1
        board.put_pod(name, None, _on(pod, board.names[row], now_s))
    headroom = board.prepared(now_s).headroom[rows]
    return Quality(
        statistics.mean(chosen),
        statistics.mean(best),
        in_top / len(chosen),
        float(np.quantile(headroom, 0.05)),
        int(pods_on.max()),
        added_w,
    )


def _on(pod: Pod, node: str, at_s: float) -> Pod:
    return Pod(pod.namespace, pod.name, node, pod.workload_class, pod.cpu_cores, pod.gpus, scheduled_at_s=at_s)


def _print(console: Console, measured: Mapping[str, tuple[Quality, float | None]]) -> None:
    table = Table(title=f"{PODS:,} pods of 2 to 16 cores on {NODES:,} nodes")
    table.add_column("percentageOfNodesToScore")
    for heading in ("chosen", "best", "in best tenth", "5 % of nodes below", "most pods", "added", "pods/s"):
        table.add_column(heading, justify="right")
    for name, (one, pods_per_s) in measured.items():
        table.add_row(
            name,
            f"{one.chosen:.1f}",
            f"{one.best:.1f}",
            f"{one.in_top:.0%}",
            f"{one.fullest_headroom:.1f} %",
            str(one.most_pods),
            f"{one.added_w / 1e3:.1f} kW",
            "" if pods_per_s is None else f"{pods_per_s:.0f}",
        )
    console.print(table)


if __name__ == "__main__":
    main()

"""`make bench`: every speed that Joulie promises, as a ratio to a yardstick measured in the same run."""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from bench.agent_scale import agent_figures
from bench.attack.stage import Size, abuse, print_seen
from bench.budget_speed import NODES as BUDGET_NODES
from bench.budget_speed import budget_figures
from bench.clusters import NOW, cluster_json, snapshot
from bench.extender.speed import extender_figures
from bench.figures import Figure, print_figures
from bench.operator.scale import NODES as OPERATOR_NODES
from bench.operator.scale import operator_figures
from bench.plain_loop import plain_nodes, plain_scores
from bench.scheduler.throughput import scheduler_figures
from bench.simulator_speed import simulator_figures
from bench.timing import RUNS, interleaved, repeated, without_gc
from joulie.catalogue.lookup import Catalogue
from joulie.control.cycle import decide
from joulie.control.placement.score_table import ScoreTable, score_table
from joulie.control.policies.static_partition import StaticPartition
from joulie.control.scoring import score
from joulie.model.rfc3339 import parse_time_s
from joulie.model.snapshot import Snapshot
from joulie.physics.cooling import LinearCoolingModel
from joulie.settings import DecisionSettings, ExtenderSettings
from testbed.unavailable import ControlPlaneUnavailable

NODES, PODS_PER_NODE = 5_000, 10
GROWTH = (1_250, 5_000, 20_000)
NOW_S = parse_time_s(NOW)
DECISION, EXTENDER = DecisionSettings(), ExtenderSettings()

console = Console()


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and fail where a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("part", nargs="?", choices=list(PARTS), help="only this part; default: all")
    part = parser.parse_args(argv).part
    kept = [measure() for name, measure in PARTS.items() if part in (None, name)]
    return int(not all(kept))


def _core() -> bool:
    figures: list[Figure] = []
    for measure in (_whole_cluster, _scoring, _budgets, _growth, _start):
        with console.status(f"measuring: {measure.__doc__}"):
            figures += measure()
    return print_figures(console, f"Medians of {RUNS} interleaved runs; smaller is better", figures)


def _measured(what: str, measure: Callable[[Console], list[Figure]]) -> Callable[[], bool]:
    """A part that runs real processes; without what it needs, it says so and counts as not kept."""

    def run() -> bool:
        try:
            figures = measure(console)
        except ControlPlaneUnavailable as unavailable:
            console.print(f"[bold red]not measured:[/] {what} needs a control plane: {unavailable.reason}")
            return False
        return print_figures(console, f"{what}; smaller is better", figures)

    return run


def _lab(on: Console) -> list[Figure]:
    """Imported late: it compiles."""
    from bench.lab.speed import lab_figures

    return lab_figures(on)


def _abuse() -> bool:
    """Not a matter of speed: whether every promise holds."""
    from bench.attack.attacks import ATTACKS

    try:
        with console.status("") as status:
            seen = abuse(Size(), status.update, list(ATTACKS))
    except ControlPlaneUnavailable as unavailable:
        console.print(f"[bold red]not measured:[/] abuse needs a control plane: {unavailable.reason}")
        return False
    return print_seen(console, seen)


def _budget() -> bool:
    """Likewise: whether limits in watts hold under faults."""
    from bench.budget_hold.run import hold
    from bench.budget_hold.run import print_seen as print_held
    from bench.budget_hold.scene import Size as Scale

    try:
        with console.status("") as status:
            held = hold(Scale(), lambda what: status.update(f"budgets: {what}"))
    except ControlPlaneUnavailable as unavailable:
        console.print(f"[bold red]not measured:[/] budgets need a control plane: {unavailable.reason}")
        return False
    return print_held(console, held)


PARTS: dict[str, Callable[[], bool]] = {
    "core": _core,
    "extender": _measured("The extender", extender_figures),
    "scheduler": _measured("kube-scheduler with the extender", scheduler_figures),
    "simulator": _measured("The simulator", simulator_figures),
    "lab": _measured("The lab", _lab),
    "agent": _measured("The pool agent", agent_figures),
    "abuse": _abuse,
    "budget": _budget,
    "operator": _measured(f"The operator at {OPERATOR_NODES:,} nodes", operator_figures),
}


def _decision(of: Snapshot) -> Callable[[], object]:
    policy, cooling = StaticPartition(), LinearCoolingModel(DECISION.twin)
    return lambda: decide(of, DECISION, NOW_S, policy=policy, cooling=cooling)


def _score_table(of: Snapshot) -> ScoreTable:
    return score_table(of, EXTENDER.score, EXTENDER.marginal, EXTENDER.hardware, Catalogue(), NOW_S)


def _whole_cluster() -> list[Figure]:
    """one decision, and the whole command on a file, against json.loads"""
    data = cluster_json(NODES, PODS_PER_NODE)
    built = snapshot(NODES, PODS_PER_NODE)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cluster.json"
        file.write_bytes(data)
        command = [sys.executable, "-m", "joulie", "plan", "-f", str(file), "-o", "json", "--now", NOW]
        seconds = interleaved(
            {
                "json.loads": without_gc(lambda: json.loads(data)),
                "decide": _decision(built),
                "plan -f": lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL),
            }
        )
    base = seconds["json.loads"]
    objects = f"{NODES:,} nodes, {NODES * PODS_PER_NODE:,} pods, {len(data) / 1e6:.0f} MB"
    return [
        Figure("decide", "json.loads", seconds["decide"] / base, 0.1, f"{seconds['decide']:.3f} s of {base:.2f} s"),
        Figure("joulie plan -f", "json.loads", seconds["plan -f"] / base, 3, objects),
    ]


def _scoring() -> list[Figure]:
    """one pod on 5,000 nodes, against a plain loop"""
    table = _score_table(snapshot(NODES, 0))
    nodes = plain_nodes(table)
    arrays = score(table.prepared, 2.0, 1.0, "standard").score.tolist()
    plain = plain_scores(nodes, table, EXTENDER.marginal, 2.0, 1.0)
    if max(abs(a - b) for a, b in zip(arrays, plain, strict=True)) > 1e-9:
        raise SystemExit("the plain loop and the arrays disagree: nothing was measured")
    seconds = interleaved(
        {
            "loop": repeated(lambda: plain_scores(nodes, table, EXTENDER.marginal, 2.0, 1.0), 10),
            "arrays": repeated(lambda: score(table.prepared, 2.0, 1.0, "standard"), 1000),
        }
    )
    loop, fast = seconds["loop"] / 10, seconds["arrays"] / 1000
    detail = f"{loop / fast:.0f} times faster: {fast * 1e6:.0f} µs of {loop * 1e6:.0f} µs"
    return [Figure(f"score, {NODES:,} nodes", "plain Python loop", fast / loop, 1 / 50, detail)]


def _budgets() -> list[Figure]:
    """one sharing out of watts, against one decision"""
    sizes = (BUDGET_NODES, 2 * BUDGET_NODES)
    return budget_figures({count: snapshot(count, PODS_PER_NODE) for count in sizes}, _decision)


def _growth() -> list[Figure]:
    """how cost grows with the nodes"""
    snapshots = {count: snapshot(count, PODS_PER_NODE) for count in GROWTH}
    tables = {count: _score_table(built) for count, built in snapshots.items()}
    decisions = interleaved({str(count): _decision(built) for count, built in snapshots.items()})
    scores = interleaved(
        {
            str(count): repeated(lambda table=table: score(table.prepared, 2.0, 1.0, "standard"), 500)  # type: ignore[misc]
            for count, table in tables.items()
        }
    )
    return [
        Figure(f"{what}, {few:,} → {many:,} nodes", "itself", took[str(many)] / took[str(few)], 5, "4 × the nodes")
        for what, took in (("decide", decisions), ("score", scores))
        for few, many in itertools.pairwise(GROWTH)
    ]


def _start() -> list[Figure]:
    """how fast the command line starts"""
    script = Path(sys.executable).with_name("joulie")
    seconds = interleaved(
        {
            "pass": repeated(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), 5),
            "help": repeated(lambda: subprocess.run([str(script), "--help"], check=True, stdout=subprocess.DEVNULL), 5),
        }
    )
    detail = f"{seconds['help'] / 5 * 1e3:.0f} ms of {seconds['pass'] / 5 * 1e3:.0f} ms"
    return [Figure("joulie --help", "python -c pass", seconds["help"] / seconds["pass"], 8, detail)]


if __name__ == "__main__":
    sys.exit(main())

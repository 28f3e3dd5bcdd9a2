"""The lab: its steps against plain numpy in the same run, and two known experiments in full size beside known times.

Known, on a machine like ours: 2,500 nodes, 48 h and 1.82 million jobs took another simulator 32 s to generate, 92 s
with bin-packing and 185 s with Joulie's formula; a well-known one steps 9,472 nodes at 216 simulated seconds a second.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console

from bench.figures import Figure
from bench.lab.kernels import heat_everything, scan
from bench.lab.pair import seconds_a_run
from joulie.control.scoring import headroom_before, prepare, score
from joulie.lab.kernels.events import advance
from joulie.lab.model.jobs import JobTable
from joulie.lab.model.setup import ClusterSetup, NodeGroup, PlantSetup, RunSetup, TraceSetup, WeatherSetup
from joulie.lab.simulation.engine import SimulatedRun
from joulie.lab.traces.generator import generate
from joulie.model.names import STANDARD
from joulie.plant.cooling import Cooling
from joulie.plant.fleet import Fleet

FASTER_PLACING, FASTER_STEPS = 6.0, 4.0
GOAL = 50.0  # times faster than known
KNOWN_S = {"generate": 32.0, "most": 92.0, "joulie": 185.0}
KNOWN_PACE = 216.0
FULL_NODES, FULL_HOURS, FULL_JOBS, FULL_SCALE = 2_500, 48.0, 1_820_000, 0.086
STEPPED_NODES = 9_472
GROWTH = (1_000, 20_000)
MAX_MB = 2_000.0


def lab_figures(console: Console) -> list[Figure]:
    """the lab's steps, and known experiments"""
    figures: list[Figure] = []
    for measure in (_placing, _stepping, _growth, _full_size, _paced):
        with console.status(f"lab: {measure.__doc__}"):
            figures += measure()
    return figures


def _timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _equal_pods(count: int, every_s: float) -> JobTable:
    """Small pods of one shape that come one after the other and stay."""
    ones, zeros = np.ones(count), np.zeros(count)
    return JobTable(
        submit_s=1.0 + np.arange(count, dtype=np.float64) * every_s,
        deadline_s=np.full(count, np.nan),
        family=np.zeros(count, np.int32),
        first_pod=np.arange(count + 1, dtype=np.int32),
        cores=ones * 4,
        gpus=np.zeros(count, np.int32),
        gpu_model=np.full(count, -1, np.int32),
        performance=np.zeros(count, np.bool_),
        cpu_units=ones * 4e6,
        gpu_units=zeros,
        cpu_utilisation=ones * 0.7,
        gpu_utilisation=zeros,
        memory_intensity=zeros,
        io_intensity=zeros,
        feed_intensity=zeros,
        cpu_sensitivity=ones,
        gpu_sensitivity=ones,
        families=("equal",),
        gpu_models=(),
    )


def _placing() -> list[Figure]:
    """scoring and placing against numpy"""
    nodes, jobs = FULL_NODES, 4_000
    simulation = SimulatedRun(RunSetup(cluster=ClusterSetup([NodeGroup(nodes)])), _equal_pods(jobs, 0.01), 1)
    simulation.steering.tick(0.0)
    world = simulation.world
    advance(world, 1.0)
    plain = _plain_placing(simulation, jobs)
    scanned = min(_timed(lambda: scan(world, 200)) for _ in range(5)) / (200 * nodes)
    kept = _timed(lambda: advance(world, 1.0 + jobs * 0.01)) / (jobs * nodes)
    assert int(world.run["running"]) == jobs
    detail = f"{plain * 1e9:.1f} ns a job and node in numpy; {scanned * 1e9:.2f} ns scanned, {kept * 1e9:.3f} ns kept"
    return [
        Figure(
            "score and place a pod, whole run", f"numpy / {FASTER_PLACING:g}", kept / plain, 1 / FASTER_PLACING, detail
        )
    ]


def _plain_placing(simulation: SimulatedRun, jobs: int) -> float:
    """Mask, score, argmax and feedback, as one would write it; seconds a job and node."""
    nodes, columns = simulation.world.nodes, simulation.steering.scores
    prepared = prepare(columns, simulation.steering.settings.operator.decision.marginal)
    free, recent_w = nodes["free_mcores"].copy(), np.zeros(len(nodes))
    nothing = np.zeros(len(nodes))

    def place() -> None:
        for _ in range(jobs):
            prepared.headroom[:] = headroom_before(
                columns.capped_w, columns.measured_w, recent_w, nothing, columns.capped_w
            )
            found = score(prepared, 4.0, 0.0, STANDARD)
            best = int(np.argmax(np.where(free >= 4_000, found.score, -1.0)))
            free[best] -= 4_000
            recent_w[best] += found.marginal_w[best]

    return _timed(place) / (jobs * len(nodes))


def _stepping() -> list[Figure]:
    """power and temperature of all nodes against numpy"""
    setup = RunSetup(cluster=ClusterSetup([NodeGroup(STEPPED_NODES)]), scheduler="least")
    simulation = SimulatedRun(setup, _equal_pods(STEPPED_NODES * 20, 1e-6), 1)
    advance(simulation.world, 9.0)
    fleet = Fleet(simulation.cluster.machines, each_board=False)
    cooling = Cooling(np.array([simulation.cluster.wall_max_w.sum()]))
    load = fleet.idle_load()
    load.cpu[:] = 0.3

    def plain() -> None:
        fleet.step(1.0, load, float(cooling.inlet_c[0]))
        cooling.step(1.0, np.array([fleet.node_w.sum()]), 20.0)

    heat_everything(simulation.world, 1.0)
    plain()
    ours, theirs = [], []
    for _ in range(30):
        ours.append(_timed(lambda: heat_everything(simulation.world, 1.0)))
        theirs.append(_timed(plain))
    one, other = float(np.median(ours)), float(np.median(theirs))
    detail = f"{one * 1e6:.0f} µs against {other * 1e6:.0f} µs; a step looks at all nodes only while air is hot"
    return [Figure(f"step {STEPPED_NODES:,} nodes", f"numpy / {FASTER_STEPS:g}", one / other, 1 / FASTER_STEPS, detail)]


def _mixed(nodes: int) -> ClusterSetup:
    gpu_nodes = nodes * 2 // 5
    return ClusterSetup([NodeGroup(nodes - gpu_nodes), NodeGroup(gpu_nodes, gpu="H100 SXM", gpus=8)])


def _growth() -> list[Figure]:
    """growth with nodes at the same load"""
    cost = []
    for nodes in GROWTH:
        cluster = _mixed(nodes)
        jobs = generate(TraceSetup(hours=6, load=0.6, duration_scale=0.15), 1, cluster)
        simulation = SimulatedRun(RunSetup(cluster=cluster), jobs, 1)
        cost.append((_timed(simulation.run), len(jobs), nodes))
    (small_s, small_jobs, small), (large_s, large_jobs, large) = cost
    allowed = (large_jobs * large) / (small_jobs * small)
    detail = f"{small_s:.2f} s for {small_jobs:,} jobs on {small:,}; {large_s:.2f} s for {large_jobs:,} on {large:,}"
    return [Figure(f"a run on {large:,} nodes", f"on {small:,}, by jobs × nodes", large_s / small_s, allowed, detail)]


def _full_size() -> list[Figure]:
    """2,500 nodes, 48 h, 1.82 million jobs"""
    cluster = _mixed(FULL_NODES)
    trace = TraceSetup(hours=FULL_HOURS, jobs=FULL_JOBS, duration_scale=FULL_SCALE)
    generate(TraceSetup(hours=1, jobs=100), 1, cluster)
    began = time.perf_counter()
    jobs = generate(trace, 1, cluster)
    figures = [_beside("generate 1.82 M jobs", KNOWN_S["generate"], time.perf_counter() - began)]
    for scheduler in ("most", "joulie"):
        began = time.perf_counter()
        outcome = SimulatedRun(RunSetup(cluster=cluster, scheduler=scheduler), jobs, 1).run()
        figures.append(_beside(f"the whole run, {scheduler}", KNOWN_S[scheduler], time.perf_counter() - began))
        assert not np.isnan(outcome.end_s).any()
    for scheduler in ("most", "joulie"):
        each_s = seconds_a_run(RunSetup(cluster=cluster, scheduler=scheduler), trace)
        figures.append(_beside(f"one of two runs on both cores, {scheduler}", KNOWN_S[scheduler], each_s))
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [*figures, Figure("memory at the peak", "2 GB", peak_mb / MAX_MB, 1.0, f"{peak_mb:,.0f} MB")]


def _beside(what: str, known_s: float, ours_s: float) -> Figure:
    return Figure(
        what,
        f"known / {GOAL:g}",
        ours_s / (known_s / GOAL),
        1.0,
        f"{ours_s:.2f} s, {known_s / ours_s:.0f} times as fast",
    )


def _paced() -> list[Figure]:
    """9,472 nodes at a step of 1 s"""
    cluster = _mixed(STEPPED_NODES)
    jobs = generate(TraceSetup(hours=24, load=0.6), 1, cluster)
    setup = RunSetup(cluster=cluster, scheduler="least", plant=PlantSetup(step_s=1.0), weather=WeatherSetup())
    simulation = SimulatedRun(setup, jobs, 1)
    began = time.perf_counter()
    outcome = simulation.run()
    pace = outcome.counted.metered_s / (time.perf_counter() - began)
    detail = f"{pace:,.0f} simulated seconds a second with {len(jobs):,} jobs, {pace / KNOWN_PACE:.0f} times as fast"
    return [
        Figure(f"{STEPPED_NODES:,} nodes at a step of 1 s", f"known × {GOAL:g}", KNOWN_PACE * GOAL / pace, 1.0, detail)
    ]

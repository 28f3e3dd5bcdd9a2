"""The world of a run at its beginning: every record, filled. What is not named here begins at zero."""

from __future__ import annotations

import numpy as np

from joulie.control.scoring import CLASS_CODES
from joulie.control.survey import MachineColumns
from joulie.lab import world as w
from joulie.lab.cluster import LabCluster
from joulie.lab.jobs import JobTable
from joulie.lab.setup import RunSetup
from joulie.lab.shapes import Shapes, shapes_of
from joulie.model.names import PERFORMANCE
from joulie.plant.cooling import CoolingSettings
from joulie.plant.curves import ShapeTable
from joulie.plant.gpus import BOARD_SHAPE
from joulie.plant.sweeps import SWEEPS
from joulie.settings import MarginalSettings

MOST_KEPT = 60_000_000  # values of shapes times nodes that are kept; beyond, every choice looks at all nodes
NEVER = -(1 << 40)
_RANKINGS = {"least": w.LEAST, "most": w.MOST, "random": w.RANDOM, "joulie": w.JOULIE}


def build_world(
    setup: RunSetup,
    cluster: LabCluster,
    jobs: JobTable,
    marginal: MarginalSettings,
    outside_c: w.Numbers,
    seed: int,
) -> w.World:
    shapes, count = shapes_of(jobs), len(cluster)
    ranking = _RANKINGS.get(setup.scheduler, w.GIVEN)
    curves = list(dict.fromkeys([BOARD_SHAPE, *(machine.cpu.shape for machine in cluster.machines)]))
    kept = ranking in (w.LEAST, w.MOST, w.JOULIE) and len(shapes.mcores) * count <= MOST_KEPT
    half = 1 << max(0, (count - 1).bit_length() - 1)
    table = ShapeTable(curves)

    def nobody(size: int) -> w.Codes:
        return np.full(size, w.NOBODY, np.int32)

    nodes = _nodes(setup, cluster, jobs, marginal, curves)
    world = w.World(
        nodes=nodes,
        pods=_pods(jobs, shapes),
        jobs=_jobs(jobs, shapes),
        shapes=_shapes(jobs, shapes),
        kinds=_kinds(jobs, shapes),
        zones=_zones(setup, cluster),
        run=_run(setup, nodes, ranking, seed),
        leaf=np.full((len(shapes.mcores), count if kept else 0), -np.inf),
        best=np.zeros((len(shapes.mcores), 2 * half if kept else 2), np.int32),
        slots_on=np.zeros((len(shapes.mcores), count if kept else 0), np.int32),
        given=np.zeros((len(shapes.mcores), count) if ranking == w.GIVEN else (0, 0)),
        ends=nobody(len(jobs)),
        waking=nobody(count),
        masked=nobody(count),
        reserved_nodes=nobody(count),
        change=np.zeros(max(1024, count), np.int32),
        outside_c=outside_c,
        curves=np.array([table.starts, table.rises]),
        sweeps=_sweeps(),
        addresses=np.zeros((0, 0), np.int64),
    )
    return w.with_addresses(world)


def _nodes(
    setup: RunSetup, cluster: LabCluster, jobs: JobTable, marginal: MarginalSettings, curves: list[tuple[float, ...]]
) -> w.Records:
    machines, columns = cluster.machines, MachineColumns.of(cluster.recognised)
    model_code = {name: code for code, name in enumerate(jobs.gpu_models)}
    curve_at = {curve: place * len(curve) for place, curve in enumerate(curves)}
    sweeps = list(SWEEPS)
    nodes = np.zeros(len(cluster), w.NODE)
    nodes["zone"] = cluster.zone_of
    nodes["mcores"] = nodes["free_mcores"] = [round(machine.cpu.cores * 1000) for machine in machines]
    nodes["gpus"] = nodes["free_gpus"] = [machine.gpus for machine in machines]
    nodes["gpu_model"] = [model_code.get(machine.gpu.name or "", -2) if machine.gpu else -2 for machine in machines]
    nodes["takes_cpu_work"] = (nodes["gpus"] == 0) | setup.cluster.cpu_work_on_gpu_nodes
    nodes["cpu_max_w"] = nodes["cpu_cap_w"] = [machine.cpu.max_w for machine in machines]
    nodes["cpu_idle_w"] = [machine.cpu.idle_w for machine in machines]
    nodes["cpu_floor"] = [machine.cpu.frequency_floor for machine in machines]
    nodes["curve_at"] = [curve_at[machine.cpu.shape] for machine in machines]
    nodes["gpu_max_w"] = nodes["gpu_cap_w"] = [machine.gpu.max_w if machine.gpu else 1.0 for machine in machines]
    nodes["gpu_idle_w"] = [machine.gpu.idle_w if machine.gpu else 0.0 for machine in machines]
    nodes["sweep"] = [sweeps.index(machine.gpu.sweep) if machine.gpu else 0 for machine in machines]
    nodes["core_speed"], nodes["gpu_speed"] = cluster.core_speed, cluster.gpu_speed
    nodes["first_pod"] = w.NOBODY
    nodes["class_code"] = CLASS_CODES[PERFORMANCE]
    nodes["frequency"] = 1.0
    nodes["ready_s"] = -np.inf
    nodes["budget_w"] = 1.0
    nodes["cpu_plain_w"] = marginal.cpu_coeff * columns.cpu_max_w
    nodes["gpu_plain_standard_w"] = marginal.gpu_coeff_standard * columns.gpu_max_w
    nodes["gpu_plain_performance_w"] = marginal.gpu_coeff_performance * columns.gpu_max_w
    nodes["inverse_cores"], nodes["inverse_gpus"] = columns.inverse_cores, columns.inverse_gpus
    return nodes


def _sweeps() -> w.Numbers:
    """Short ones are filled up with their last point."""
    size = max(len(sweep.shares) for sweep in SWEEPS.values())
    rows = [(sweep.shares, sweep.slowdown, sweep.power) for sweep in SWEEPS.values()]
    return np.array([[[*row, *[row[-1]] * (size - len(row))] for row in sweep] for sweep in rows])


def _pods(jobs: JobTable, shapes: Shapes) -> w.Records:
    pods = np.zeros(jobs.pods, w.POD)
    pods["job"], pods["shape"] = jobs.job_of_pod, shapes.of_pod
    for link in ("node", "after", "before", "bound_in"):
        pods[link] = w.NOBODY
    pods["load"] = np.rint(shapes.mcores[shapes.of_pod] * jobs.cpu_utilisation * w.LOAD)
    with np.errstate(divide="ignore", invalid="ignore"):
        pods["cpu_rate"] = np.where(jobs.cpu_units > 0, jobs.cores / jobs.cpu_units, np.inf)
        pods["gpu_rate"] = np.where(jobs.gpu_units > 0, jobs.gpus / jobs.gpu_units, np.inf)
    for name in ("gpu_utilisation", "memory_intensity", "io_intensity", "feed_intensity"):
        pods[name] = getattr(jobs, name)
    pods["cpu_sensitivity"], pods["gpu_sensitivity"] = jobs.cpu_sensitivity, jobs.gpu_sensitivity
    return pods


def _jobs(jobs: JobTable, shapes: Shapes) -> w.Records:
    records = np.zeros(len(jobs), w.JOB)
    records["submit_s"], records["reference_s"] = jobs.submit_s, jobs.reference_s
    records["first_pod"], records["last_pod"] = jobs.first_pod[:-1], jobs.first_pod[1:]
    records["kind"] = shapes.kind_of_job
    records["start_s"] = records["end_s"] = np.nan
    records["left"] = 1.0
    for link in ("next_waiting", "previous_waiting", "place"):
        records[link] = w.NOBODY
    return records


def _shapes(jobs: JobTable, shapes: Shapes) -> w.Records:
    records = np.zeros(len(shapes.mcores), w.SHAPE)
    for name in ("mcores", "gpus", "gpu_model", "performance"):
        records[name] = getattr(shapes, name)
    records["seen"], records["given_at"] = NEVER, NEVER
    counts = np.diff(jobs.first_pod)
    records["in_gangs"][shapes.of_pod[np.repeat(counts > 1, counts)]] = True
    return records


def _kinds(jobs: JobTable, shapes: Shapes) -> w.Records:
    records = np.zeros(shapes.kinds, w.KIND)
    for link in ("first", "last", "cursor"):
        records[link] = w.NOBODY
    records["fails_at"] = NEVER
    if len(jobs):
        of_jobs = np.add.reduceat(jobs.performance.astype(np.int64), jobs.first_pod[:-1])
        records["performance"][shapes.kind_of_job] = of_jobs
    return records


def _zones(setup: RunSetup, cluster: LabCluster) -> w.Records:
    count = len(cluster.zones)
    zones = np.zeros(count, w.ZONE)
    edges = np.searchsorted(cluster.zone_of, np.arange(count + 1))
    zones["first_node"], zones["last_node"] = edges[:-1], edges[1:]
    zones["rated_w"] = np.bincount(cluster.zone_of, cluster.wall_max_w, count) * setup.plant.cooling_spare
    for name in ("inlet_c", "cpu_air_c", "gpu_air_c"):
        zones[name] = CoolingSettings().setpoint_c
    return zones


def _run(setup: RunSetup, nodes: w.Records, ranking: int, seed: int) -> w.Records:
    run = np.zeros(1, w.RUN)
    plant, queue, has_gpu = setup.plant, setup.queue, nodes["gpus"] > 0
    run["step_s"] = run["next_step_s"] = plant.step_s
    run["ranking"] = ranking
    run["seed"] = np.random.default_rng([seed, 2]).integers(0, 2**63)
    run["backfill"], run["depth"], run["estimate_factor"] = queue.backfill, queue.depth, queue.estimate_factor
    run["sleeps"] = plant.sleep
    for name in ("sleep_after_s", "sleep_w", "wake_s", "wake_energy_j"):
        run[name] = getattr(plant, name)
    run["slowest_core"] = nodes["core_speed"].min()
    run["slowest_gpu"] = nodes["gpu_speed"][has_gpu].min() if has_gpu.any() else 1.0
    for name in ("newcomer", "asks_shape", "probe_job", "reserved_for"):
        run[name] = w.NOBODY
    run["counts_recent"] = True
    run["score_max"] = 100
    return run

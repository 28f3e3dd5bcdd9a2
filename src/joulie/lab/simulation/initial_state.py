"""The world of a run at its beginning: every record, filled. What is not named here begins at zero."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from joulie.control.scoring import CLASS_CODES
from joulie.control.survey import MachineColumns
from joulie.lab.kernels import world as w
from joulie.lab.kernels.job_pages import fill_kinds, trace_of
from joulie.lab.kernels.records import GROUP, JOB, KIND, NODE, PLACE, POD, RUN, SHAPE, ZONE
from joulie.lab.model.jobs import JobTable
from joulie.lab.model.setup import RunSetup
from joulie.lab.model.shapes import Shapes, shapes_of
from joulie.lab.simulation.budgets.grouping import GroupTables
from joulie.lab.simulation.cluster import LabCluster
from joulie.lab.simulation.lanes import NEVER, lanes_of, machines_of, records_in_lines, takes
from joulie.model.names import PERFORMANCE
from joulie.plant.cooling import CoolingSettings
from joulie.plant.curves import ShapeTable
from joulie.plant.gpus import BOARD_SHAPE
from joulie.plant.sweeps import SWEEPS
from joulie.settings import MarginalSettings

PAGE_JOBS = 1024  # records of jobs that are used again together
_RANKINGS = {"least": w.LEAST, "most": w.MOST, "random": w.RANDOM, "joulie": w.JOULIE}


def build_world(
    setup: RunSetup,
    cluster: LabCluster,
    jobs: JobTable,
    marginal: MarginalSettings,
    outside_c: w.Numbers,
    seed: int,
    *,
    reference_s: w.Numbers,
    one_class: bool,
) -> w.World:
    """`one_class`: all nodes are performance nodes for ever."""
    shapes, count = shapes_of(jobs), len(cluster)
    ranking = _RANKINGS.get(setup.scheduler, w.GIVEN)
    curves = list(dict.fromkeys([BOARD_SHAPE, *(machine.cpu.shape for machine in cluster.machines)]))
    table = ShapeTable(curves)
    pages, page_pods = _pages(jobs)

    def absent(size: int) -> w.Codes:
        return np.full(size, w.ABSENT, np.int32)

    nodes = _nodes(setup, cluster, jobs, marginal, curves)
    records = _shapes(shapes, jobs, nodes)
    if one_class and ranking in (w.LEAST, w.MOST):
        _share_trees(records)
    lanes = lanes_of(records, nodes, kept=ranking in (w.LEAST, w.MOST, w.JOULIE))
    world = w.World(
        nodes=nodes,
        pods=records_in_lines(pages * page_pods, POD),
        jobs=np.zeros(pages * PAGE_JOBS, JOB),
        shapes=records,
        kinds=_kinds(shapes),
        zones=_zones(setup, cluster),
        run=_run(setup, nodes, ranking, seed, page_pods, one_class=one_class),
        blocks=lanes.blocks,
        lanes=lanes.lanes,
        wants=lanes.wants,
        tree=lanes.tree,
        levels=lanes.levels,
        slots=lanes.slots,
        slots_on=lanes.slots_on,
        given=np.zeros((len(shapes.mcores), count) if ranking == w.GIVEN else (0, 0)),
        firsts=np.full(shapes.kinds, w.NONE, np.int32),
        queue=np.zeros(len(jobs), PLACE),
        cursors=np.full(shapes.kinds, w.NONE, np.int32),
        ends=np.zeros(len(jobs), np.int32),
        ends_s=np.zeros(len(jobs) + 1),
        place=np.zeros(pages * PAGE_JOBS, np.int32),
        waking=absent(count),
        masked=absent(count),
        reserved_nodes=absent(count),
        change=np.zeros(1 << (max(1024, count) - 1).bit_length(), np.int32),
        trace=trace_of(jobs, shapes, reference_s),
        living=np.zeros(pages, np.int32),
        start_s=np.full(len(jobs), np.nan),
        ended_s=np.full(len(jobs), np.nan),
        backfilled=np.zeros(len(jobs), np.bool_),
        node_of_pod=absent(jobs.pods),
        groups=np.zeros(0, GROUP),
        groups_from=np.zeros(0, np.int32),
        groups_of=np.zeros(0, np.int32),
        outside_c=outside_c,
        curves=np.array([table.starts, table.rises]),
        sweeps=_sweeps(),
    )
    fill_kinds(world)
    return world


def with_groups(world: w.World, metered: GroupTables) -> w.World:
    """The same world, in which the groups of budgets have meters."""
    world.run["has_groups"] = True
    return replace(world, **metered._asdict())


def _nodes(
    setup: RunSetup, cluster: LabCluster, jobs: JobTable, marginal: MarginalSettings, curves: list[tuple[float, ...]]
) -> w.Records:
    machines, columns = cluster.machines, MachineColumns.of(cluster.recognised)
    model_code = {name: code for code, name in enumerate(jobs.gpu_models)}
    curve_at = {curve: place * len(curve) for place, curve in enumerate(curves)}
    sweeps = list(SWEEPS)
    nodes = records_in_lines(len(cluster), NODE)
    nodes["zone"] = cluster.zone_of
    nodes["mcores"] = nodes["free_mcores"] = [round(machine.cpu.cores * 1000) for machine in machines]
    nodes["gpus"] = nodes["free_gpus"] = [machine.gpus for machine in machines]
    nodes["gpu_model"] = [model_code.get(machine.gpu.name or "", -2) if machine.gpu else -2 for machine in machines]
    nodes["takes_cpu_work"] = (nodes["gpus"] == 0) | setup.cluster.cpu_work_on_gpu_nodes
    nodes["sort"] = np.unique(nodes[["gpu_model", "takes_cpu_work", "mcores", "gpus"]], return_inverse=True)[1]
    nodes["cpu_max_w"] = nodes["cpu_cap_w"] = [machine.cpu.max_w for machine in machines]
    nodes["cpu_idle_w"] = [machine.cpu.idle_w for machine in machines]
    nodes["cpu_floor"] = [machine.cpu.frequency_floor for machine in machines]
    nodes["curve_at"] = [curve_at[machine.cpu.shape] for machine in machines]
    nodes["gpu_max_w"] = nodes["gpu_cap_w"] = [machine.gpu.max_w if machine.gpu else 1.0 for machine in machines]
    nodes["gpu_idle_w"] = [machine.gpu.idle_w if machine.gpu else 0.0 for machine in machines]
    nodes["sweep"] = [sweeps.index(machine.gpu.sweep) if machine.gpu else 0 for machine in machines]
    nodes["core_speed"], nodes["gpu_speed"] = cluster.core_speed, cluster.gpu_speed
    nodes["first_pod"] = w.ABSENT
    nodes["class_code"] = CLASS_CODES[PERFORMANCE]
    nodes["frequency"] = 1.0
    nodes["ready_s"], nodes["soonest_end_s"], nodes["no_room_until_s"] = -np.inf, np.inf, -np.inf
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


def _shapes(shapes: Shapes, jobs: JobTable, nodes: w.Records) -> w.Records:
    records = np.zeros(len(shapes.mcores), SHAPE)
    for name in ("mcores", "gpus", "gpu_model", "performance"):
        records[name] = getattr(shapes, name)
    records["given_at"] = NEVER
    records["like"] = np.arange(len(records))
    pods = np.diff(jobs.first_pod)
    records["in_gangs"][shapes.of_pod[np.repeat(pods > 1, pods)]] = True
    machines = machines_of(nodes)
    for shape in records:
        able = np.flatnonzero(takes(shape, machines)[nodes["sort"]])
        shape["first_node"], shape["last_node"] = (able[0], able[-1] + 1) if able.size else (0, 0)
    return records


def _share_trees(shapes: w.Records) -> None:
    """Where a pod's class decides nothing."""
    _, first, alike = np.unique(shapes[["mcores", "gpus", "gpu_model"]], return_index=True, return_inverse=True)
    shapes["like"] = first[alike]
    shapes["in_gangs"] = np.bincount(alike, shapes["in_gangs"])[alike] > 0


def _kinds(shapes: Shapes) -> w.Records:
    records = np.zeros(shapes.kinds + 1, KIND)  # the last one is of no job
    records["last"], records["failed_s"] = w.ABSENT, -np.inf
    records["fails_at"] = NEVER
    return records


def _pages(jobs: JobTable) -> tuple[int, int]:
    """How many pages of records there can be at most, and pods on each. Memory costs nothing before it is used."""
    page_pods = 2 * max(PAGE_JOBS, int(np.diff(jobs.first_pod).max(initial=0)))
    return len(jobs) // PAGE_JOBS + jobs.pods // (page_pods // 2) + 2, page_pods


def _zones(setup: RunSetup, cluster: LabCluster) -> w.Records:
    count = len(cluster.zones)
    zones = np.zeros(count, ZONE)
    edges = np.searchsorted(cluster.zone_of, np.arange(count + 1))
    zones["first_node"], zones["last_node"] = edges[:-1], edges[1:]
    zones["rated_w"] = np.bincount(cluster.zone_of, cluster.wall_max_w, count) * setup.plant.cooling_spare
    for name in ("inlet_c", "cpu_air_c", "gpu_air_c"):
        zones[name] = CoolingSettings().setpoint_c
    return zones


def _run(setup: RunSetup, nodes: w.Records, ranking: int, seed: int, page_pods: int, *, one_class: bool) -> w.Records:
    run = np.zeros((), RUN)
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
    for name in ("newcomer", "asks_shape", "probe_job", "reserved_for", "unused_page"):
        run[name] = w.ABSENT
    run["pages"], run["page_jobs"], run["page_pods"] = 1, PAGE_JOBS, page_pods
    run["counts_recent"], run["one_class"] = True, one_class
    run["score_max"] = 100
    return run

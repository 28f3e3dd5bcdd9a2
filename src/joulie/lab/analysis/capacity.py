"""What the nodes of a cluster can do uncapped and draw without work: the measure of slowdown, stability and idling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from joulie.catalogue.lookup import Catalogue
from joulie.lab.analysis.measures import Idle
from joulie.lab.model.jobs import ANY_MODEL, Flags, JobTable, Numbers
from joulie.lab.model.setup import ClusterSetup, RunSetup
from joulie.lab.simulation.cluster import lab_cluster
from joulie.lab.traces.room import arrival_span_s, offered_load
from joulie.plant.fleet import Fleet
from joulie.plant.machines import PlantMachine

SETTLED_S = 3600.0


@dataclass(frozen=True, slots=True)
class NodeKind:
    """Nodes that are alike."""

    count: int
    machine: PlantMachine
    core_speed: float
    gpu_speed: float
    takes_cpu_work: bool

    @property
    def boards(self) -> float:
        """All their boards, in reference boards."""
        return self.count * self.machine.gpus * self.gpu_speed


def kinds(cluster: ClusterSetup, catalogue: Catalogue) -> tuple[NodeKind, ...]:
    """The groups of a cluster; InputError for an unknown model."""
    one_each = structs.replace(cluster, nodes=[structs.replace(group, count=1) for group in cluster.nodes])
    built = lab_cluster(one_each, catalogue)
    return tuple(
        NodeKind(group.count, machine, float(core), float(gpu), cluster.cpu_work_on_gpu_nodes or not machine.gpus)
        for group, machine, core, gpu in zip(
            cluster.nodes, built.machines, built.core_speed, built.gpu_speed, strict=True
        )
    )


def idle_power(groups: tuple[NodeKind, ...], setup: RunSetup, awake_s: Numbers) -> Idle:
    """IT power once there is no work: at idle, or asleep where nodes may sleep, and what they take until they do."""
    fleet = Fleet([group.machine for group in groups])
    fleet.step(SETTLED_S, fleet.idle_load())
    of_node = np.repeat(np.arange(len(groups)), [group.count for group in groups])
    idle_w = fleet.node_w[of_node]
    rest_w = np.full(len(idle_w), setup.plant.sleep_w) if setup.plant.sleep else idle_w
    settling_j = (idle_w - rest_w) * awake_s
    with_boards = np.asarray([group.machine.gpus > 0 for group in groups])[of_node]
    return Idle(
        float(np.sum(rest_w)),
        float(np.sum(rest_w[with_boards])),
        float(np.sum(settling_j)),
        float(np.sum(settling_j[with_boards])),
        float(np.max(awake_s, initial=0.0)),
    )


def fastest_s(jobs: JobTable, groups: tuple[NodeKind, ...], catalogue: Catalogue) -> Numbers:
    """The shortest time that each job can take here: every pod uncapped on the fastest node that may hold it.

    Infinite for a job that fits nowhere.
    """
    best_s = np.full(jobs.pods, np.inf)
    cpu_s = np.divide(jobs.cpu_units, jobs.cores, out=np.zeros(jobs.pods), where=jobs.cores > 0)
    gpu_s = np.divide(jobs.gpu_units, jobs.gpus, out=np.zeros(jobs.pods), where=jobs.gpus > 0)
    for group in groups:
        here_s = cpu_s / group.core_speed
        if group.machine.gpus:
            here_s = np.maximum(here_s, gpu_s / group.gpu_speed)
        best_s = np.where(_may_run_on(jobs, group, catalogue), np.minimum(best_s, here_s), best_s)
    return np.maximum.reduceat(best_s, jobs.first_pod[:-1]) if len(jobs) else np.zeros(0)


def loads(
    jobs: JobTable, cluster: ClusterSetup, groups: tuple[NodeKind, ...], catalogue: Catalogue, hours: float = 0.0
) -> dict[str, float]:
    """Work over what the cluster can do of it while jobs arrive, by resource; boards also model by model, for the pods
    that insist on one. Then what pods hold, where that is scarcer. Jobs that come all at once are a batch, which has no
    load.
    """
    span_s = arrival_span_s(jobs, hours)
    if span_s <= 0:
        return {}
    offered = offered_load(jobs, cluster, catalogue, hours)
    for place, model in enumerate(jobs.gpu_models):
        units = float(np.sum(jobs.gpu_units[(jobs.gpus > 0) & (jobs.gpu_model == place)]))
        able = span_s * sum(group.boards for group in groups if _is_model(group, model, catalogue))
        if units > 0:
            offered[f"{model} GPUs"] = units / able if able > 0 else np.inf
    most = max(offered.values())
    held = _held(jobs, groups, fastest_s(jobs, groups, catalogue), catalogue)
    return offered | {name: share / span_s for name, share in held if share > most * span_s}


def _held(
    jobs: JobTable, groups: tuple[NodeKind, ...], shortest_s: Numbers, catalogue: Catalogue
) -> Iterator[tuple[str, float]]:
    """How long pods would hold all there is of something while jobs arrive, were each started at once.

    What a pod holds is not available to others until its job is done, whether it is used or not: a board keeps cores
    from others, and two pods of more than half a node never share one.
    """
    held_s = np.minimum(shortest_s, jobs.submit_s[-1] - jobs.submit_s)[jobs.job_of_pod]
    on_boards = jobs.gpus > 0
    parts = [
        ("nodes for CPU work", ~on_boards, [group for group in groups if group.takes_cpu_work]),
        ("GPU nodes", on_boards, [group for group in groups if group.machine.gpus]),
    ]
    for place, model in enumerate(jobs.gpu_models):
        there = [group for group in groups if _is_model(group, model, catalogue)]
        parts.append((f"{model} nodes", on_boards & (jobs.gpu_model == place), there))
    if all(group.takes_cpu_work for group in groups):
        parts.append(("nodes", np.ones_like(on_boards), list(groups)))
    for where, pods, there in parts:
        counts = np.asarray([group.count for group in there])
        for what, asked, having in (
            ("cores", jobs.cores, np.asarray([group.machine.cpu.cores for group in there])),
            ("GPUs", jobs.gpus, np.asarray([group.machine.gpus for group in there])),
        ):
            if there and having.any():
                yield f"{what} of {where}", float(np.sum((asked * held_s)[pods]) / np.sum(counts * having))
                large_s = held_s[pods & (asked > having.max() / 2)]
                yield (
                    f"{where}, where no two pods of more than half the {what} fit,",
                    float(large_s.sum() / counts.sum()),
                )


def _may_run_on(jobs: JobTable, group: NodeKind, catalogue: Catalogue) -> Flags:
    wanted = [ANY_MODEL, *(at for at, model in enumerate(jobs.gpu_models) if _is_model(group, model, catalogue))]
    fits = (jobs.cores <= group.machine.cpu.cores) & (jobs.gpus <= group.machine.gpus)
    may: Flags = fits & np.where(jobs.gpus > 0, np.isin(jobs.gpu_model, wanted), group.takes_cpu_work)
    return may


def _is_model(group: NodeKind, model: str, catalogue: Catalogue) -> bool:
    known = catalogue.gpu(model)
    return group.machine.gpu is not None and group.machine.gpu.name == (known.name if known else model)

"""What a queue should have done, worked out slowly from starts and ends alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from joulie.lab.model.jobs import ANY_MODEL, JobTable
from joulie.lab.model.outcome import Outcome
from joulie.lab.model.setup import ClusterSetup
from joulie.lab.simulation.cluster import lab_cluster

MILLI = 1000


class Room(NamedTuple):
    """What a node has."""

    mcores: int
    gpus: int


class Placed(NamedTuple):
    """One job of a run: all its pods are alike."""

    submit_s: float
    start_s: float
    end_s: float
    mcores: int  # of one pod
    gpus: int
    nodes: tuple[int, ...]  # of its pods
    may_use: tuple[int, ...]  # nodes
    rooms: Sequence[Room]

    @property
    def allowed(self) -> bool:
        return set(self.nodes) <= set(self.may_use)


def placed(cluster: ClusterSetup, outcome: Outcome) -> list[Placed]:
    """The jobs of a run in the order of arrival."""
    machines, jobs = lab_cluster(cluster).machines, outcome.jobs
    rooms = [Room(round(machine.cpu.cores * MILLI), machine.gpus) for machine in machines]
    models = [machine.gpu.name if machine.gpu else "" for machine in machines]
    result = []
    for job in range(len(jobs)):
        pod, end = int(jobs.first_pod[job]), int(jobs.first_pod[job + 1])
        wants_gpus, model = int(jobs.gpus[pod]), int(jobs.gpu_model[pod])
        if wants_gpus:
            may_use = [node for node, has in enumerate(models) if has and model in (ANY_MODEL, _place(has, jobs))]
        else:
            may_use = [node for node, has in enumerate(models) if not has or cluster.cpu_work_on_gpu_nodes]
        result.append(
            Placed(
                float(jobs.submit_s[job]),
                float(outcome.start_s[job]),
                float(outcome.end_s[job]),
                round(float(jobs.cores[pod]) * MILLI),
                wants_gpus,
                tuple(outcome.node[pod:end].tolist()),
                tuple(may_use),
                rooms,
            )
        )
    return result


def capacity_exceeded(jobs: Sequence[Placed]) -> list[str]:
    """Every moment at which a node held more than it has; who ends makes room for who starts."""
    faults, changes = [], []
    for job in jobs:
        for node in job.nodes:
            changes.append((job.start_s, 1, node, job.mcores, job.gpus))
            changes.append((job.end_s, 0, node, -job.mcores, -job.gpus))
    held = [[0, 0] for _ in (jobs[0].rooms if jobs else ())]
    for at_s, _, node, mcores, gpus in sorted(changes):
        held[node][0] += mcores
        held[node][1] += gpus
        if held[node][0] > jobs[0].rooms[node].mcores or held[node][1] > jobs[0].rooms[node].gpus:
            faults.append(f"node {node} at {at_s:.3f} s: {held[node]}")
    return faults


def earliest_start_s(job: Placed, others: Sequence[Placed], from_s: float) -> float:
    """When there is room for the whole job, if only these others are there and they end when they did."""
    running = [other for other in others if other.start_s <= from_s < other.end_s - 1e-9]
    for moment_s in sorted({from_s, *(other.end_s for other in running)}):
        left = [other for other in running if other.end_s > moment_s + 1e-9]
        if _slots(job, left) >= len(job.nodes):
            return moment_s
    raise AssertionError("the job does not fit into an empty cluster")


def _slots(job: Placed, running: Sequence[Placed]) -> int:
    """How many of the job's pods find room."""
    free = {node: [job.rooms[node].mcores, job.rooms[node].gpus] for node in job.may_use}
    for other in running:
        for node in other.nodes:
            if node in free:
                free[node][0] -= other.mcores
                free[node][1] -= other.gpus
    return sum(min(mcores // job.mcores, gpus // job.gpus if job.gpus else mcores) for mcores, gpus in free.values())


def _place(model: str, jobs: JobTable) -> int:
    return jobs.gpu_models.index(model) if model in jobs.gpu_models else ANY_MODEL - 1

"""Why a job ran where and when it did: the run again, up to when the job came and to just before it was placed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from joulie.catalogue.lookup import Catalogue
from joulie.control.placement import rejection
from joulie.control.scoring import CLASS_CODES, headroom_after, headroom_before, total_score, wire_points
from joulie.errors import InputError
from joulie.lab.engine import Observer, Simulation
from joulie.lab.experiment import Case
from joulie.lab.jobs import ANY_MODEL, JobTable
from joulie.lab.outcome import Outcome
from joulie.lab.own_code import contained, given_policy, importable
from joulie.lab.performing import catalogue_of
from joulie.lab.trace_reading import jobs_of
from joulie.lab.trace_remarks import Remarks
from joulie.lab.world import JOULIE, WAITING, WATT, World
from joulie.model.names import PERFORMANCE, STANDARD
from joulie.physics.marginal import marginal_power_w, share

BEST = 8  # nodes that are shown
_CLASS_OF = {code: name for name, code in CLASS_CODES.items()}


class Candidate(Struct, frozen=True, rename="camel"):
    """A node at that moment, and what speaks for it."""

    node: str
    node_class: str
    free_cores: float
    free_gpus: int
    points: float | None  # of the score; None where another ranking chose
    headroom: float | None  # percent of its power budget that is left with the pod
    pod_w: float | None
    chosen: bool = False


class Moment(Struct, frozen=True, rename="camel"):
    """How things stood for the job's first pod."""

    time_s: float
    waiting: int  # jobs, this one included
    ahead: int  # of them in front of it
    reasons: dict[str, int]  # why nodes were out of the question, and how many; "room" are those that fit
    best: tuple[Candidate, ...]


class Explained(Struct, frozen=True, rename="camel"):
    """One job's story."""

    job: str
    family: str
    workload_class: str
    pods: int
    cores: float  # of the first pod
    gpus: int
    submit_s: float
    start_s: float
    end_s: float
    uncapped_s: float  # on reference devices
    passed_others: bool
    nodes: tuple[str, ...]  # of its pods
    scheduler: str
    when_it_came: Moment | None
    when_it_was_placed: Moment | None


def explain(case: Case, seed: int, name: str) -> Explained:
    """Runs the case once as it is, and again up to a moment: to stop a run and let it go on could change its course."""
    catalogue = catalogue_of(case)
    jobs = jobs_of(case.trace, seed, case.setup.cluster, catalogue, Remarks(skip_bad=case.trace.skip_bad))
    job = _find(jobs, name)
    with importable(case.folder), contained():
        outcome = _simulation(case, seed, jobs, catalogue).run()
        woken_s = case.setup.plant.wake_s if case.setup.plant.sleep else 0.0
        placed_s = max(float(jobs.submit_s[job]), float(outcome.start_s[job]) - woken_s)
        came = placed = _moment_from(case, seed, jobs, catalogue, job, 0.0)
        if came is not None and came.time_s < placed_s:
            placed = _moment_from(case, seed, jobs, catalogue, job, placed_s)
    return _told(case, jobs, job, outcome, came, placed)


class _SeenError(Exception):
    """Ends a run that has come far enough."""

    def __init__(self, moment: Moment) -> None:
        super().__init__()
        self.moment = moment


def _moment_from(case: Case, seed: int, jobs: JobTable, catalogue: Catalogue, job: int, from_s: float) -> Moment | None:
    """When the job is first looked at from then on; None where it never is."""

    def see(now_s: float, world: World) -> None:
        raise _SeenError(_moment(now_s, world, job, simulation.cluster.names))

    simulation = _simulation(case, seed, jobs, catalogue, Observer(placed=see, probe_job=job, probe_from_s=from_s))
    try:
        simulation.run()
    except _SeenError as seen:
        return seen.moment
    return None


def _simulation(
    case: Case, seed: int, jobs: JobTable, catalogue: Catalogue, observer: Observer | None = None
) -> Simulation:
    policy = given_policy(case.setup.policy.name)
    return Simulation(case.setup, jobs, seed, catalogue=catalogue, policy=policy, observer=observer)


def _find(jobs: JobTable, name: str) -> int:
    if jobs.ids:
        names = list(jobs.ids)
        if name in names:
            return names.index(name)
    else:
        for job in (int(part) for part in [name.removeprefix("job-")] if part.isdecimal()):
            if job < len(jobs) and name in (jobs.id_of(job), str(job)):
                return job
    raise InputError(f"there is no job {name!r}: there are {len(jobs)}, from {jobs.id_of(0)} to {jobs.id_of(-1)}")


def _told(
    case: Case, jobs: JobTable, job: int, outcome: Outcome, came: Moment | None, placed: Moment | None
) -> Explained:
    first, last = int(jobs.first_pod[job]), int(jobs.first_pod[job + 1])
    nodes = tuple(outcome.nodes[place] for place in outcome.node[first:last] if place >= 0)
    if not nodes:
        placed = None  # it never was
    if placed is not None:
        best = tuple(replace(candidate, chosen=candidate.node == nodes[0]) for candidate in placed.best)
        placed = replace(placed, best=best)
    return Explained(
        job=jobs.id_of(job),
        family=jobs.families[int(jobs.family[job])],
        workload_class=PERFORMANCE if jobs.performance[first] else STANDARD,
        pods=last - first,
        cores=float(jobs.cores[first]),
        gpus=int(jobs.gpus[first]),
        submit_s=float(jobs.submit_s[job]),
        start_s=float(outcome.start_s[job]),
        end_s=float(outcome.end_s[job]),
        uncapped_s=float(jobs.reference_s[job]),
        passed_others=bool(outcome.backfilled[job]),
        nodes=nodes,
        scheduler=case.setup.scheduler,
        when_it_came=came,
        when_it_was_placed=placed,
    )


def _moment(now_s: float, world: World, job: int, names: Sequence[str]) -> Moment:
    nodes = world.nodes
    records = world.jobs[: int(world.run["pages"][0] * world.run["page_jobs"][0])]
    waiting = records[records["state"] == WAITING]
    its = waiting[waiting["number"] == job][0]
    shape = world.shapes[int(world.pods["shape"][its["first_pod"]])]
    reasons, fits = _reasons(world, shape, now_s)
    points, headroom, watts = _scores(world, shape)
    scored = int(world.run["ranking"][0]) == JOULIE and bool(world.run["known"][0])
    order = np.lexsort((np.arange(len(nodes)), -points if scored else -nodes["free_mcores"]))
    best = [
        Candidate(
            node=names[row],
            node_class=_CLASS_OF[int(nodes["class_code"][row])],
            free_cores=float(nodes["free_mcores"][row]) / 1000.0,
            free_gpus=int(nodes["free_gpus"][row]),
            points=float(points[row]) if scored else None,
            headroom=float(headroom[row]) if scored else None,
            pod_w=float(watts[row]) if scored else None,
        )
        for row in order[fits[order]][:BEST].tolist()
    ]
    ahead = int(np.count_nonzero(waiting["number"] < job))
    return Moment(now_s, len(waiting), ahead, reasons, tuple(best))


def _reasons(world: World, shape: np.void, now_s: float) -> tuple[dict[str, int], NDArray[np.bool_]]:
    """The first reason that holds against each node, counted; and those against which none does."""
    nodes, performance = world.nodes, bool(shape["performance"])
    left = np.ones(len(nodes), np.bool_)
    reasons: dict[str, int] = {}

    def leave_out(reason: str, which: NDArray[np.bool_]) -> None:
        count = int(np.count_nonzero(left & which))
        if count:
            reasons[reason] = count
            left[which] = False

    if shape["gpus"] == 0:
        leave_out("kept for GPU work", ~nodes["takes_cpu_work"])
    elif shape["gpu_model"] != ANY_MODEL:
        leave_out("have another GPU model", nodes["gpu_model"] != shape["gpu_model"])
    leave_out("are too small", (nodes["mcores"] < shape["mcores"]) | (nodes["gpus"] < shape["gpus"]))
    for code, name in _CLASS_OF.items():
        if rejection(PERFORMANCE if performance else STANDARD, name) is not None:
            leave_out(f"are {name}, and the pod's class is performance", nodes["class_code"] == code)
    leave_out("are switched off", nodes["asleep"])
    leave_out("are starting", nodes["ready_s"] > now_s)
    leave_out("have too few cores free", nodes["free_mcores"] < shape["mcores"])
    leave_out("have too few GPUs free", nodes["free_gpus"] < shape["gpus"])
    reasons["room"] = int(left.sum())
    return reasons, left


def _scores(world: World, shape: np.void) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Points, headroom with the pod and its watts on every node, by the formulas of the extender."""
    nodes, performance = world.nodes, bool(shape["performance"])
    watts = marginal_power_w(
        share(float(shape["mcores"]) / 1000.0, nodes["inverse_cores"]),
        share(float(shape["gpus"]), nodes["inverse_gpus"]),
        nodes["cpu_full_w"],
        nodes["gpu_full_performance_w"] if performance else nodes["gpu_full_standard_w"],
    )
    before = headroom_before(
        nodes["capped_w"], nodes["measured_w"], nodes["recent"] / WATT, np.zeros(len(nodes)), nodes["budget_w"]
    )
    after = headroom_after(before, watts, nodes["points_per_w"])
    rest = nodes["rest_performance"] if performance else nodes["rest_standard"]
    return wire_points(total_score(after, rest), int(world.run["score_max"][0])), after, watts

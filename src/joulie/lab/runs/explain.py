"""Why a job ran where and when it did: the run again, up to when the job came and to just before it was placed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from joulie.errors import InputError
from joulie.lab.experiment.definition import Case
from joulie.lab.kernels.world import World
from joulie.lab.model.jobs import JobTable
from joulie.lab.model.outcome import Outcome
from joulie.lab.model.setup import PlantSetup
from joulie.lab.runs.perform import catalogue_of
from joulie.lab.runs.processes import Progress, isolated
from joulie.lab.simulation.cluster import LabCluster, lab_cluster
from joulie.lab.simulation.engine import Observer, SimulatedRun
from joulie.lab.simulation.moments import Moment, Rows, moment_of
from joulie.lab.simulation.user_code import given_policy
from joulie.lab.traces.reading import jobs_of
from joulie.lab.traces.remarks import Remarks
from joulie.model.names import PERFORMANCE, STANDARD

MAX_LOOKS = 100  # at a job whose nodes are being woken; each takes a run up to there


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
    here_s: float  # on the devices of its nodes, uncapped
    passed_others: bool
    nodes: tuple[str, ...]  # of its pods
    scheduler: str
    when_it_came: Moment | None
    when_it_was_placed: Moment | None


def explain(case: Case, seed: int, name: str) -> Explained:
    """Runs the case once as it is, and again up to a moment: to stop a run and let it go on could change its course."""
    jobs = _jobs(case, seed)
    job = _find(jobs, name)
    outcome = isolated(case.own, _outcome, case, seed)
    rows = outcome.node[jobs.first_pod[job] : jobs.first_pod[job + 1]]
    chosen = rows[rows >= 0]

    def seen(from_s: float) -> Moment | None:
        return isolated(case.own, _moment_from, case, seed, job, chosen, from_s)

    came = seen(0.0)
    placed = None
    if came is not None and len(chosen):
        placed = _placing(seen, came, float(outcome.start_s[job]), case.setup.plant)
    here_s = _here_s(lab_cluster(case.setup.cluster, catalogue_of(case)), jobs, job, rows)
    return _told(case, jobs, job, outcome, (came, placed), here_s)


def _placing(seen: Callable[[float], Moment | None], came: Moment, start_s: float, plant: PlantSetup) -> Moment:
    """The last moment at which it was looked at: when it started, or while it waited for nodes that were woken."""
    if came.time_s >= start_s:
        return came
    if (at_once := seen(start_s)) is not None:
        return at_once
    last = seen(start_s - plant.wake_s - plant.step_s) or came
    for _ in range(MAX_LOOKS):
        if (later := seen(np.nextafter(last.time_s, np.inf))) is None:
            break
        last = later
    return last


class _SeenError(Exception):
    """Ends a run that has come far enough."""

    def __init__(self, moment: Moment) -> None:
        super().__init__()
        self.moment = moment


def _outcome(case: Case, seed: int, progress: Progress | None) -> Outcome:
    return _simulation(case, seed).run(progress)


def _moment_from(
    case: Case, seed: int, job: int, chosen: Rows, from_s: float, progress: Progress | None
) -> Moment | None:
    """When the job is first looked at from then on; None where it never is."""

    def see(now_s: float, world: World) -> None:
        raise _SeenError(moment_of(now_s, world, job, simulation.cluster.names, chosen))

    simulation = _simulation(case, seed, Observer(placed=see, probe_job=job, probe_from_s=from_s))
    try:
        simulation.run(progress)
    except _SeenError as seen:
        return seen.moment
    return None


def _jobs(case: Case, seed: int) -> JobTable:
    remarks = Remarks(skip_bad=case.trace.skip_bad)
    return jobs_of(case.trace, seed, case.setup.cluster, catalogue_of(case), remarks)


def _simulation(case: Case, seed: int, observer: Observer | None = None) -> SimulatedRun:
    jobs, policy = _jobs(case, seed), given_policy(case.setup.policy.name)
    return SimulatedRun(case.setup, jobs, seed, catalogue=catalogue_of(case), policy=policy, observer=observer)


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


def _here_s(cluster: LabCluster, jobs: JobTable, job: int, rows: Rows) -> float:
    """How long its slowest pod takes on its node where nothing is capped or hot; NaN where it was never placed."""
    pods = slice(int(jobs.first_pod[job]), int(jobs.first_pod[job + 1]))
    if not np.all(rows >= 0):
        return np.nan
    cpu, gpu = jobs.cores[pods] * cluster.core_speed[rows], jobs.gpus[pods] * cluster.gpu_speed[rows]
    work = ((jobs.cpu_units[pods], cpu), (jobs.gpu_units[pods], gpu))
    return float(
        max(np.max(np.divide(units, speed, out=np.zeros(len(rows)), where=speed > 0)) for units, speed in work)
    )


def _told(
    case: Case,
    jobs: JobTable,
    job: int,
    outcome: Outcome,
    moments: tuple[Moment | None, Moment | None],
    here_s: float,
) -> Explained:
    first, last = int(jobs.first_pod[job]), int(jobs.first_pod[job + 1])
    nodes = tuple(outcome.nodes[place] for place in outcome.node[first:last] if place >= 0)
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
        here_s=here_s,
        passed_others=bool(outcome.backfilled[job]),
        nodes=nodes,
        scheduler=case.setup.scheduler,
        when_it_came=moments[0],
        when_it_was_placed=moments[1],
    )

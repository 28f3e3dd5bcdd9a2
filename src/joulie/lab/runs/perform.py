"""One run from its case and seed to the files that are kept of it: the same on one core, many, or many machines."""

from __future__ import annotations

import platform
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct, structs

from joulie.catalogue.lookup import Catalogue
from joulie.lab.analysis.capacity import fastest_s, idle_power, kinds, loads
from joulie.lab.analysis.measures import Measures, late, measure, performance_jobs, slowdowns
from joulie.lab.experiment.definition import Case
from joulie.lab.experiment.digests import computed_by, jobs_digest, outcome_digest
from joulie.lab.model.jobs import JobTable, Numbers
from joulie.lab.model.outcome import Outcome
from joulie.lab.model.refusals import LabError, assert_above_bound, refuse_unfinished, refuse_unstable
from joulie.lab.runs.processes import Progress, isolated
from joulie.lab.runs.store import JOBS, RUN, SERIES, Provenance, parquet_bytes, run_bytes
from joulie.lab.simulation.user_code import given_policy
from joulie.lab.traces.reading import jobs_of
from joulie.lab.traces.remarks import Remarks


class Finished(Struct, frozen=True):
    """A run and what it comes to."""

    outcome: Outcome
    measures: Measures
    provenance: Provenance
    fastest_s: Numbers  # by job


def perform(case: Case, seed: int, progress: Progress | None = None, git_commit: str = "") -> Finished:
    """Run it to the end of all work; LabError where its result would mean nothing."""
    return isolated(case.own, _performed, case, seed, git_commit, progress=progress)


def _performed(case: Case, seed: int, git_commit: str, progress: Progress | None) -> Finished:
    from joulie.lab.simulation.engine import simulate
    from joulie.lab.simulation.unheld_caps import not_held

    place = place_of(case.facet, case.variant, seed)
    setup, catalogue = case.setup, catalogue_of(case)
    groups = kinds(setup.cluster, catalogue)
    remarks = Remarks(skip_bad=case.trace.skip_bad)
    jobs = jobs_of(case.trace, seed, setup.cluster, catalogue, remarks)
    offered = loads(jobs, setup.cluster, groups, catalogue, case.trace.drawn_hours)
    refuse_unstable(offered, place)
    shortest_s = _shortest_s(case, jobs, place)
    outcome = simulate(setup, jobs, seed, progress, catalogue=catalogue, policy=given_policy(setup.policy.name))
    refuse_unfinished(outcome, place)
    bound_j = _bound_j(case, jobs, catalogue)
    assert_above_bound(outcome.counted.it_energy_j, bound_j, place)
    measures = measure(
        outcome,
        fastest_s=shortest_s,
        idle=idle_power(groups, setup, outcome.awake_s),
        bound_j=bound_j,
        kinds_apart=not setup.cluster.cpu_work_on_gpu_nodes,
        offered=offered,
    )
    provenance = _provenance(case, seed, outcome, git_commit)
    was_eco = outcome.counted.transitions > 0 or bool(np.any(outcome.series["eco_nodes"]))
    held = not_held(setup, catalogue, was_eco=was_eco)
    said = structs.replace(provenance, remarks="\n".join(remarks.lines()), held="\n".join(held))
    return Finished(outcome, measures, said, shortest_s)


def _shortest_s(case: Case, jobs: JobTable, place: str) -> Numbers:
    """How long each job takes at least on the cluster that slowdowns are measured by."""
    measured_by = structs.replace(case, setup=case.yardstick) if case.yardstick else case
    catalogue = catalogue_of(measured_by)
    shortest_s = fastest_s(jobs, kinds(measured_by.setup.cluster, catalogue), catalogue)
    if not np.all(np.isfinite(shortest_s)):
        job = jobs.id_of(int(np.argmin(np.isfinite(shortest_s))))
        raise LabError(
            f"{place}: job {job} fits nowhere on the baseline's cluster, so its slowdown cannot be compared; "
            "variants with other nodes must all be able to run all jobs"
        )
    return shortest_s


def files_of(finished: Finished) -> dict[str, bytes]:
    """What is kept of a run, by file name."""
    return {
        RUN: run_bytes(finished.measures, finished.provenance),
        JOBS: parquet_bytes(_job_columns(finished)),
        SERIES: parquet_bytes(finished.outcome.series),
    }


def catalogue_of(case: Case) -> Catalogue:
    """The built-in models, and those of the file that the settings name."""
    from joulie.sources.catalogue_file import read_catalogue

    return read_catalogue(str(case.setup.settings.get("HARDWARE_CATALOG_PATH", "")))


def place_of(facet: str, variant: str, seed: int) -> str:
    """What an error is about."""
    return f"{variant}, {facet}, seed {seed}" if facet else f"{variant}, seed {seed}"


def _bound_j(case: Case, jobs: JobTable, catalogue: Catalogue) -> float:
    from joulie.lab.analysis.lower_bound import lower_bound
    from joulie.lab.simulation.cluster import lab_cluster

    cluster = lab_cluster(case.setup.cluster, catalogue)
    return lower_bound(case.setup, cluster.machines, cluster.core_speed, cluster.gpu_speed, jobs).it_energy_j


def _job_columns(finished: Finished) -> dict[str, Any]:
    import pyarrow

    outcome, jobs = finished.outcome, finished.outcome.jobs
    first = jobs.first_pod[:-1]
    slowdown = slowdowns(outcome, finished.fastest_s)
    columns = {
        "submit_s": jobs.submit_s,
        "start_s": outcome.start_s,
        "end_s": outcome.end_s,
        "family": pyarrow.DictionaryArray.from_arrays(jobs.family, list(jobs.families)),
        "performance": performance_jobs(jobs),
        "pods": np.diff(jobs.first_pod),
        "cores": np.add.reduceat(jobs.cores, first) if len(jobs) else jobs.cores,
        "gpus": np.add.reduceat(jobs.gpus, first) if len(jobs) else jobs.gpus,
        "node": pyarrow.DictionaryArray.from_arrays(outcome.node[first], list(outcome.nodes)),  # of the first pod
        "backfilled": outcome.backfilled,
        "slowdown": slowdown,
        "late": late(jobs, outcome.end_s, slowdown),
    }
    return {"id": list(jobs.ids), **columns} if jobs.ids else columns


def _provenance(case: Case, seed: int, outcome: Outcome, git_commit: str) -> Provenance:
    return Provenance(
        facet=case.facet,
        variant=case.variant,
        seed=seed,
        key=case.key(seed),
        digest=outcome_digest(outcome),
        jobs_digest=jobs_digest(outcome.jobs),
        git_commit=git_commit,
        platform=f"{platform.system()} {platform.machine()}",
        setup=msgspec.json.encode(case.setup).decode(),
        trace=msgspec.json.encode(case.trace).decode(),
        **computed_by(),
    )

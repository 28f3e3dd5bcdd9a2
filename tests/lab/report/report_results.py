"""Results in a folder, written by the lab's own store, of made-up runs whose effects a test chooses."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import numpy as np

from joulie.lab.analysis.measures import Idle, measure
from joulie.lab.experiment.definition import Case, Experiment, parse_experiment
from joulie.lab.model.jobs import ANY_MODEL, JobTable
from joulie.lab.model.outcome import Outcome, RunTotals
from joulie.lab.runs.perform import Finished, files_of
from joulie.lab.runs.store import Index, Planned, Provenance, write_index, write_run

FAMILIES = ("cpu_analytics", "debug_eval", "single_gpu_training")
JOBS = 300
HOURS = 12

POLICIES = """\
name = "policies"
question = "Which policy saves energy at the same work?"
claim = "eco saves energy and slows jobs down"
seeds = "101-106"

[variants]
none = {}
eco = { policy.name = "static_partition" }
twin = { scheduler = "most" }
capped = { policy.name = "uniform", policy.gpu_cap_pct = 60 }
"""


class Effect(NamedTuple):
    """What a variant does to the runs."""

    energy: float = 1.0
    wait: float = 1.0
    cap_pct: float = 100.0
    noise: float = 0.002  # of its own, on each seed


EFFECTS = {
    "none": Effect(),
    "eco": Effect(0.93, 1.5, 80.0),
    "twin": Effect(1.0, 1.0),
    "capped": Effect(0.85, 3.0, 60.0),
}


def store(folder: Path, text: str = POLICIES, effects: dict[str, Effect] | None = None, *, leave_out: int = 0) -> Path:
    """The whole experiment but for its last `leave_out` runs."""
    experiment = parse_experiment(text, f"{folder.name}.toml", folder)
    planned = [(case, Planned(case.facet, case.variant, seed, _key(case, seed))) for case, seed in _runs(experiment)]
    for case, run in planned[: len(planned) - leave_out]:
        effect = (EFFECTS if effects is None else effects).get(case.variant, Effect())
        write_run(folder, run, files_of(made_up(case, run, effect)))
    write_index(folder, Index(experiment.filename, text, tuple(run for _, run in planned)))
    return folder


def made_up(case: Case, run: Planned, effect: Effect) -> Finished:
    """A run that only looks like one."""
    shared = np.random.default_rng([run.seed])
    own = np.random.default_rng([run.seed, *case.variant.encode()])
    jobs = _jobs(shared)
    wait_s = np.where(shared.random(JOBS) < 0.5, 0.0, shared.lognormal(4, 1.5, JOBS)) * effect.wait
    speed = 1 + (1 - effect.cap_pct / 100) * 0.3
    time_s = np.arange(1, HOURS * 60 + 1) * 60.0
    day = np.sin((time_s / 3600 - 9) / 24 * 2 * np.pi)
    it_w = (20_000 + 6_000 * day + 300 * shared.normal(size=len(time_s))) * effect.energy
    it_w *= 1 + effect.noise * own.normal()
    series = {
        "time_s": time_s,
        "it_w": it_w,
        "cooling_w": 0.2 * it_w,
        "outside_c": 14 + 6 * day,
        "inlet_c": 24 + 2 * day * effect.energy,
        "cpu_cap_pct": np.full(len(time_s), effect.cap_pct),
        "gpu_cap_pct": np.full(len(time_s), effect.cap_pct),
        "running_jobs": np.full(len(time_s), 20.0),
        "waiting_jobs": np.maximum(0.0, 5 * day * effect.wait),
        "eco_nodes": np.zeros(len(time_s)),
        "asleep_nodes": np.zeros(len(time_s)),
    }
    start_s = jobs.submit_s + wait_s
    outcome = Outcome(
        jobs=jobs,
        start_s=start_s,
        end_s=start_s + jobs.reference_s * speed,
        backfilled=np.zeros(JOBS, dtype=np.bool_),
        node=np.zeros(JOBS, dtype=np.int32),
        nodes=("node-0",),
        series=series,
        counted=_counted(it_w),
        awake_s=np.zeros(1),
    )
    measures = measure(
        outcome, fastest_s=jobs.reference_s, idle=Idle(4_000.0, 1_000.0), bound_j=0.6 * 20_000.0 * HOURS * 3600
    )
    provenance = Provenance(
        facet=run.facet,
        variant=run.variant,
        seed=run.seed,
        key=run.key,
        digest=f"result-{run.key}",
        jobs_digest=f"jobs-{run.facet}-{run.seed}",
        joulie="0.8.0",
        code="c0de" * 16,
        git_commit="",
        python="3.11.2",
        numpy="2.0",
        numba="0.62",
        platform="Linux x86_64",
        setup="{}",
        trace="{}",
    )
    return Finished(outcome, measures, provenance, jobs.reference_s)


def _runs(experiment: Experiment) -> list[tuple[Case, int]]:
    return [(case, seed) for case in experiment.cases for seed in experiment.seeds]


def _key(case: Case, seed: int) -> str:
    return hashlib.sha256(f"{case.facet} {case.variant} {seed}".encode()).hexdigest()


def _jobs(chance: np.random.Generator) -> JobTable:
    ones, nothing = np.ones(JOBS), np.zeros(JOBS)
    return JobTable(
        submit_s=np.sort(chance.uniform(0, 0.7 * HOURS * 3600, JOBS)),
        deadline_s=np.full(JOBS, np.nan),
        family=chance.integers(0, len(FAMILIES), JOBS).astype(np.int32),
        first_pod=np.arange(JOBS + 1, dtype=np.int32),
        cores=ones,
        gpus=np.zeros(JOBS, dtype=np.int32),
        gpu_model=np.full(JOBS, ANY_MODEL, dtype=np.int32),
        performance=chance.random(JOBS) < 0.2,
        cpu_units=chance.lognormal(6, 1, JOBS),
        gpu_units=nothing,
        cpu_utilisation=ones,
        gpu_utilisation=nothing,
        memory_intensity=nothing,
        io_intensity=nothing,
        feed_intensity=nothing,
        cpu_sensitivity=ones,
        gpu_sensitivity=ones,
        families=FAMILIES,
        gpu_models=(),
    )


def _counted(it_w: np.ndarray) -> RunTotals:
    it_energy_j = float(np.sum(it_w) * 60)
    chosen = {
        "makespan_s": HOURS * 3600.0,
        "metered_s": HOURS * 3600.0,
        "it_energy_j": it_energy_j,
        "fan_energy_j": 0.05 * it_energy_j,
        "compressor_energy_j": 0.15 * it_energy_j,
        "peak_it_w": float(np.max(it_w)),
        "transitions": 3,
        "wall_s": 1.0,
    }
    return RunTotals(**{field.name: chosen.get(field.name, 0) for field in fields(RunTotals)})  # type: ignore[arg-type]

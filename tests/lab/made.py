"""Jobs, outcomes and measures made by hand, for tests of what is concluded from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from joulie.lab.analysis.measures import Measures
from joulie.lab.model.jobs import ANY_MODEL, JobTable, Numbers
from joulie.lab.model.outcome import SERIES, Outcome, RunTotals
from joulie.lab.runs.store import Provenance

HOUR_S = 3600.0


def jobs_table(
    submit_s: list[float],
    hours: list[float],
    *,
    cores: float = 8.0,
    gpus: int = 0,
    performance: tuple[int, ...] = (),
    deadline_s: dict[int, float] | None = None,
) -> JobTable:
    """Jobs of one pod; `hours` on reference devices."""
    count = len(submit_s)
    seconds = np.asarray(hours) * HOUR_S
    ones = np.ones(count)
    deadlines = np.full(count, np.nan)
    for job, at_s in (deadline_s or {}).items():
        deadlines[job] = at_s
    return JobTable(
        submit_s=np.asarray(submit_s, dtype=np.float64),
        deadline_s=deadlines,
        family=np.zeros(count, dtype=np.int32),
        first_pod=np.arange(count + 1, dtype=np.int32),
        cores=ones * cores,
        gpus=np.full(count, gpus, dtype=np.int32),
        gpu_model=np.full(count, ANY_MODEL, dtype=np.int32),
        performance=np.isin(np.arange(count), performance),
        cpu_units=np.zeros(count) if gpus else seconds * cores,
        gpu_units=seconds * gpus,
        cpu_utilisation=ones * 0.8,
        gpu_utilisation=ones * 0.9 if gpus else ones * 0,
        memory_intensity=ones * 0.2,
        io_intensity=ones * 0.1,
        feed_intensity=ones * 0.0,
        cpu_sensitivity=ones,
        gpu_sensitivity=ones,
        families=("cpu_analytics",),
        gpu_models=(),
    )


def made_outcome(
    jobs: JobTable,
    start_s: list[float],
    end_s: list[float],
    *,
    it_w: list[float] | None = None,
    cooling_w: list[float] | None = None,
    **counted: Any,
) -> Outcome:
    """An outcome with one recorded interval a minute."""
    power_w = np.asarray(it_w or [1000.0, 1000.0, 1000.0])
    series: dict[str, Numbers] = {name: np.zeros(len(power_w)) for name in SERIES}
    series["time_s"] = 60.0 * np.arange(1.0, len(power_w) + 1)
    series["it_w"] = power_w
    series["cooling_w"] = np.asarray(cooling_w or [0.0] * len(power_w))
    base = RunTotals(
        makespan_s=max(end_s) - float(jobs.submit_s[0]),
        metered_s=max(end_s),
        it_energy_j=3.6e6,
        gpu_nodes_energy_j=0.0,
        fan_energy_j=0.36e6,
        compressor_energy_j=0.72e6,
        heat_removed_j=0.0,
        heat_stored_j=0.0,
        peak_it_w=2000.0,
        ticks=1,
        transitions=3,
        wakes=0,
        cap_violation_s=0.0,
        throttled_s=0.0,
        twin_error_pct=1.5,
        decision_cpu_s=0.1,
        wall_s=0.2,
    )
    return Outcome(
        jobs=jobs,
        start_s=np.asarray(start_s, dtype=np.float64),
        end_s=np.asarray(end_s, dtype=np.float64),
        backfilled=np.zeros(len(jobs), dtype=np.bool_),
        node=np.zeros(jobs.pods, dtype=np.int32),
        nodes=("node-00000",),
        series=series,
        counted=replace(base, **counted),
        awake_s=np.zeros(1),
    )


def made_measures(facility_kwh: float = 100.0, slowdown_p99: float = 2.0, **given: Any) -> Measures:
    """A run in which nothing but what is given matters."""
    values: dict[str, Any] = {
        "it_kwh": facility_kwh / 1.25,
        "facility_kwh": facility_kwh,
        "cpu_device_hours": 1000.0,
        "gpu_device_hours": 0.0,
        "kwh_per_1000_cpu_hours": facility_kwh,
        "kwh_per_1000_gpu_hours": None,
        "kwh_per_1000_device_hours": facility_kwh,
        "pue": 1.25,
        "idle_kw": 2.0,
        "settling_kwh": 0.0,
        "settling_gpu_nodes_kwh": 0.0,
        "settled_h": 0.0,
        "metered_h": 10.0,
        "slowdown_p99": slowdown_p99,
        "performance_slowdown_p50": None,
        "performance_slowdown_p99": None,
        "cpu_load_pct": None,
        "gpu_load_pct": None,
        "bound_kwh": 20.0,
        "over_bound_pct": 300.0,
        "jobs": 10,
        "pods": 10,
        "late_jobs": 0,
        "transitions": 0,
        "wakes": 0,
    }
    rest = {name: 1.0 for name in Measures.__struct_fields__ if name not in values}
    return Measures(**{**rest, **values, **given})


def made_provenance(
    variant: str, seed: int, key: str, *, digest: str = "", jobs_digest: str = "", remarks: str = ""
) -> Provenance:
    """Where a run that never was came from."""
    return Provenance(
        facet="",
        variant=variant,
        seed=seed,
        key=key,
        digest=digest,
        jobs_digest=jobs_digest,
        joulie="1",
        code="c",
        git_commit="",
        python="3",
        numpy="2",
        numba="",
        platform="Linux",
        setup="{}",
        trace="{}",
        remarks=remarks,
    )

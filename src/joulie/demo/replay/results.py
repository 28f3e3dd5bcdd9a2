"""The result of a replay, and the comparison of two. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from joulie.demo.scenario.day import DemoScene
from joulie.demo.scenario.progress import FinishedJob
from joulie.errors import JoulieError
from joulie.model.names import PERFORMANCE
from joulie.simulator.simulation import Simulation

J_PER_KWH = 3.6e6


class Replayed(Struct, frozen=True, rename="camel"):
    """One scene to the end of its work; hours of devices are as asked for, at uncapped speed."""

    scene: str
    seed: int
    joulie: bool
    policy: str | None
    jobs: int
    core_hours: float
    gpu_hours: float
    metered_s: float  # from the beginning; at least until all work was done
    it_kwh: float
    facility_kwh: float
    facility_kwh_until_done: float
    peak_kw: float
    warmest_inlet_c: float
    makespan_s: float
    slowdown_p50: float  # arrival to end, over the uncapped duration
    slowdown_p99: float
    performance_slowdown_p99: float  # of performance pods alone
    wait_p99_s: float
    transitions: int
    plant_core_hours: float  # what the plant itself counted as done, at the pods' own use of their cores
    plant_gpu_hours: float


class ReplayMeter(NamedTuple):
    """What was metered during a replay."""

    metered_s: float
    until_done_kwh: float
    peak_kw: float
    warmest_inlet_c: float


class UnequalWorkError(JoulieError):
    """Two replays that did unequal work are not compared."""


class ReplayComparison(Struct, frozen=True, rename="camel"):
    """The same work with and without Joulie."""

    scene: str
    seed: int
    with_joulie: Replayed
    without_joulie: Replayed
    saved_pct: float  # of the facility's energy in the same time; negative: Joulie costs energy
    saved_kwh: float
    saved_pct_until_done: float  # each metered only until its own work was done
    longer_s: float  # by which the work took longer


def compare(with_joulie: Replayed, without_joulie: Replayed) -> ReplayComparison:
    """UnequalWorkError unless both did exactly the same jobs and were metered for the same time."""
    work = [
        (one.scene, one.seed, one.jobs, one.core_hours, one.gpu_hours, one.metered_s)
        for one in (with_joulie, without_joulie)
    ]
    if work[0] != work[1]:
        raise UnequalWorkError(f"the two replays did not do the same work in the same time: {work[0]} and {work[1]}")
    saved_kwh = without_joulie.facility_kwh - with_joulie.facility_kwh
    return ReplayComparison(
        scene=with_joulie.scene,
        seed=with_joulie.seed,
        with_joulie=with_joulie,
        without_joulie=without_joulie,
        saved_pct=100.0 * saved_kwh / without_joulie.facility_kwh,
        saved_kwh=saved_kwh,
        saved_pct_until_done=100.0 * (1 - with_joulie.facility_kwh_until_done / without_joulie.facility_kwh_until_done),
        longer_s=with_joulie.makespan_s - without_joulie.makespan_s,
    )


def replayed(
    scene: DemoScene,
    seed: int,
    simulation: Simulation,
    finished: Sequence[FinishedJob],
    meter: ReplayMeter,
    *,
    policy: str | None,
    transitions: int,
) -> Replayed:
    """The measures of a finished replay."""
    fleet = simulation.fleet
    done = sorted(finished, key=lambda one: one.job.key)
    slowdowns = [one.slowdown for one in done]
    of_performance = [one.slowdown for one in done if one.job.workload_class == PERFORMANCE]
    return Replayed(
        scene=scene.name,
        seed=seed,
        joulie=policy is not None,
        policy=policy,
        jobs=len(done),
        core_hours=math.fsum(one.job.cores * one.job.duration_s for one in done) / 3600.0,
        gpu_hours=math.fsum(one.job.gpus * one.job.duration_s for one in done) / 3600.0,
        metered_s=meter.metered_s,
        it_kwh=it_kwh(simulation),
        facility_kwh=facility_kwh(simulation),
        facility_kwh_until_done=meter.until_done_kwh,
        peak_kw=meter.peak_kw,
        warmest_inlet_c=meter.warmest_inlet_c,
        makespan_s=max((one.ended_s for one in done), default=0.0),
        slowdown_p50=percentile(slowdowns, 50),
        slowdown_p99=percentile(slowdowns, 99),
        performance_slowdown_p99=percentile(of_performance, 99),
        wait_p99_s=percentile([one.started_s - one.submitted_s for one in done], 99),
        transitions=transitions,
        plant_core_hours=float(fleet.cpus.work_s.sum()) / 3600.0,
        plant_gpu_hours=float(fleet.gpus.work_s.sum()) / 3600.0,
    )


def it_kwh(simulation: Simulation) -> float:
    return float(simulation.facility.cooling.it_energy_j.sum()) / J_PER_KWH


def facility_kwh(simulation: Simulation) -> float:
    """IT, fans and compressors."""
    cooling = simulation.facility.cooling
    return it_kwh(simulation) + float(cooling.fan_energy_j.sum() + cooling.compressor_energy_j.sum()) / J_PER_KWH


def percentile(values: Sequence[float], share: float) -> float:
    return float(np.percentile(values, share)) if values else 0.0

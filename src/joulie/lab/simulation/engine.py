"""One run from its first job to its last: the compiled world moves on, the operator ticks, and both are recorded."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from joulie.catalogue.lookup import Catalogue
from joulie.control.policies.interface import Policy
from joulie.lab.kernels.events import ASKED, FINISHED, advance
from joulie.lab.kernels.tick import close_meters
from joulie.lab.kernels.world import ABSENT, GIVEN, JOULIE, World
from joulie.lab.model.jobs import JobTable, Numbers
from joulie.lab.model.outcome import Outcome, RunTotals
from joulie.lab.model.setup import LAB_POLICIES, RunSetup
from joulie.lab.simulation.budgets.grouping import Grouping
from joulie.lab.simulation.budgets.loop import LabBudgetLoop
from joulie.lab.simulation.cluster import LabCluster, lab_cluster
from joulie.lab.simulation.custom_ranking import Ranker, ranker
from joulie.lab.simulation.initial_state import build_world, with_groups
from joulie.lab.simulation.recording import Recorder
from joulie.lab.simulation.steering import Steering, clock_at_start_s, lab_settings
from joulie.lab.simulation.weather import outside_c

MAX_WEATHER = 20_000_000  # steps

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Observer:
    """Sees more than the outcome: called after each tick, and before a job is placed."""

    tick: Callable[[float, Steering, World], None] | None = None
    placed: Callable[[float, World], None] | None = None
    probe_job: int = ABSENT
    probe_from_s: float = 0.0


def simulate(
    setup: RunSetup,
    jobs: JobTable,
    seed: int,
    progress: Progress | None = None,
    *,
    catalogue: Catalogue | None = None,
    policy: Policy | None = None,
    observer: Observer | None = None,
) -> Outcome:
    """A pure function of setup, jobs and seed. Jobs that have not ended when the run is given up have no end (NaN)."""
    return SimulatedRun(setup, jobs, seed, catalogue=catalogue, policy=policy, observer=observer).run(progress)


class SimulatedRun:
    """A run that has not ended."""

    def __init__(
        self,
        setup: RunSetup,
        jobs: JobTable,
        seed: int,
        *,
        catalogue: Catalogue | None = None,
        policy: Policy | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._setup, self._jobs = setup, jobs
        settings = lab_settings(setup)
        self.cluster: LabCluster = lab_cluster(setup.cluster, catalogue, settings.operator.decision.hardware)
        span_s = float(jobs.submit_s[-1]) if len(jobs) else 0.0
        reference_s = jobs.reference_s
        longest_s = float(reference_s.max()) if len(jobs) else 0.0
        self._give_up_s = setup.longest_factor * max(span_s, longest_s, 3600.0)
        steps = int(min(self._give_up_s / setup.plant.step_s + 2, MAX_WEATHER))
        weather_c = outside_c(setup.weather, seed, steps, setup.plant.step_s)
        one_class = policy is None and setup.policy.name in LAB_POLICIES
        marginal = settings.operator.decision.marginal
        grouping = Grouping(setup, self.cluster, clock_at_start_s(setup)) if setup.budgets else None
        self.world = build_world(
            setup,
            self.cluster,
            jobs,
            marginal,
            weather_c,
            seed,
            reference_s=reference_s,
            one_class=one_class,
        )
        if grouping is not None:
            self.world = with_groups(self.world, grouping.tables())
        self.steering = Steering(setup, settings, self.cluster, self.world, seed, policy)
        self.budgets: LabBudgetLoop | None = None
        if grouping is not None:
            self.budgets = LabBudgetLoop(setup, grouping, self.cluster, self.world, self.steering, seed)
        self._observer = observer or Observer()
        self.world.run["probe_job"] = self._observer.probe_job
        self.world.run["probe_from_s"] = self._observer.probe_from_s
        ranking = int(self.world.run["ranking"])
        self._ranker: Ranker | None = ranker(setup.scheduler) if ranking == GIVEN else None
        self._ticks = ranking in (GIVEN, JOULIE) or not one_class
        self._recorder = Recorder(self.world, self.steering)

    def run(self, progress: Progress | None = None) -> Outcome:
        began = time.perf_counter()
        settings, world = self.steering.settings, self.world
        interval_s, lag_s = settings.interval_s, self._setup.telemetry.lag_s
        stale_s = settings.extender.score.twin_staleness_s
        next_tick_s = 0.0 if self._ticks else np.inf
        next_stale_s = np.inf
        next_record_s = self._setup.record_s
        # Readings are taken so long before each tick, from the first tick that has a past.
        next_reading_s = np.ceil(lag_s / interval_s) * interval_s - lag_s if self._ticks else np.inf
        budgets = self.budgets
        next_turn_s = np.inf if budgets is None else 0.0
        while True:
            until_s = min(next_tick_s, next_stale_s, next_record_s, next_reading_s, next_turn_s, self._give_up_s)
            why = self._advance(until_s)
            if why == FINISHED or until_s >= self._give_up_s:
                break
            if until_s == next_reading_s:
                self.steering.sensors.take(world, until_s)
                next_reading_s += interval_s
            if until_s == next_tick_s:
                self.steering.tick(until_s)
                if self._observer.tick is not None:
                    self._observer.tick(until_s, self.steering, world)
                next_tick_s += interval_s
                next_stale_s = until_s + stale_s if stale_s < interval_s else np.inf
            elif until_s == next_stale_s:
                self.steering.grow_stale()
                next_stale_s = np.inf
            if budgets is not None and until_s == next_turn_s:
                budgets.turn(until_s)
                next_turn_s += budgets.interval_s
            if until_s == next_record_s:
                self._recorder.record()
                next_record_s += self._setup.record_s
                if progress is not None:
                    progress(float(world.run["done"]) / max(1, len(self._jobs)))
        close_meters(world)
        self._recorder.record()
        return self._outcome(time.perf_counter() - began)

    def _advance(self, until_s: float) -> int:
        while (why := advance(self.world, until_s)) == ASKED:
            run = self.world.run
            if run["asks_shape"] == ABSENT:  # the job to look at is about to be placed
                if self._observer.placed is not None:
                    self._observer.placed(float(run["now_s"]), self.world)
                run["probe_job"] = ABSENT
                continue
            assert self._ranker is not None
            self._ranker.give(self.world, int(run["asks_shape"]), float(run["now_s"]))
            run["asks_shape"] = ABSENT
        return why

    def _outcome(self, wall_s: float) -> Outcome:
        world, jobs = self.world, self._jobs
        zones, run, nodes = world.zones, world.run, world.nodes
        end_s = world.ended_s
        ended = ~np.isnan(end_s)
        first_s = float(jobs.submit_s[0]) if len(jobs) else 0.0
        errors = self.steering.sensors.error_pct
        stored_j = zones["rated_w"] * self._recorder.heat_capacity_s * (zones["inlet_c"] - self._recorder.setpoint_c)
        has_gpu = nodes["gpus"] > 0
        counted = RunTotals(
            makespan_s=float(np.nanmax(end_s, initial=first_s)) - first_s if ended.any() else 0.0,
            metered_s=float(run["now_s"]),
            it_energy_j=float(zones["it_j"].sum()),
            gpu_nodes_energy_j=float(nodes["energy_j"][has_gpu].sum()),
            fan_energy_j=float(zones["fan_j"].sum()),
            compressor_energy_j=float(zones["compressor_j"].sum()),
            heat_removed_j=float(zones["removed_j"].sum()),
            heat_stored_j=float(stored_j.sum()),
            peak_it_w=float(run["peak_w"]),
            ticks=self.steering.ticks,
            transitions=self.steering.transitions,
            wakes=int(run["wakes"]),
            cap_violation_s=float(run["violation_s"]),
            throttled_s=float(run["throttled_s"]),
            twin_error_pct=float(np.mean(errors)) if errors else 0.0,
            decision_cpu_s=self.steering.cpu_s,
            wall_s=wall_s,
        )
        return Outcome(
            jobs,
            world.start_s,
            end_s,
            world.backfilled,
            world.node_of_pod,
            self.cluster.names,
            self._recorder.series(),
            counted,
            self._awake_s(),
            None if self.budgets is None else self.budgets.counted(),
        )

    def _awake_s(self) -> Numbers:
        """Nodes are switched off at steps of the plant."""
        run, nodes = self.world.run, self.world.nodes
        if not run["sleeps"]:
            return np.zeros(len(nodes))
        due_s = np.maximum(nodes["empty_since_s"] + run["sleep_after_s"], nodes["ready_s"])
        steps = np.ceil(np.maximum(due_s - run["next_step_s"], 0.0) / run["step_s"])
        off_s: Numbers = run["next_step_s"] + steps * run["step_s"] - run["now_s"]
        return np.where(nodes["asleep"], 0.0, off_s)

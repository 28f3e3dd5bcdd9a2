"""Operator and extender inside a run: the functions of `control` that they call live, on arrays instead of objects.

`tests/lab/simulation/test_same_as_live.py` holds both together. What differs from a live cluster: twins are handed over
whole on every tick (no deadband, no refreshes), and a cap acts at once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from joulie import plugins
from joulie.control.caps import profile_caps
from joulie.control.cycle import ask
from joulie.control.density import densest_first, planning_densities
from joulie.control.policies.interface import NodeView, Policy, PolicyView, State
from joulie.control.scoring import (
    CLASS_CODES,
    ScoreColumns,
    budget_w,
    cluster_facts,
    facts_of,
    full_power_w,
    points_per_w,
)
from joulie.control.survey import MachineColumns
from joulie.control.transitions import guarded_state, transition
from joulie.control.twins import UnderCaps, under_caps
from joulie.lab.kernels.tick import hand_over, recap, take_predictions
from joulie.lab.kernels.world import World
from joulie.lab.model.setup import LAB_POLICIES, PolicySetup, RunSetup
from joulie.lab.simulation.cluster import LabCluster
from joulie.lab.simulation.lanes import NEVER
from joulie.lab.simulation.telemetry import Sensors
from joulie.lab.simulation.twins import TwinWriter
from joulie.model.names import ECO, PERFORMANCE
from joulie.physics.cooling import LinearCoolingModel
from joulie.physics.marginal import MIN_TOTAL
from joulie.settings import ExtenderSettings, OperatorSettings, load

Numbers = NDArray[np.float64]
START_S = 1_699_920_000.0  # the midnight (UTC) before a run begins: policies may go by the time of day


@dataclass(frozen=True)
class LabSettings:
    """What operator and extender would have read."""

    operator: OperatorSettings
    extender: ExtenderSettings

    @property
    def interval_s(self) -> float:
        return self.operator.decision.plan.reconcile_interval_s


def clock_at_start_s(setup: RunSetup) -> float:
    """The time of day at which a run begins, for policies and windows of budgets."""
    return START_S + setup.weather.start_hour * 3600.0


def lab_settings(setup: RunSetup) -> LabSettings:
    env = setup.environment | _policy_env(setup.policy)
    return LabSettings(load(OperatorSettings, env), load(ExtenderSettings, env))


def _policy_env(policy: PolicySetup) -> dict[str, str]:
    """Without a policy every node is a performance node; `uniform` says what that means in caps."""
    if policy.name not in LAB_POLICIES:
        return {"POLICY_TYPE": policy.name}
    capped = policy.name == "uniform"
    return {
        "CPU_PERFORMANCE_CAP_PCT_OF_MAX": str(policy.cpu_cap_pct if capped else 100.0),
        "GPU_PERFORMANCE_CAP_PCT_OF_MAX": str(policy.gpu_cap_pct if capped else 100.0),
    }


class Steering:
    """One decision after the other."""

    def __init__(
        self,
        setup: RunSetup,
        settings: LabSettings,
        cluster: LabCluster,
        world: World,
        seed: int,
        policy: Policy | None = None,
    ) -> None:
        self.settings = settings
        self.start_s = clock_at_start_s(setup)
        decision = self.settings.operator.decision
        self.policy = policy
        if policy is None and setup.policy.name not in LAB_POLICIES:
            self.policy = plugins.policy(setup.policy.name)
        self.transitions = self.ticks = 0
        self.cpu_s = 0.0
        self._world, self._cluster = world, cluster
        self._cooling = plugins.cooling(decision.twin.cooling_model, decision.twin)
        self._columns = MachineColumns.of(cluster.recognised)
        self._max_w = self._columns.cpu_max_w + self._columns.gpu_max_w
        self._idle_w = np.array([machine.idle_w for machine in cluster.recognised])
        self._has_gpu = np.array([machine.gpu_count > 0 for machine in cluster.recognised])
        self._caps = {profile: self._caps_of(profile) for profile in (PERFORMANCE, ECO)}
        self._under: UnderCaps | None  # as of the last caps
        self._budget_pct: tuple[Numbers, Numbers] | None = None
        self._draining_or_full = np.ones(len(cluster), np.bool_)  # at performance caps
        self._put_in_force()
        self.states: list[State] = [PERFORMANCE] * len(cluster)
        self.sensors = Sensors(setup.telemetry, self.settings, cluster, seed)
        densities = planning_densities(cluster.recognised)
        self._order = densest_first(densities)
        self._views = [
            NodeView(
                name, density, machine.family, node.labels, PERFORMANCE, 0, machine.cpu_max_w, machine.gpu_max_w, None
            )
            for (name, node), machine, density in zip(cluster.nodes.items(), cluster.recognised, densities, strict=True)
        ]
        self.twins = TwinWriter(cluster, decision.twin.rack_capacity_w)
        self.scores = self._score_columns()  # as of the last tick
        world.run["score_max"] = self.settings.extender.score.score_max
        world.run["counts_recent"] = self.settings.extender.score.count_recent_pods
        recap(world, np.arange(len(cluster)), self._columns.cpu_max_w, *self._caps[PERFORMANCE])

    def _put_in_force(self) -> None:
        """The caps of CPUs and GPUs that states ask for."""
        full, eco = self._caps[PERFORMANCE], self._caps[ECO]
        at_full, has_gpu = self._draining_or_full, self._has_gpu
        cpu_pct, gpu_pct = np.where(at_full, full[0], eco[0]), np.where(at_full, full[1], eco[1])
        self.policy_pct = cpu_pct, gpu_pct
        if self._budget_pct is not None:
            cpu_pct, gpu_pct = np.minimum(cpu_pct, self._budget_pct[0]), np.minimum(gpu_pct, self._budget_pct[1])
        self._cap_pct = cpu_pct, gpu_pct
        self.mean_cap_pct = float(cpu_pct.mean()), float(gpu_pct[has_gpu].mean()) if has_gpu.any() else 100.0
        self._under = None

    def tick(self, now_s: float) -> None:
        """One decision: states, caps, twins, and what the extender makes of them."""
        began = time.process_time()
        world = self._world
        if self.policy is not None:
            self._decide(self.policy, now_s)
        self._look(now_s)
        world.run["tick"] += 1
        world.run["freed"] += 1
        world.run["everything"] = world.run["waiting"] > 0
        world.blocks["seen"] = NEVER  # every rank may have changed
        self.ticks += 1
        self.cpu_s += time.process_time() - began

    def hold_to_budget(self, cpu_pct: Numbers, gpu_pct: Numbers, changed: NDArray[np.int64]) -> None:
        """Other caps of budgets for these nodes; the lower of them and the policy's counts."""
        self._budget_pct = cpu_pct, gpu_pct
        self._put_in_force()
        self._recap(changed)

    def grow_stale(self) -> None:
        """Nothing was heard for too long: every score is neutral."""
        self._world.run["known"] = False
        self._world.blocks["seen"] = NEVER

    def _decide(self, policy: Policy, now_s: float) -> None:
        """What `control.cycle.decide` does with nodes of which none is cordoned or pinned."""
        world, plan = self._world, self.settings.operator.decision.plan
        on_nodes = world.nodes["performance_pods"].tolist()
        views, states = self._views, self.states
        for row, view in enumerate(views):
            if view.performance_pods != on_nodes[row] or view.state != states[row] or view.twin is not None:
                views[row] = replace(view, performance_pods=on_nodes[row], state=states[row])
        if getattr(policy, "reads_twins", True) and self.ticks:
            self.twins.show(views, states, self.scores, self.sensors)
        wanted = int(world.nodes["performance_pods"].sum() + world.run["waiting_performance"])
        ranked = tuple([views[place] for place in self._order])
        choices = ask(policy, PolicyView(ranked, wanted, now_s + self.start_s, plan))
        self._take(choices, on_nodes)

    def _take(self, choices: Mapping[str, tuple[str, str]], on_nodes: list[int]) -> None:
        changed: list[int] = []
        for row, name in enumerate(self._cluster.names):
            after = guarded_state(choices[name][0], on_nodes[row])  # type: ignore[arg-type]
            before = self.states[row]
            if after != before:
                change = transition(before, after)
                self.transitions += change is not None and change.result == "applied"
                self.states[row] = after
                changed.append(row)
        if changed:
            rows = np.array(changed)
            self._world.nodes["class_code"][rows] = [CLASS_CODES[self.states[row]] for row in changed]
            self._draining_or_full[rows] = [self.states[row] != ECO for row in changed]
            self._put_in_force()
            self._recap(rows)

    def _recap(self, rows: NDArray[np.int64]) -> None:
        cpu_pct, gpu_pct = self._cap_pct
        recap(self._world, rows, self._columns.cpu_max_w[rows], cpu_pct[rows], gpu_pct[rows])

    def _look(self, now_s: float) -> None:
        """Twins as of now, and the terms of the score that no pod changes."""
        world, sensors, columns = self._world, self.sensors, self.scores
        air_c, pue = sensors.facility(world)
        if self._under is None or sensors.has_facility or not isinstance(self._cooling, LinearCoolingModel):
            self._under = self._foresee(air_c, pue)  # caps or the air may be others, or a model remembers what it saw
        limits = (columns.capped_w, self._idle_w, self._max_w)
        sensors.measure(world, now_s, limits, columns.measured_w)
        columns.trend_w_per_min[:] = sensors.trend(now_s)
        sensors.record(columns.measured_w, now_s)
        self.twins.keep(self._under, *self._cap_pct, pue, now_s + self.start_s)
        world.run["known"] = True
        hand_over(world, facts_of(columns), cluster_facts(columns))

    def _foresee(self, air_c: Numbers, pue: float | None) -> UnderCaps:
        """What follows from caps, classes and air."""
        columns, (cpu_pct, gpu_pct) = self.scores, self._cap_pct
        cpu_max_w, gpu_max_w = self._columns.cpu_max_w, self._columns.gpu_max_w
        under = under_caps(cpu_max_w, gpu_max_w, cpu_pct, np.where(self._has_gpu, gpu_pct, 100.0), air_c, self._cooling)
        columns.has_power[:] = under.capped_w >= MIN_TOTAL
        columns.capped_w[:] = under.capped_w
        columns.predicted_headroom[:] = under.headroom
        columns.cooling_stress[:] = under.cooling_stress
        columns.class_code[:] = self._world.nodes["class_code"]
        columns.pue[:] = pue or 1.0
        full_w = full_power_w(columns, self.settings.operator.decision.marginal)
        predicted = (columns.capped_w, budget_w(columns), points_per_w(columns), *full_w.values())
        take_predictions(self._world, predicted)
        return under

    def _caps_of(self, profile: str) -> tuple[Numbers, Numbers]:
        plan = self.settings.operator.decision.plan
        caps = [profile_caps(machine, profile, plan) for machine in self._cluster.recognised]
        pairs = list(zip(caps, self._cluster.recognised, strict=True))
        return (
            np.array([cap.effective_cpu_pct(machine) for cap, machine in pairs]),
            np.array([cap.effective_gpu_pct(machine) for cap, machine in pairs]),
        )

    def _score_columns(self) -> ScoreColumns:
        count, columns = len(self._cluster), self._columns
        return ScoreColumns(
            fresh=np.ones(count, np.bool_),
            class_code=np.zeros(count, np.int8),
            has_power=np.ones(count, np.bool_),
            capped_w=np.zeros(count),
            measured_w=np.zeros(count),
            recent_w=np.zeros(count),
            expected_w=np.zeros(count),
            predicted_headroom=np.zeros(count),
            cooling_stress=np.zeros(count),
            trend_w_per_min=np.zeros(count),
            pue=np.ones(count),
            cpu_max_w=columns.cpu_max_w,
            gpu_max_w=columns.gpu_max_w,
            inverse_cores=columns.inverse_cores,
            inverse_gpus=columns.inverse_gpus,
        )

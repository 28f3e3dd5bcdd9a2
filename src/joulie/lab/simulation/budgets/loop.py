"""The budget loop of a run: readings as old and as noisy as the run says, a rule, and caps on the plant."""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

import numpy as np

from joulie.control.budget.allocation import NO_WORK, OTHER_WORK, PERFORMANCE_WORK, Groups
from joulie.control.budget.envelopes import Pair, envelope_of
from joulie.control.budget.filling import Flags, Numbers
from joulie.control.budget.members import BUSY_SHARE, demand_of
from joulie.lab.kernels.group_meters import read_groups, read_nodes, set_limits
from joulie.lab.kernels.world import WATT, World
from joulie.lab.model.outcome import BudgetsCounted
from joulie.lab.model.setup import RunSetup
from joulie.lab.simulation.budgets.grouping import Grouping
from joulie.lab.simulation.budgets.reactive import Reactive
from joulie.lab.simulation.budgets.shared import Shared
from joulie.lab.simulation.budgets.static import Static
from joulie.lab.simulation.budgets.view import Ranges, Rule, View
from joulie.lab.simulation.cluster import LabCluster
from joulie.lab.simulation.steering import Steering
from joulie.model.snapshot import Utilisation
from joulie.physics.marginal import share

_STREAM = 5  # of the seed
_WHOLE_W = 1e-6


class Reading(NamedTuple):
    """All nodes at one moment."""

    at_s: float
    cpu_w: Numbers
    gpu_w: Numbers
    wall_w: Numbers
    cpu_used: Numbers
    gpu_used: Numbers
    free_cores: Numbers
    free_gpus: Numbers


class LabBudgetLoop:
    """One turn after the other."""

    def __init__(
        self, setup: RunSetup, grouping: Grouping, cluster: LabCluster, world: World, steering: Steering, seed: int
    ) -> None:
        self._setup, self._grouping, self._world, self._steering = setup.telemetry, grouping, world, steering
        self._envelopes = [
            envelope_of(node, machine) for node, machine in zip(cluster.nodes.values(), cluster.recognised, strict=True)
        ]
        limits = [group.limit for group in grouping.groups if group.is_enforced]
        self._ranges = Ranges.of(self._envelopes, grouping.rest_follows())
        self._busy_w = BUSY_SHARE * np.array([machine.max_w for machine in cluster.recognised])
        self._share, self._reserve_w = (
            np.array([getattr(limit, name) for limit in limits]) for name in ("share", "reserve_w")
        )
        rules: dict[str, Rule] = {
            "shared": Shared(list(cluster.names)),
            "static": Static(),
            "reactive": Reactive(len(limits)),
        }
        self._rule = rules[setup.sharing.rule]
        self.interval_s = self._rule.interval_s or setup.sharing.interval_s
        self._is_enforced = bool(limits)
        self._limits_until_s = -np.inf
        self._groups: Groups | None = None
        self._held = self._ranges.top.copy()
        self._demand = self._ranges.top.copy()
        self._used: tuple[Numbers, ...] = ()  # what the demand follows from
        self._before: tuple[Numbers, ...] = ()  # what the last turn went by, where it changed nothing
        self._chance = np.random.default_rng([seed, _STREAM])
        self._on_its_way: deque[Reading] = deque()
        self._last: Reading | None = None
        self._max_age_s = steering.settings.operator.decision.twin.power_max_age_s

    def turn(self, now_s: float) -> None:
        """Limits as of now, and new caps where anything that they follow from has changed."""
        began = time.process_time()
        self._limit(now_s)
        if self._is_enforced:
            self._decide(now_s)
        self._steering.cpu_s += time.process_time() - began

    def counted(self) -> BudgetsCounted:
        read_groups(self._world)
        groups = self._world.groups
        return BudgetsCounted(
            above_limit_s=float(groups["above_s"].sum()),
            worst_excess_w=float(groups["worst_w"].max(initial=0.0)),
            worst_excess_pct=float(groups["worst_pct"].max(initial=0.0)),
        )

    def _limit(self, now_s: float) -> None:
        clock_s = now_s + self._steering.start_s
        if clock_s < self._limits_until_s:
            return
        limits = self._grouping.limits(clock_s)
        self._limits_until_s = limits.until_s
        set_limits(self._world, limits.stated_w)
        self._groups = self._grouping.enforced(limits.in_force_w, self._ranges.rest_w)
        self._before = ()

    def _decide(self, now_s: float) -> None:
        assert self._groups is not None
        reading = self._reading(now_s)
        nodes, ceiling = self._world.nodes, self._ceiling()
        worked = np.where(nodes["bound"] / WATT > self._busy_w, OTHER_WORK, NO_WORK)
        weight = np.where(nodes["performance_pods"] > 0, PERFORMANCE_WORK, worked)
        self._want(reading, ceiling)
        known = (reading.cpu_w, reading.gpu_w, reading.wall_w) if reading is not None else ()
        seen = (self._demand.copy(), ceiling, weight, *known)
        if len(seen) == len(self._before) and all(map(np.array_equal, seen, self._before)):
            return
        view = View(
            self._groups,
            self._share,
            self._reserve_w,
            self._ranges,
            self._demand,
            ceiling,
            weight,
            self._held,
            None if reading is None else self._drawn(reading),
            None if reading is None else reading.wall_w,
        )
        caps = self._rule.caps(view)
        changed = (caps != self._held).any(axis=1)
        self._before = () if changed.any() else seen
        if changed.any():
            self._held = caps
            self._put_in_force(changed)

    def _put_in_force(self, changed: Flags) -> None:
        """As percentages of the maximum, in which the rest of a run counts caps."""
        top = self._ranges.top
        pct = 100.0 * np.divide(self._held, top, out=np.ones_like(top), where=top > 0)
        self._steering.hold_to_budget(pct[:, 0], pct[:, 1], np.flatnonzero(changed))

    def _ceiling(self) -> Numbers:
        pct = np.stack(self._steering.policy_pct, axis=1)
        ceiling: Numbers = np.minimum(np.floor(self._ranges.top * pct / 100.0 + _WHOLE_W), self._ranges.top)
        return ceiling

    def _drawn(self, reading: Reading) -> Numbers:
        devices = self._ranges.devices
        drawn = np.stack((reading.cpu_w, reading.gpu_w), axis=1)
        return np.divide(drawn, devices, out=np.zeros_like(drawn), where=devices > 0)

    def _reading(self, now_s: float) -> Reading | None:
        """The newest that has arrived, unless it is too old to be believed."""
        if self._setup.source == "static":
            return None
        self._take(now_s)
        while self._on_its_way and self._on_its_way[0].at_s + self._setup.lag_s <= now_s + 1e-9:
            self._last = self._on_its_way.popleft()
        return self._last if self._last is not None and self._last.at_s >= now_s - self._max_age_s else None

    def _take(self, now_s: float) -> None:
        nodes = self._world.nodes
        cpu_w, gpu_w, wall_w, cpu_used, gpu_used = (np.empty(len(nodes)) for _ in range(5))
        read_nodes(self._world, cpu_w, gpu_w, wall_w, cpu_used, gpu_used)
        if self._setup.noise_pct > 0:
            spread = np.maximum(self._chance.normal(1.0, self._setup.noise_pct / 100.0, len(nodes)), 0.0)
            cpu_w, gpu_w, wall_w = cpu_w * spread, gpu_w * spread, wall_w * spread
        free = nodes["free_mcores"] / 1000.0, nodes["free_gpus"].astype(np.float64)
        self._on_its_way.append(Reading(now_s, cpu_w, gpu_w, wall_w, cpu_used, gpu_used, *free))

    def _want(self, reading: Reading | None, ceiling: Numbers) -> None:
        """What nodes ask for, anew for those of which something else is known than before."""
        if reading is None:
            self._demand, self._used = ceiling, ()
            return
        nodes = self._world.nodes
        cores, gpus = reading.free_cores - nodes["free_mcores"] / 1000.0, reading.free_gpus - nodes["free_gpus"]
        cpu_bound_w = share(np.maximum(cores, 0.0), nodes["inverse_cores"]) * nodes["cpu_plain_w"]
        gpu_bound_w = share(np.maximum(gpus, 0.0), nodes["inverse_gpus"]) * nodes["gpu_plain_standard_w"]
        held = (nodes["gpus"] - nodes["free_gpus"]).astype(np.float64)
        used = (reading.cpu_w + reading.gpu_w, reading.cpu_used, reading.gpu_used, cpu_bound_w, gpu_bound_w, held)
        if not self._used:
            self._demand = ceiling.copy()
        others = np.ones(len(ceiling), dtype=np.bool_)
        if self._used:
            others = np.logical_or.reduce([now != then for now, then in zip(used, self._used, strict=True)])
        for row in np.flatnonzero(others).tolist():
            drawn_w, cpu_used, gpu_used, cpu_w, gpu_w, gpus = (float(each[row]) for each in used)
            busy = Utilisation(reading.at_s, cpu_used, gpu_used)
            top = self._envelopes[row].top
            self._demand[row] = demand_of(self._envelopes[row], top, drawn_w, busy, Pair(cpu_w, gpu_w), gpus)
        self._used = used

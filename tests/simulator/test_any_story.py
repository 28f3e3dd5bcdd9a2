"""Whatever happens, in whatever order: limits stay in range, numbers stay numbers, counters never run backwards."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from joulie.plant.machines import PlantMachine
from joulie.simulator import views
from joulie.simulator.control import ACTIONS, Command
from joulie.simulator.faults import WAYS, Fault
from tests.simulator.grounds import Clock, node, pod, simulation

NAMES = ("a", "b", "c", "d")
names = st.sampled_from(NAMES)
models = st.sampled_from([("EPYC-9654", "H100-SXM"), ("EPYC-9965", "A40"), ("?", "?")])


class AnyStory(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.clock = Clock()
        self.world = simulation(node("a", 2), clock=self.clock, SIM_NOISE_PCT="20", SIM_OUTSIDE_TEMP_C="40")
        self.counted_j: dict[str, float] = {}
        self.machines: dict[str, PlantMachine] = {}

    @rule(name=names, gpus=st.integers(0, 3), model=models)
    def put_node(self, name: str, gpus: int, model: tuple[str, str]) -> None:
        self.world.put_node(node(name, gpus, cpu=model[0], gpu=model[1]))

    @rule(name=names)
    def drop_node(self, name: str) -> None:
        self.world.drop_node(name)

    @rule(name=names, on=names, cpu=st.floats(0, 400), gpus=st.integers(0, 9), performance=st.booleans())
    def put_pod(self, name: str, on: str, cpu: float, gpus: int, performance: bool) -> None:
        self.world.put_pod(f"team/{name}", pod(name, on, cpu, gpus, performance=performance))

    @rule(name=names)
    def drop_pod(self, name: str) -> None:
        self.world.drop_pod(f"team/{name}")

    @rule(name=names, action=st.sampled_from(ACTIONS), value=st.one_of(st.none(), st.floats(1e-9, 1e9)))
    def command(self, name: str, action: str, value: float | None) -> None:
        self.world.settle_changes()
        if name in self.world.index:
            assert self.world.command(name, Command(action, value)).result in ("applied", "blocked", "error")

    @rule(name=names, kind=st.sampled_from(sorted(WAYS)), way=st.integers(0, 3))
    def fault(self, name: str, kind: str, way: int) -> None:
        self.world.settle_changes()
        if name in self.world.index:
            how = WAYS[kind][way % len(WAYS[kind])] if WAYS[kind] else ""
            self.world.put_fault(name, Fault(kind, how))  # type: ignore[arg-type]

    @rule(dt_s=st.one_of(st.floats(0, 2), st.floats(0, 5_000)))
    def step(self, dt_s: float) -> None:
        self.clock.now_s += dt_s
        self.world.step(dt_s)

    @invariant()
    def limits_are_in_range(self) -> None:
        fleet = self.world.fleet
        for bank in (fleet.cpus, fleet.gpus):
            for limit_w in (bank.cap_target_w, bank.cap_w):
                assert np.all((limit_w >= bank.min_w - 1e-9) & (limit_w <= bank.cap_max_w + 1e-9))
            assert np.all((bank.power_w >= bank.idle_w - 1e-9) & (bank.power_w <= bank.max_w + 1e-9))

    @invariant()
    def counters_only_grow_while_a_node_stays_the_same(self) -> None:
        energy_j = self.world.fleet.node_energy_j
        counted, machines = {}, {}
        for name, place in self.world.index.items():
            machines[name], counted[name] = self.world.nodes[place].machine, float(energy_j[place])
            if self.machines.get(name) == machines[name]:
                assert counted[name] >= self.counted_j[name] - 1e-6
        self.counted_j, self.machines = counted, machines

    @invariant()
    def everything_told_is_a_number(self) -> None:
        for place in self.world.index.values():
            for view in (views.telemetry(self.world, place), views.power(self.world, place)):
                assert all(map(math.isfinite, _numbers(view)))
        assert all(map(math.isfinite, _numbers(views.all_energy(self.world))))


def _numbers(value: object) -> list[float]:
    if isinstance(value, dict):
        return [number for part in value.values() for number in _numbers(part)]
    if isinstance(value, list):
        return [number for part in value for number in _numbers(part)]
    return [float(value)] if isinstance(value, int | float) else []


TestAnyStory = AnyStory.TestCase
TestAnyStory.settings = settings(max_examples=40, stateful_step_count=30)

"""Simulated nodes without a network: nodes and pods go in, time passes in steps, commands change limits.

simulation = Simulation(SimulatorSettings(), Catalogue())
simulation.put_node(node); simulation.put_pod("team/train-0", pod)
simulation.step(1.0)
simulation.command("node-1", Command(RAPL, 300.0))
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from joulie.catalogue.lookup import Catalogue
from joulie.model.api import NodeHardware
from joulie.model.snapshot import Node, Pod
from joulie.plant.curves import Numbers
from joulie.plant.fleet import Fleet, FleetLoad
from joulie.settings import SimulatorSettings
from joulie.simulator.control import DVFS, GPU, RAPL, Command, Reply
from joulie.simulator.facility import Facility
from joulie.simulator.faults import Fault, Faults
from joulie.simulator.hardware import SimulatedNode, simulated_node
from joulie.simulator.load_file import EVERY_NODE, LoadTimeline
from joulie.simulator.loads import IDLE, NodeLoad, chances, load_of
from joulie.simulator.views import limits

EVENTS_KEPT = 1_000
NODES_NAMED = 20
# A load wavers as two waves of its own phase; no randomness, so any step and any order of nodes gives the same.
_WAVES_S = ((47.0, 0.6), (11.0, 0.4))


class Simulation:
    """The nodes, their hardware's state, and what works on them."""

    def __init__(
        self,
        settings: SimulatorSettings | None = None,
        catalogue: Catalogue | None = None,
        *,
        timeline: LoadTimeline | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings or SimulatorSettings()
        self.catalogue = catalogue or Catalogue()
        self.faults = Faults()
        self.events: deque[dict[str, Any]] = deque(maxlen=EVENTS_KEPT)
        self.nodes: tuple[SimulatedNode, ...] = ()
        self.index: dict[str, int] = {}
        self.fleet = Fleet(())
        self.facility = Facility(())
        self.load = self.fleet.idle_load()  # as it is now, wavering
        self.stepped_at_s = clock()
        self.elapsed_s = 0.0
        self.steps = 0
        self.clock = clock
        self._timeline = timeline or LoadTimeline()
        self._wanted: dict[str, SimulatedNode] = {}
        self._pods: dict[str, Pod] = {}
        self._pods_on: dict[str, set[str]] = {}
        self._steady = self.load
        self._stale_loads: set[str] = set()
        self._nodes_changed = False
        self._node_phase = self._board_phase = np.zeros(0)

    # What is simulated

    def put_node(self, node: Node, stated: NodeHardware | None = None) -> None:
        """A node that is new or has changed; one outside SIM_NODE_SELECTOR is not simulated.

        Hardware comes from what is stated in a file, else from labels and capacity. A cluster's NodeHardware is not to
        be stated: agents wrote there what they read here.
        """
        if not self.settings.node_selector.matches(node.labels):
            self.drop_node(node.name)
            return
        wanted = simulated_node(node, stated, self.settings.hardware, self.catalogue)
        if self._wanted.get(node.name) != wanted:
            self._wanted[node.name] = wanted
            self._nodes_changed = True

    def drop_node(self, name: str) -> None:
        if self._wanted.pop(name, None) is not None:
            self._nodes_changed = True
            self.faults.forget(name)

    def put_pod(self, key: str, pod: Pod) -> None:
        self.drop_pod(key)
        if pod.node:
            self._pods[key] = pod
            self._pods_on.setdefault(pod.node, set()).add(key)
            self._stale_loads.add(pod.node)

    def drop_pod(self, key: str) -> None:
        pod = self._pods.pop(key, None)
        if pod is not None:
            self._pods_on[pod.node].discard(key)
            self._stale_loads.add(pod.node)

    def pods_on(self, name: str) -> list[Pod]:
        return [self._pods[key] for key in self._pods_on.get(name, ())]

    # Time

    def step(self, dt_s: float) -> None:
        """Let `dt_s` of simulated time pass."""
        self.settle_changes()
        self._waver(self.elapsed_s + 0.5 * dt_s)
        self.fleet.step(dt_s, self.load, self.facility.inlet_c)
        self.facility.step(dt_s, self.fleet.node_w, self.settings.outside_c)
        self.elapsed_s += dt_s
        self.steps += 1
        self.stepped_at_s = self.clock()

    def settle_changes(self) -> None:
        """Take in nodes, pods and lines of the load file that came since the last step."""
        if self._nodes_changed:
            self._rebuild()
        told_of = self._timeline.advance(self.elapsed_s)
        stale = set(self.index) if EVERY_NODE in told_of else self._stale_loads | told_of
        for name in stale:
            if name in self.index:
                self._put_load(self.index[name], self.load_of(name))
        self._stale_loads.clear()

    def load_of(self, name: str) -> NodeLoad:
        """What works on a node: its pods, and over them what the load file says."""
        node = self.nodes[self.index[name]]
        pods = self.pods_on(name)
        steady = load_of(pods, node.cores, node.machine.gpus, self.settings.seed) if pods else IDLE
        return self._timeline.told(name).over(steady, node.machine.gpus)

    # Commands and faults

    def command(self, name: str, command: Command) -> Reply:
        """Set or take away a limit; KeyError for a node that is not simulated."""
        place = self.index[name]
        fault = self.faults.get(name, "blocked", self.clock())
        if fault is not None and fault.concerns(command.action):
            reply = self._refusal(fault, place)
        elif command.action == GPU and not self.nodes[place].machine.gpus:
            reply = Reply("blocked", "the node has no GPU", limits(self, place))
        else:
            reply = Reply("applied", self._apply(place, command), limits(self, place))
        self.note(name, "control", f"{command.action} {_shown(command.value)}: {reply.result}, {reply.message}")
        return reply

    def put_fault(self, name: str, fault: Fault) -> None:
        """KeyError for a node that is not simulated."""
        place = self.index[name]
        if fault.fault == "reboot":
            self.fleet.cpus.set_cap_w(place, None)
            self.fleet.cpus.set_throttle_pct(place, 0.0)
            self.fleet.gpus.set_cap_w(self.fleet.boards_of(place), None)
        self.faults.put(name, fault, self.clock())
        self.note(name, "fault", f"{fault.fault} {fault.how}".strip())

    def note(self, node: str, kind: str, message: str) -> None:
        self.events.append({"ts": self.clock(), "node": node, "kind": kind, "message": message})

    def _refusal(self, fault: Fault, place: int) -> Reply:
        state = limits(self, place)
        if fault.how == "silent":
            return Reply("applied", "done", state)
        return Reply("error" if fault.how == "error" else "blocked", "fault on demand: control is refused", state)

    def _apply(self, place: int, command: Command) -> str:
        """Sets the limit, moved into the hardware's range; says so where it was moved."""
        cpus, gpus = self.fleet.cpus, self.fleet.gpus
        if command.action == DVFS:
            cpus.set_throttle_pct(place, command.value or 0.0)
            return _moved(command.value, cpus.throttle_target_pct[place], "%")
        if command.action == RAPL:
            cpus.set_cap_w(place, command.value)
            return _moved(command.value, cpus.cap_target_w[place], "W")
        boards = self.fleet.boards_of(place)
        gpus.set_cap_w(boards, command.value)
        return _moved(command.value, gpus.cap_target_w[boards][0], "W")

    # Arrays

    def _rebuild(self) -> None:
        """New arrays for the nodes that are there now; those that stay go on where they were."""
        before, index_before, nodes_before = self.fleet, self.index, self.nodes
        self.nodes = tuple(self._wanted[name] for name in sorted(self._wanted))
        self.index = {node.name: place for place, node in enumerate(self.nodes)}
        self.fleet = Fleet([node.machine for node in self.nodes])
        same = [
            (here, there)
            for here, node in enumerate(self.nodes)
            if (there := index_before.get(node.name)) is not None and nodes_before[there].machine == node.machine
        ]
        self.fleet.take_over(before, same)
        self.facility = Facility(self.nodes, self.facility)
        self._steady, self.load = self.fleet.idle_load(), self.fleet.idle_load()
        self._node_phase = np.asarray([chances(self.settings.seed, node.name)[0] for node in self.nodes])
        board = np.arange(len(self.fleet.node_of_gpu)) - self.fleet.gpu_start[self.fleet.node_of_gpu]
        self._board_phase = self._node_phase[self.fleet.node_of_gpu] + 0.1 * board
        self._stale_loads = set(self.index)
        self._nodes_changed = False
        self._note_all(self.index.keys() - index_before.keys(), "appeared")
        self._note_all(index_before.keys() - self.index.keys(), "left")

    def _note_all(self, names: set[str], what: str) -> None:
        """One event a node; a whole cluster is one event, or it would drive out all others."""
        if len(names) > NODES_NAMED:
            self.note("", "node", f"{len(names)} nodes {what}")
            return
        for name in sorted(names):
            self.note(name, "node", what)

    def _put_load(self, place: int, load: NodeLoad) -> None:
        steady, boards = self._steady, self.fleet.boards_of(place)
        steady.cpu[place] = load.cpu
        steady.memory_intensity[place] = load.memory_intensity
        steady.io_intensity[place] = load.io_intensity
        steady.feed_intensity[place] = load.feed_intensity
        steady.gpu[boards] = 0.0
        steady.gpu[boards.start : boards.start + len(load.gpus)] = load.gpus

    def _waver(self, at_s: float) -> None:
        steady, noise = self._steady, self.settings.noise_pct / 100.0
        self.load = FleetLoad(
            _wavering(steady.cpu, self._node_phase, at_s, noise),
            steady.memory_intensity,
            steady.io_intensity,
            _wavering(steady.gpu, self._board_phase, at_s, noise),
            steady.feed_intensity,
        )


def _wavering(load: Numbers, phase: Numbers, at_s: float, noise: float) -> Numbers:
    if not noise:
        return load
    wave = sum(weight * np.sin(2.0 * np.pi * (at_s / period_s + phase)) for period_s, weight in _WAVES_S)
    return np.clip(load * (1.0 + noise * wave), 0.0, 1.0)


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def _moved(asked: float | None, target: float, unit: str) -> str:
    if asked is None:
        return "restored"
    if abs(asked - target) > 1e-9:
        return f"{target:g} {unit}, the nearest in range"
    return f"{target:g} {unit}"

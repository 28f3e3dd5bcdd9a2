"""How far each running job is: work gets on at the speed that the plant allows, so that caps and heat slow it."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from joulie.demo.jobs import Job
from joulie.plant.curves import Numbers
from joulie.simulator.simulation import Simulation


class Running(Struct):
    """A job on a node."""

    job: Job
    node: str
    started_s: float
    left_s: float  # of its uncapped duration


class Finished(Struct, frozen=True):
    """A job that is done, with its times of the simulation."""

    job: Job
    node: str
    submitted_s: float
    started_s: float
    ended_s: float

    @property
    def slowdown(self) -> float:
        """Time from arrival to end over the time it would take uncapped and at once."""
        return (self.ended_s - self.submitted_s) / self.job.duration_s


class Progress:
    """Jobs that run, by key."""

    def __init__(self, simulation: Simulation) -> None:
        self.running: dict[str, Running] = {}
        self._simulation = simulation

    def start(self, job: Job, node: str, now_s: float) -> None:
        self.running[job.key] = Running(job, node, now_s, job.duration_s)

    def advance(self, dt_s: float) -> list[Running]:
        """Let time pass at the speed of the plant's last step; what is done leaves, and is returned."""
        simulation, done = self._simulation, []
        cpu_speed = simulation.fleet.cpus.speed.tolist()
        gpu_speed = _busy_boards_speed(simulation).tolist()
        for key in sorted(self.running):
            work = self.running[key]
            place = simulation.index.get(work.node)
            if place is not None:
                work.left_s -= dt_s * (gpu_speed[place] if work.job.gpus else cpu_speed[place])
            if work.left_s <= 0:
                done.append(self.running.pop(key))
        return done


def _busy_boards_speed(simulation: Simulation) -> Numbers:
    """Of each node, over uncapped: the mean of the boards that work, 1 where none does."""
    fleet, nodes = simulation.fleet, len(simulation.fleet)
    busy = (simulation.load.gpu > 0).astype(np.float64)
    boards = np.bincount(fleet.node_of_gpu, weights=busy, minlength=nodes)
    total = np.bincount(fleet.node_of_gpu, weights=busy * fleet.gpus.speed, minlength=nodes)
    return np.where(boards > 0, total / np.maximum(boards, 1.0), 1.0)

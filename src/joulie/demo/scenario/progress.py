"""How far each running job is: work progresses at the speed that the plant allows, so caps and heat slow it."""

from __future__ import annotations

import math
from collections.abc import Container

import numpy as np
from msgspec import Struct

from joulie.demo.scenario.jobs import DemoJob
from joulie.plant.curves import Numbers
from joulie.simulator.simulation import Simulation


class RunningJob(Struct):
    """A job on a node."""

    job: DemoJob
    node: str
    started_s: float
    left_s: float  # of its uncapped duration


class FinishedJob(Struct, frozen=True):
    """A job that is done, with its times of the simulation."""

    job: DemoJob
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
        self.running: dict[str, RunningJob] = {}
        self._simulation = simulation

    def start(self, job: DemoJob, node: str, now_s: float) -> None:
        self.running[job.key] = RunningJob(job, node, now_s, job.duration_s)

    def advance(self, dt_s: float) -> list[RunningJob]:
        """Let time pass at the speed of the plant's last step; what is done leaves, and is returned."""
        done = []
        for key, speed in self._speeds().items():
            work = self.running[key]
            work.left_s -= dt_s * speed
            if work.left_s <= 0:
                done.append(self.running.pop(key))
        return done

    def mean_speed(self, nodes: Container[str]) -> float | None:
        """Of the jobs on these nodes, over uncapped; None: there are none."""
        speeds = [speed for key, speed in self._speeds().items() if self.running[key].node in nodes]
        return math.fsum(speeds) / len(speeds) if speeds else None

    def _speeds(self) -> dict[str, float]:
        """Of each running job in the plant's last step, by key in order; 0 where its node is gone."""
        simulation = self._simulation
        cpu_speed = simulation.fleet.cpus.speed.tolist()
        gpu_speed = _busy_boards_speed(simulation).tolist()
        speeds = {}
        for key in sorted(self.running):
            work = self.running[key]
            place = simulation.index.get(work.node)
            by_node = gpu_speed if work.job.gpus else cpu_speed
            speeds[key] = 0.0 if place is None else by_node[place]
        return speeds


def _busy_boards_speed(simulation: Simulation) -> Numbers:
    """Of each node, over uncapped: the mean of the boards that work, 1 where none does."""
    fleet, nodes = simulation.fleet, len(simulation.fleet)
    busy = (simulation.load.gpu > 0).astype(np.float64)
    boards = np.bincount(fleet.node_of_gpu, weights=busy, minlength=nodes)
    total = np.bincount(fleet.node_of_gpu, weights=busy * fleet.gpus.speed, minlength=nodes)
    return np.where(boards > 0, total / np.maximum(boards, 1.0), 1.0)

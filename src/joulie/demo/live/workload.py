"""The users and kubelets of the demo: pods arrive as the day has it, run at the plant's speed, and end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from joulie.cluster.port import PODS, Cluster, ClusterError, NotFoundError
from joulie.demo.live.clock import DemoClock
from joulie.demo.replay.results import percentile
from joulie.demo.scenario.day import DemoScene
from joulie.demo.scenario.jobs import NAMESPACE, DemoJob, jobs_of_scene, pod_manifest
from joulie.demo.scenario.progress import FinishedJob, Progress
from joulie.logs import Log
from joulie.simulator.simulation import Simulation

BEAT_S = 0.1  # real
KEPT_S = 60.0  # a finished pod is deleted after this


class Workload:
    """Submits the jobs of one scene after another; a finished scene starts over with another day's jobs."""

    def __init__(self, cluster: Cluster, simulation: Simulation, clock: DemoClock, seed: int, scene: DemoScene) -> None:
        self.finished: list[FinishedJob] = []
        self.sent = 0
        self.progress = Progress(simulation)
        self._cluster, self._simulation, self._clock = cluster, simulation, clock
        self._seed, self._scene = seed, scene
        self._jobs: dict[str, DemoJob] = {}
        self._submitted_s: dict[str, float] = {}
        self._leaving: list[tuple[float, DemoJob]] = []
        self._log = Log("demo")

    def job(self, key: str) -> DemoJob | None:
        return self._jobs.get(key)

    def started(self, job: DemoJob, node: str) -> None:
        self.progress.start(job, node, self._clock.elapsed_s)

    @property
    def core_hours(self) -> float:
        return sum(done.job.cores * done.job.duration_s for done in self.finished) / 3600.0

    @property
    def gpu_hours(self) -> float:
        return sum(done.job.gpus * done.job.duration_s for done in self.finished) / 3600.0

    def slowdown(self, share: float) -> float:
        return percentile([done.slowdown for done in self.finished], share)

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._arrivals())
            tasks.create_task(self._work())

    async def _arrivals(self) -> None:
        passed = 0
        while True:
            begins_s = passed * self._scene.length_s
            for job in jobs_of_scene(self._seed, self._scene, passed):
                due_s = begins_s + job.submit_s - self._scene.begins_s
                await asyncio.sleep(max(0.0, self._clock.real_s(due_s - self._clock.elapsed_s)))
                await self._send(job)
            passed += 1
            await asyncio.sleep(max(0.0, self._clock.real_s(passed * self._scene.length_s - self._clock.elapsed_s)))

    async def _send(self, job: DemoJob) -> None:
        self._jobs[job.key] = job
        self._submitted_s[job.key] = self._clock.elapsed_s
        self.sent += 1
        try:
            await self._cluster.create(PODS, pod_manifest(job), namespace=NAMESPACE)
        except ClusterError as error:
            self._log.warning("a pod was not created", pod=job.key, error=str(error))

    async def _work(self) -> None:
        """Advance the work whenever the plant has stepped."""
        seen_s = self._simulation.elapsed_s
        while True:
            await asyncio.sleep(BEAT_S)
            passed_s, seen_s = self._simulation.elapsed_s - seen_s, self._simulation.elapsed_s
            for work in self.progress.advance(passed_s):
                now_s = self._clock.elapsed_s
                key = work.job.key
                self.finished.append(
                    FinishedJob(work.job, work.node, self._submitted_s.pop(key), work.started_s, now_s)
                )
                self._leaving.append((now_s + KEPT_S, work.job))
                await self._try(
                    self._cluster.patch(
                        PODS, work.job.name, {"status": {"phase": "Succeeded"}}, namespace=NAMESPACE, status=True
                    )
                )
            while self._leaving and self._leaving[0][0] <= self._clock.elapsed_s:
                _, job = self._leaving.pop(0)
                self._jobs.pop(job.key, None)
                await self._try(self._cluster.delete(PODS, job.name, namespace=NAMESPACE))

    async def _try(self, call: Awaitable[object]) -> None:
        try:
            await call
        except NotFoundError:
            return
        except ClusterError as error:
            self._log.warning("a pod's end was not written", error=str(error))

"""A scene of the demo replayed at full speed: no network, no clock, the same seed gives the same bits.

The same jobs, nodes, weather and plant, once with Joulie and once without (no caps, LeastAllocated placement), each
until all work is done. Stepped by seconds of simulated time alone.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import msgspec

from joulie.cluster.decoding import decoders
from joulie.demo.replay.control import ReplayControl, bound
from joulie.demo.replay.feed_schedule import FeedSchedule
from joulie.demo.replay.results import ReplayComparison, Replayed, ReplayMeter, compare, facility_kwh, replayed
from joulie.demo.scenario.day import DemoScene, outside_c
from joulie.demo.scenario.facility import demo_nodes, demo_simulation
from joulie.demo.scenario.feed_meter import FeedMeter
from joulie.demo.scenario.jobs import DemoJob, jobs_of_scene, pod_manifest
from joulie.demo.scenario.machines import places
from joulie.demo.scenario.placement import FreeRoom
from joulie.demo.scenario.progress import FinishedJob, Progress
from joulie.errors import JoulieError
from joulie.model.snapshot import Pod
from joulie.settings import ExtenderSettings, OperatorSettings, SimulatorSettings

STEP_S = 5.0
MAX_REPLAY_S = 8 * 3600.0  # a replay that has not ended by then never will
START_S = 1_700_000_000.0  # a whole minute; no result depends on it


class ReplayError(JoulieError):
    """A replay whose result would not be valid."""


class Replay:
    """One scene, with Joulie or without."""

    def __init__(
        self,
        seed: int,
        scene: DemoScene,
        *,
        joulie: bool,
        operator: OperatorSettings | None = None,
        extender: ExtenderSettings | None = None,
        feeds: FeedSchedule | None = None,
    ) -> None:
        self._operator = operator or OperatorSettings()
        self._seed, self._scene = seed, scene
        self._now_s = START_S
        self._simulation = demo_simulation(SimulatorSettings(seed=seed), lambda: self._now_s)
        self._joulie = (
            ReplayControl(demo_nodes(), self._simulation, self._operator, extender or ExtenderSettings())
            if joulie
            else None
        )
        self._room = FreeRoom(places())
        self._progress = Progress(self._simulation)
        self._feeds = feeds
        self.meter = FeedMeter(self._simulation, self._progress) if feeds is not None else None
        self._pods: dict[str, Pod] = {}
        self._waiting: list[DemoJob] = []
        self._finished: list[FinishedJob] = []
        self._jobs = jobs_of_scene(seed, scene)
        self._coming = deque(self._jobs)
        self._steps = 0
        self._peak_w = self._warmest_c = self._until_done_kwh = 0.0

    def run(self, meter_until_s: float = 0.0) -> Replayed:
        """Run to the end of all work, then on to the time until which idle nodes are metered; may be called again."""
        while self._has_work or self._elapsed_s < meter_until_s:
            self._turn()
        if len(self._finished) != len(self._jobs):
            raise ReplayError(f"{len(self._jobs)} jobs came, but {len(self._finished)} were done")
        return replayed(
            self._scene,
            self._seed,
            self._simulation,
            self._finished,
            ReplayMeter(self._elapsed_s, self._until_done_kwh, self._peak_w / 1000.0, self._warmest_c),
            policy=self._operator.decision.plan.policy_type if self._joulie else None,
            transitions=self._joulie.transitions if self._joulie else 0,
        )

    @property
    def _has_work(self) -> bool:
        return bool(self._coming or self._waiting or self._progress.running)

    @property
    def _elapsed_s(self) -> float:
        return self._steps * STEP_S

    def _turn(self) -> None:
        """One step: decide, let jobs come, place them, let time pass."""
        elapsed_s, had_work = self._elapsed_s, self._has_work
        if elapsed_s > MAX_REPLAY_S:
            raise ReplayError(f"{len(self._waiting)} jobs still wait after {MAX_REPLAY_S / 3600:g} h: they fit nowhere")
        interval_s = self._operator.decision.plan.reconcile_interval_s
        if self._joulie is not None and self._steps % max(1, round(interval_s / STEP_S)) == 0:
            self._joulie.reconcile(self._pods.values(), self._now_s)
        self._limit_feeds(elapsed_s)
        while self._coming and self._coming[0].submit_s - self._scene.begins_s <= elapsed_s:
            self._arrive(self._coming.popleft())
        self._place_all(elapsed_s)
        self._step(elapsed_s)
        self._steps += 1
        if had_work and not self._has_work:
            self._until_done_kwh = facility_kwh(self._simulation)

    def _limit_feeds(self, elapsed_s: float) -> None:
        """Every step, as often as the operator's budget loop turns."""
        if self._feeds is None or self.meter is None:
            return
        if self._feeds.is_edge(elapsed_s):
            (self.meter.cut if self._feeds.is_cut(elapsed_s) else self.meter.give_back)(elapsed_s)
        if self._joulie is not None:
            self._joulie.hold(self._feeds.budgets(elapsed_s), self._pods.values(), self._now_s)

    def _arrive(self, job: DemoJob) -> None:
        self._waiting.append(job)
        self._pods[job.key] = decoders.decode_pod(msgspec.json.encode(pod_manifest(job)))

    def _place_all(self, elapsed_s: float) -> None:
        """Every waiting job in order of arrival; one that fits nowhere does not block the others."""
        still_waiting = []
        for job in self._waiting:
            node = self._choose(job)
            if node is None:
                still_waiting.append(job)
                continue
            before = self._pods[job.key]
            after = self._pods[job.key] = bound(before, node, self._now_s)
            self._room.take(node, job)
            self._progress.start(job, node, elapsed_s)
            self._simulation.put_pod(job.key, after)
            if self._joulie is not None:
                self._joulie.put_pod(job.key, before, after)
        self._waiting = still_waiting

    def _choose(self, job: DemoJob) -> str | None:
        fitting = self._room.fitting(job)
        if self._joulie is None or not fitting:
            return self._room.best(job, fitting)
        left, scores = self._joulie.choose(job, fitting, self._now_s)
        return self._room.best(job, left, scores)

    def _step(self, elapsed_s: float) -> None:
        simulation = self._simulation
        weather_c = outside_c(self._scene.begins_s + elapsed_s)
        simulation.settings = replace(simulation.settings, outside_c=weather_c)
        self._now_s = START_S + elapsed_s + STEP_S
        simulation.step(STEP_S)
        self._peak_w = max(self._peak_w, simulation.facility.it_w)
        if self.meter is not None:
            self.meter.step(elapsed_s + STEP_S, STEP_S)
        self._warmest_c = max(self._warmest_c, float(simulation.facility.inlet_c.max()))
        for work in self._progress.advance(STEP_S):
            job = work.job
            submitted_s = job.submit_s - self._scene.begins_s
            self._finished.append(FinishedJob(job, work.node, submitted_s, work.started_s, elapsed_s + STEP_S))
            self._room.give_back(work.node, job)
            simulation.drop_pod(job.key)
            pod = self._pods.pop(job.key)
            if self._joulie is not None:
                self._joulie.put_pod(job.key, pod, None)


def compared(seed: int, scene: DemoScene, operator: OperatorSettings, extender: ExtenderSettings) -> ReplayComparison:
    """The scene with and without Joulie, each metered until both are done: the earlier one idles, as nodes do."""
    ways = [Replay(seed, scene, joulie=joulie, operator=operator, extender=extender) for joulie in (True, False)]
    until_s = max(way.run().makespan_s for way in ways)
    with_joulie, without_joulie = (way.run(until_s) for way in ways)
    return compare(with_joulie, without_joulie)

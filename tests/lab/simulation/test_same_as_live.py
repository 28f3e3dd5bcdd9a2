"""What the lab decides is what operator and extender decide: one run, done again on a live cluster, event by event.

A lab run is recorded. Then pods come, start and end at the same moments on a cluster in memory, whose sensors say what
the lab's plant said, and the real operator and extender are asked. They must give the same states, caps and twins on
every tick and the same node to every pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest

from joulie.control.policies.interface import Choice, Policy, PolicyView
from joulie.control.twins import TwinTable
from joulie.lab.kernels.world import WATT, World
from joulie.lab.model.jobs import JobTable
from joulie.lab.model.outcome import Outcome
from joulie.lab.model.setup import (
    ClusterSetup,
    NodeGroup,
    PolicySetup,
    QueueSetup,
    RunSetup,
    TelemetrySetup,
    WeatherSetup,
)
from joulie.lab.simulation.cluster import LabCluster, lab_cluster
from joulie.lab.simulation.engine import Observer, simulate
from joulie.lab.simulation.steering import START_S, Steering
from joulie.model.rfc3339 import readable_time_s
from tests.lab.queue_truth import Placed, placed
from tests.lab.random_jobs import mixed
from tests.lab.simulation.live_cluster import LiveCluster, Sensors, best, prompt_news

__all__ = ["prompt_news"]  # a fixture

MODELS = ("H100 SXM", "L40S")
CLUSTER = ClusterSetup(
    nodes=[NodeGroup(4), NodeGroup(2, gpu="H100 SXM", gpus=8), NodeGroup(3, gpu="L40S", gpus=4)],
    nodes_per_rack=3,
    racks_per_zone=2,
    cpu_work_on_gpu_nodes=True,  # so that performance pods find a node under every policy
)
FACILITY = {"ENABLE_FACILITY_METRICS": "true"}
HOUR_S = 3600.0


class Cautious:
    """A user's policy: eco where it is calm and has been told so lately, by everything that a policy may see."""

    name = "cautious"

    def plan(self, view: PolicyView) -> dict[str, Choice]:
        result = {}
        for place, node in enumerate(view.nodes):
            status = node.twin.status if node.twin else None
            power = status.power_measurement if status else None
            told_s = readable_time_s(status.last_updated) if status else None
            calm = power is not None and (power.measured_node_power_w or 0.0) < 0.5 * (power.node_capped_power_w or 0.0)
            lately = told_s is not None and 0 < view.now_s - told_s <= view.settings.reconcile_interval_s
            busy = place < view.performance_pods or (node.state == "draining" and node.performance_pods > 2)
            result[node.name] = Choice("eco" if calm and lately and not busy else "performance", "calm" * calm)
        return result


class Tick(NamedTuple):
    """What the lab knew and decided."""

    at_s: float
    twins: TwinTable
    sensors: Sensors


class Event(NamedTuple):
    """In this order where several happen at once."""

    at_s: float
    order: int
    kind: Literal["tick", "end", "arrival", "start"]
    number: int  # of the tick or the job


class Recording:
    """A lab run with all that its operator saw and said."""

    def __init__(self, setup: RunSetup, jobs: JobTable, seed: int, policy: Policy | None) -> None:
        self.setup, self.jobs = setup, jobs
        self.cluster: LabCluster = lab_cluster(setup.cluster)
        self.ticks: list[Tick] = []
        self.outcome: Outcome = simulate(setup, jobs, seed, policy=policy, observer=Observer(tick=self._see))
        assert np.isfinite(self.outcome.end_s).all()
        self.placed: list[Placed] = placed(setup.cluster, self.outcome)

    def _see(self, at_s: float, steering: Steering, world: World) -> None:
        twins = steering.twins.table(steering.states, steering.scores, steering.sensors)
        measured = [
            (name, power_w)
            for name, source, power_w in zip(twins.nodes, twins.sources, twins.columns["measured_w"], strict=True)
            if source != "static"
        ]
        zones = zip(self.cluster.zones, world.zones["inlet_c"].tolist(), strict=True)
        self.ticks.append(
            Tick(
                at_s,
                twins,
                Sensors(
                    power_w=dict(measured),
                    measured_at_s=START_S + at_s - self.setup.telemetry.lag_s,
                    zone_ambient_c=dict(zones),
                    it_w=float(world.zones["wall"].sum()) / WATT,
                    cooling_w=float(world.zones["cooling_w"].sum()),
                ),
            )
        )

    def events(self) -> Iterator[Event]:
        found = [Event(tick.at_s, 0, "tick", number) for number, tick in enumerate(self.ticks)]
        for number, job in enumerate(self.placed):
            found.append(Event(job.end_s, 1, "end", number))
            found.append(Event(job.submit_s, 2, "arrival", number))
            found.append(Event(job.start_s, 3, "start", number))
        return iter(sorted(found))


class Replay:
    """The recording, done to a live cluster, with what that said instead."""

    def __init__(self, recording: Recording, live: LiveCluster) -> None:
        self._recording, self._live = recording, live
        self._free = [list(room) for room in recording.placed[0].rooms]
        self.draining = self.waited = self.starts = self.passed = 0

    async def play(self) -> None:
        for event in self._recording.events():
            self._live.now_s = START_S + event.at_s
            if event.kind == "tick":
                await self._tick(self._recording.ticks[event.number])
            elif event.kind == "arrival":
                for pod, _ in self._pods(event.number):
                    await self._submit(pod, event.number)
            elif event.kind == "start":
                await self._start(event.number)
            else:
                for pod, node in self._pods(event.number):
                    self._hold(event.number, node, -1)
                    await self._live.finish(_name(pod))

    async def _tick(self, tick: Tick) -> None:
        self._live.sensors = tick.sensors
        assigned, plan = await self._live.reconcile()
        lab, live = tick.twins, plan.twins
        assert list(live.nodes) == list(lab.nodes)
        assert list(live.states) == list(lab.states)
        assert list(live.sources) == list(lab.sources)
        assert live.columns.keys() == lab.columns.keys()
        for name, column in live.columns.items():
            np.testing.assert_allclose(lab.columns[name], column, rtol=1e-9, atol=1e-9, err_msg=f"{name} {tick.at_s}")
        assert (lab.estimated_pue, lab.now_s) == (live.estimated_pue, live.now_s)
        for row, node in enumerate(lab.nodes):  # as agents and the extender read it
            gpu_pct = lab.columns["gpu_pct"][row] if lab.has_gpu[row] else None
            assert assigned[node] == (lab.states[row], lab.columns["cpu_pct"][row], gpu_pct)
        self.draining += lab.states.count("draining")

    async def _submit(self, pod: int, job: int) -> None:
        jobs = self._recording.jobs
        await self._live.submit(
            _name(pod), float(jobs.cores[pod]), int(jobs.gpus[pod]), bool(jobs.performance[pod]), "nvidia.com/gpu"
        )

    async def _start(self, job: int) -> None:
        """Pod by pod, among the nodes with room, as kube-scheduler has them; of equals the first by name."""
        names, wanted = self._recording.cluster.names, self._recording.placed[job]
        for pod, node in self._pods(job):
            room = [
                names[place]
                for place in wanted.may_use
                if self._free[place][0] >= wanted.mcores and self._free[place][1] >= wanted.gpus
            ]
            scores = await self._live.scores(_name(pod), room)
            if self._recording.outcome.backfilled[job]:  # some nodes are kept for the first in the queue
                assert names[node] in scores, (job, pod, scores)
                self.passed += 1
            else:
                assert best(scores)[0] == names[node], (job, pod, scores)
            self._hold(job, node, 1)
            await self._live.bind(_name(pod), names[node])
            self.starts += 1
        self.waited += wanted.start_s > wanted.submit_s

    def _pods(self, job: int) -> list[tuple[int, int]]:
        first = int(self._recording.jobs.first_pod[job])
        return [(first + place, node) for place, node in enumerate(self._recording.placed[job].nodes)]

    def _hold(self, job: int, node: int, times: int) -> None:
        self._free[node][0] -= times * self._recording.placed[job].mcores
        self._free[node][1] -= times * self._recording.placed[job].gpus


def _name(pod: int) -> str:
    return f"pod-{pod:05d}"


def setup(policy: str, telemetry: TelemetrySetup, backfill: bool, **settings: str | float | bool) -> RunSetup:
    return RunSetup(
        cluster=CLUSTER,
        scheduler="joulie",
        policy=PolicySetup(policy),
        settings=settings,
        weather=WeatherSetup(mean_c=20.0),
        telemetry=telemetry,
        queue=QueueSetup(backfill=backfill),
    )


def replayed(wanted: RunSetup, seed: int, jobs: int, policy: Policy | None = None) -> Replay:
    recording = Recording(wanted, mixed(seed, jobs, 30.0, MODELS), seed, policy)
    env = {name: str(value) for name, value in wanted.settings.items()}
    if policy is None:
        env["POLICY_TYPE"] = wanted.policy.name

    async def again() -> Replay:
        live = LiveCluster(recording.cluster, env, policy, START_S)
        async with asyncio.timeout(300), live.running(wanted.telemetry.source == "measured"):
            replay = Replay(recording, live)
            await replay.play()
            return replay

    return asyncio.run(again())


MEASURED, STATIC = TelemetrySetup("measured"), TelemetrySetup("static")
OLD = TelemetrySetup("measured", lag_s=90.0, noise_pct=5.0)
TOO_OLD = TelemetrySetup("measured", lag_s=200.0)


@pytest.mark.usefixtures("prompt_news")
def test_a_live_cluster_decides_as_the_lab_did() -> None:
    replay = replayed(setup("queue_aware_v1", MEASURED, False, **FACILITY), seed=1, jobs=40)
    assert replay.starts > 40
    assert replay.waited > 0


@pytest.mark.slow
@pytest.mark.usefixtures("prompt_news")
@pytest.mark.parametrize("telemetry", [MEASURED, STATIC, OLD, TOO_OLD], ids=["measured", "static", "old", "too old"])
@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        ("static_partition", {"STATIC_HP_FRAC": "0.4"}),
        (
            "queue_aware_v1",
            {"QUEUE_HP_BASE_FRAC": "0.1", "QUEUE_PERF_PER_HP_NODE": "2", "CPU_ECO_CAP_PCT_OF_MAX": "45"},
        ),
        ("rule_swap_v1", {"RECONCILE_INTERVAL": "2m"}),
        ("cautious", {"EXTENDER_SCORE_MAX": "10"}),
    ],
)
def test_a_live_cluster_decides_as_the_lab_did_whatever_policy_and_telemetry(
    policy: str, settings: dict[str, Any], telemetry: TelemetrySetup
) -> None:
    own = Cautious() if policy == Cautious.name else None
    backfill = policy == "rule_swap_v1"
    wanted = setup("none" if own else policy, telemetry, backfill, **FACILITY, **settings)
    replay = replayed(wanted, seed=len(policy) + int(telemetry.lag_s), jobs=80, policy=own)
    assert replay.starts > 80
    assert replay.waited > 5
    assert (replay.passed > 5) == backfill
    assert replay.draining > 0 or policy == "static_partition"

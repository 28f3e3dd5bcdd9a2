"""The lab decides on arrays. On every tick they say what `decide` and the extender's board make of objects."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulie import plugins
from joulie.catalogue.lookup import Catalogue
from joulie.control.cycle import decide
from joulie.control.placement.board import ScoreBoard
from joulie.control.scoring import CLASS_CODES
from joulie.lab.kernels.world import RUNNING, WAITING, World
from joulie.lab.model.jobs import JobTable
from joulie.lab.model.setup import ClusterSetup, NodeGroup, PolicySetup, QueueSetup, RunSetup, TelemetrySetup
from joulie.lab.simulation.cluster import LabCluster, lab_cluster
from joulie.lab.simulation.engine import Observer, simulate
from joulie.lab.simulation.steering import START_S, Steering
from joulie.model.api import NodeTwin
from joulie.model.kubernetes import ObjectMeta
from joulie.model.snapshot import Pod, PowerReading, Snapshot, Telemetry, WorkloadClass
from tests.lab.random_jobs import mixed

GROUPS = st.lists(
    st.sampled_from(
        [
            NodeGroup(2),
            NodeGroup(1, cpu="EPYC 9654", sockets=1),
            NodeGroup(3, gpu="L40S", gpus=4),
            NodeGroup(2, gpu="H100 SXM", gpus=8),
        ]
    ),
    max_size=3,
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "STATIC_HP_FRAC": st.sampled_from(["0", "0.3", "1"]),
        "QUEUE_PERF_PER_HP_NODE": st.sampled_from(["1", "4"]),
        "CPU_ECO_CAP_PCT_OF_MAX": st.sampled_from(["35", "80"]),
        "GPU_ECO_CAP_PCT_OF_MAX": st.sampled_from(["40", "90"]),
        "ENABLE_FACILITY_METRICS": st.just("true"),
        "EXTENDER_COUNT_RECENT_PODS": st.just("false"),
    },
)
PREPARED = (
    "points_per_w",
    "rest_standard",
    "rest_performance",
    "cpu_full_w",
    "gpu_full_standard_w",
    "gpu_full_performance_w",
    "inverse_cores",
    "inverse_gpus",
)


@dataclass
class Judge:
    """Looks at every tick, and keeps the twins as a cluster would."""

    setup: RunSetup
    jobs: JobTable
    cluster: LabCluster
    twins: dict[str, NodeTwin] = field(default_factory=dict)
    ticks: int = 0

    def see(self, at_s: float, steering: Steering, world: World) -> None:
        decision, scoring = steering.settings.operator.decision, steering.settings.extender
        now_s = START_S + at_s
        lab = steering.twins.table(steering.states, steering.scores, steering.sensors)
        plan = decide(
            Snapshot(
                self.cluster.nodes,
                self._pods(world),
                self.cluster.hardware,
                self.twins,
                (),
                Telemetry(
                    power={
                        name: PowerReading("http", watts, now_s)
                        for name, source, watts in zip(lab.nodes, lab.sources, lab.columns["measured_w"], strict=True)
                        if source == "http"
                    },
                    trend_w_per_min=dict(zip(lab.nodes, lab.columns["trend"], strict=True)),
                    zone_ambient_c=self._air_c(world),
                    estimated_pue=lab.estimated_pue,
                ),
            ),
            decision,
            now_s,
            policy=steering.policy or plugins.policy("static_partition"),
            cooling=plugins.cooling(decision.twin.cooling_model, decision.twin),
        )
        assert list(plan.twins.states) == list(lab.states)
        for name, column in plan.twins.columns.items():
            np.testing.assert_allclose(lab.columns[name], column, rtol=1e-12, atol=1e-12, err_msg=f"{name} at {at_s}")
        board = ScoreBoard(scoring.score, scoring.marginal, scoring.hardware, Catalogue())
        for row, name in enumerate(plan.twins.nodes):
            status = plan.twins.status(row)
            self.twins[name] = NodeTwin(ObjectMeta(name=name), status=status)
            board.put_hardware(name, self.cluster.hardware[name])
            board.put_node(name, self.cluster.nodes[name])
            board.put_twin(name, status)
        prepared = board.prepared(now_s)
        rows = [board.index[name] for name in lab.nodes]
        for name in PREPARED:
            told = getattr(prepared, name)[rows]
            np.testing.assert_allclose(world.nodes[name], told, rtol=1e-12, atol=1e-12, err_msg=f"{name} at {at_s}")
        before = (world.nodes["capped_w"] - world.nodes["measured_w"]) / world.nodes["budget_w"] * 100.0
        np.testing.assert_allclose(before, prepared.headroom[rows], rtol=1e-12, atol=1e-12)
        assert world.nodes["class_code"].tolist() == [CLASS_CODES[state] for state in plan.twins.states]
        self.ticks += 1

    def _air_c(self, world: World) -> dict[str, float]:
        if not self.setup.settings.get("ENABLE_FACILITY_METRICS"):
            return {}
        return dict(zip(self.cluster.zones, world.zones["inlet_c"].tolist(), strict=True))

    def _pods(self, world: World) -> list[Pod]:
        """Waiting ones are pending."""
        jobs, pods = self.jobs, []
        records = world.jobs[np.isin(world.jobs["state"], (WAITING, RUNNING))]
        states = dict(zip(records["number"].tolist(), records["state"].tolist(), strict=True))
        for pod, job in enumerate(jobs.job_of_pod.tolist()):
            state = states.get(job)
            if state in (WAITING, RUNNING):
                node = self.cluster.names[world.node_of_pod[pod]] if state == RUNNING else ""
                wants: WorkloadClass = "performance" if jobs.performance[pod] else "standard"
                pods.append(Pod("default", str(pod), node, wants, float(jobs.cores[pod]), float(jobs.gpus[pod])))
        return pods


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    groups=GROUPS,
    policy=st.sampled_from(["static_partition", "queue_aware_v1", "rule_swap_v1"]),
    told=SETTINGS,
    telemetry=st.sampled_from([TelemetrySetup("measured", 0.0, 3.0), TelemetrySetup("static")]),
    backfill=st.booleans(),
)
def test_on_every_tick_the_labs_arrays_say_what_decide_and_the_board_say(
    seed: int,
    groups: list[NodeGroup],
    policy: str,
    told: dict[str, str | float | bool],
    telemetry: TelemetrySetup,
    backfill: bool,
) -> None:
    nodes = [NodeGroup(4), *groups]
    models = tuple(dict.fromkeys(group.gpu for group in groups if group.gpu))
    setup = RunSetup(
        cluster=ClusterSetup(nodes=nodes, nodes_per_rack=2, racks_per_zone=2),
        policy=PolicySetup(policy),
        settings=told,
        telemetry=telemetry,
        queue=QueueSetup(backfill=backfill),
    )
    jobs = mixed(seed, 40, 120.0, models)
    judge = Judge(setup, jobs, lab_cluster(setup.cluster))
    outcome = simulate(setup, jobs, seed, observer=Observer(tick=judge.see))
    assert judge.ticks == outcome.counted.ticks > 10

"""Joulie inside a replay: the same `decide` and the same score as in the live processes, called without a network.

What differs from live: twins are handed over as they are (no deadband, no API server in between), and a cap acts in
the step after the decision, for an agent needs no longer than that.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec.structs import replace

from joulie import plugins
from joulie.catalogue.lookup import Catalogue
from joulie.control.board import ScoreBoard
from joulie.control.cycle import decide
from joulie.control.placement import rejection
from joulie.control.plan import Assignment, Plan
from joulie.control.scoring import score, wire_scores
from joulie.demo.jobs import Job
from joulie.model.api import NodeHardware, NodeTwin
from joulie.model.kubernetes import ObjectMeta
from joulie.model.snapshot import Node, Pod, PowerReading, Snapshot, Telemetry
from joulie.plant.reported import hardware_status
from joulie.settings import ExtenderSettings, OperatorSettings
from joulie.simulator.control import GPU, RAPL, Command
from joulie.simulator.facility import AMBIENT, ZONE_AMBIENT
from joulie.simulator.simulation import Simulation
from joulie.sources.facility import power_usage_effectiveness
from joulie.sources.trend import TrendWindows


class Steering:
    """Operator, agent and extender of a replay."""

    def __init__(
        self, nodes: Iterable[Node], simulation: Simulation, settings: OperatorSettings, scoring: ExtenderSettings
    ) -> None:
        self.transitions = 0
        self._simulation = simulation
        self._settings = settings.decision
        self._nodes = {node.name: node for node in nodes}
        self._catalogue = Catalogue()
        self._policy = plugins.policy(self._settings.plan.policy_type)
        self._cooling = plugins.cooling(self._settings.twin.cooling_model, self._settings.twin)
        interval_s = self._settings.plan.reconcile_interval_s
        self._trend = TrendWindows(max(self._settings.twin.power_max_age_s, 2 * interval_s), interval_s=interval_s)
        self._twins: dict[str, NodeTwin] = {}
        self._hardware = {
            name: NodeHardware(ObjectMeta(name=name), status=hardware_status(simulation.nodes[place].machine))
            for name, place in simulation.index.items()
        }
        self._score_max = scoring.score.score_max
        self.board = ScoreBoard(scoring.score, scoring.marginal, scoring.hardware, self._catalogue)
        for name, node in self._nodes.items():
            self.board.put_hardware(name, self._hardware[name])
            self.board.put_node(name, node)

    def reconcile(self, pods: Iterable[Pod], now_s: float) -> None:
        """One decision, its caps on the devices, its twins on the board."""
        plan = decide(
            Snapshot(self._nodes, tuple(pods), self._hardware, self._twins, (), self._telemetry(now_s)),
            self._settings,
            now_s,
            policy=self._policy,
            cooling=self._cooling,
            catalogue=self._catalogue,
        )
        self._record(plan, now_s)
        for row, name in enumerate(plan.twins.nodes):
            status = plan.twins.status(row)
            self._twins[name] = NodeTwin(ObjectMeta(name=name), status=status)
            self.board.put_twin(name, status)
        for assignment in plan.assignments:
            change = assignment.transition
            self.transitions += change is not None and change.result == "applied"
            self._enforce(assignment)

    def choose(self, job: Job, candidates: list[str], now_s: float) -> tuple[list[str], dict[str, int]]:
        """What the extender's filter leaves of the candidates, and their scores."""
        prepared = self.board.prepared(now_s)
        rows = {name: self.board.index[name] for name in candidates}
        left = [name for name in candidates if rejection(job.workload_class, self.board.class_of(rows[name])) is None]
        scores = wire_scores(score(prepared, job.cores, job.gpus, job.workload_class).score, self._score_max)
        return left, {name: int(scores[rows[name]]) for name in left}

    def put_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        self.board.put_pod(key, before, after)

    def _enforce(self, assignment: Assignment) -> None:
        """Percent of the maximum as watts; a cap at the maximum is none, as the agent has it."""
        machine, caps = assignment.machine, assignment.caps
        self._command(machine.node, RAPL, caps.effective_cpu_pct(machine), machine.cpu_max_w)
        if machine.gpu_count:
            self._command(machine.node, GPU, caps.effective_gpu_pct(machine), machine.gpu_max_w_each)

    def _command(self, node: str, action: str, pct: float, max_w: float) -> None:
        self._simulation.command(node, Command(action, max_w * pct / 100.0 if pct < 100.0 else None))

    def _telemetry(self, now_s: float) -> Telemetry:
        """What the simulator's HTTP answers would say at this moment."""
        simulation, fleet = self._simulation, self._simulation.fleet
        measured_w = fleet.cpus.average_w + fleet.by_node(fleet.gpus.average_w)
        facility = simulation.facility
        ambient = {name: value for labels, value in facility.series(ZONE_AMBIENT) for name in labels.values()}
        return Telemetry(
            power={
                name: PowerReading("http", float(measured_w[place]), now_s) for name, place in simulation.index.items()
            },
            trend_w_per_min=self._trend.slopes_w_per_min(now_s),
            ambient_c=facility.series(AMBIENT)[0][1],
            zone_ambient_c=ambient,
            estimated_pue=power_usage_effectiveness(facility.it_w, float(np.sum(facility.cooling.electricity_w))),
        )

    def _record(self, plan: Plan, now_s: float) -> None:
        twins = plan.twins
        self._trend.record(twins.nodes, twins.sources, [now_s] * len(twins), twins.columns["measured_w"])


def bound(pod: Pod, node: str, now_s: float) -> Pod:
    return replace(pod, node=node, scheduled_at_s=now_s)

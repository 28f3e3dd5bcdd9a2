"""Joulie inside a replay: the same `decide` and the same score as in the live processes, called without a network.

Unlike live, twins are handed over as they are (no deadband, no API server in between), and a cap takes effect in the
step after the decision, since an agent needs no longer than that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
from msgspec.structs import replace

from joulie import plugins
from joulie.agent.budget.limiting import UNLIMITED
from joulie.catalogue.lookup import Catalogue
from joulie.control.cycle import decide
from joulie.control.placement.board import ScoreBoard
from joulie.control.placement.score_table import rejection
from joulie.control.plan import Assignment, Plan
from joulie.control.scoring import integer_scores, score
from joulie.demo.replay.budgets import ReplayBudgets
from joulie.demo.scenario.jobs import DemoJob
from joulie.model.api import NodeHardware, NodeTwin, PowerBudget, PowerBudgetStatus
from joulie.model.kubernetes import ObjectMeta
from joulie.model.snapshot import Node, Pod, PowerReading, Snapshot, Telemetry
from joulie.plant.node_hardware import hardware_status
from joulie.settings import ExtenderSettings, OperatorSettings
from joulie.simulator.control import GPU, RAPL, Command
from joulie.simulator.facility import AMBIENT, ZONE_AMBIENT
from joulie.simulator.simulation import Simulation
from joulie.sources.facility import power_usage_effectiveness
from joulie.sources.trend import TrendWindows


class ReplayControl:
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
        self._plan: Plan | None = None
        self._assigned: dict[str, Assignment] = {}
        self._budgets = ReplayBudgets(simulation, self._settings, self._catalogue, self._nodes)
        for name, node in self._nodes.items():
            self.board.put_hardware(name, self._hardware[name])
            self.board.put_node(name, node)

    def reconcile(self, pods: Iterable[Pod], now_s: float) -> None:
        """One decision, its caps on the devices, its twins on the board."""
        plan = self._plan = decide(
            self._snapshot(pods, now_s),
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
            self._assigned[assignment.node] = assignment
            self._enforce(assignment)

    def hold(self, budgets: Collection[PowerBudget], pods: Iterable[Pod], now_s: float) -> None:
        """One turn of the budget loop, after a decision; its orders on the devices, what it says on the board."""
        assert self._plan is not None
        turn = self._budgets.turn(budgets, self._snapshot(pods, now_s), self._plan, now_s)
        for write in turn.plan.writes:
            self._enforce(self._assigned[write.node])
            self.board.put_orders(write.node, self._budgets.twin(write.node))
        for report in turn.reports:
            told = replace(report.budget, status=PowerBudgetStatus(groups=list(report.statuses)))
            self.board.put_budget(report.budget.metadata.name, told)
        self._budgets.confirm({node: each.machine.sockets for node, each in self._assigned.items()})

    def choose(self, job: DemoJob, candidates: list[str], now_s: float) -> tuple[list[str], dict[str, int]]:
        """What the extender's filter leaves of the candidates, and their scores."""
        prepared = self.board.prepared(now_s)
        rows = {name: self.board.index[name] for name in candidates}
        left = [name for name in candidates if rejection(job.workload_class, self.board.class_of(rows[name])) is None]
        scores = integer_scores(score(prepared, job.cores, job.gpus, job.workload_class).score, self._score_max)
        return left, {name: int(scores[rows[name]]) for name in left}

    def put_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        self.board.put_pod(key, before, after)

    def _enforce(self, assignment: Assignment) -> None:
        """Percent of the maximum as watts, or less where a budget says so.

        A cap at the maximum is none, as the agent has it.
        """
        machine, caps = assignment.machine, assignment.caps
        allowed = self._budgets.allowed(machine.node) or UNLIMITED
        cpu_w = allowed.cpu_w_each * machine.sockets
        self._command(machine.node, RAPL, caps.effective_cpu_pct(machine), machine.cpu_max_w, cpu_w)
        if machine.gpu_count:
            gpu_w = allowed.gpu_w_each
            self._command(machine.node, GPU, caps.effective_gpu_pct(machine), machine.gpu_max_w_each, gpu_w)

    def _command(self, node: str, action: str, pct: float, max_w: float, allowed_w: float) -> None:
        watts = min(max_w * pct / 100.0, allowed_w)
        self._simulation.command(node, Command(action, watts if watts < max_w else None))

    def _snapshot(self, pods: Iterable[Pod], now_s: float) -> Snapshot:
        return Snapshot(self._nodes, tuple(pods), self._hardware, self._twins, (), self._telemetry(now_s))

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

"""Short ways to make a small cluster and to ask the decision core about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from joulie.catalogue.lookup import Catalogue
from joulie.control.cycle import decide
from joulie.control.placement.score_table import NodeScore, score_pod, score_table
from joulie.control.plan import Assignment, Plan
from joulie.control.policies.interface import Policy
from joulie.control.policies.queue_aware import QueueAware
from joulie.control.policies.rule_swap import RuleSwap
from joulie.control.policies.static_partition import StaticPartition
from joulie.model import names
from joulie.model.api import NodeHardware, NodeTwin, NodeTwinStatus, PowerBudget, PowerMeasurement
from joulie.model.rfc3339 import format_time
from joulie.model.snapshot import Node, Pin, Pod, Snapshot, Telemetry, WorkloadClass
from joulie.physics.cooling import CoolingModel, LinearCoolingModel
from joulie.physics.hardware import Machine, machine_of
from joulie.settings import DecisionSettings, ExtenderSettings, HardwareSettings, load

NOW = 1_793_534_400.0  # 2026-11-01T12:00:00Z
CATALOGUE = Catalogue()
MANAGED = {names.MANAGED_LABEL: "true"}
ALL_ECO = {"STATIC_HP_FRAC": "0"}
ALL_PERFORMANCE = {"STATIC_HP_FRAC": "1"}
BUILTIN_POLICIES: dict[str, Policy] = {policy.name: policy for policy in (StaticPartition(), QueueAware(), RuleSwap())}


def node(
    name: str = "a",
    labels: Mapping[str, str] | None = None,
    *,
    cores: float = 100.0,
    nvidia: float = 0.0,
    amd: float = 0.0,
    cordoned: bool = False,
) -> Node:
    """A managed node; 100 cores of an unknown CPU make a maximum of 350 W."""
    return Node(name, {**MANAGED, **(labels or {})}, cordoned, cores, nvidia, amd)


def known_node(name: str, cpu: str = "EPYC-9654", sockets: int = 2, gpu: str = "", gpus: int = 0) -> Node:
    """A node whose labels tell its models."""
    labels = {names.CPU_MODEL_LABEL: cpu, names.CPU_SOCKETS_LABEL: str(sockets)}
    if gpus:
        labels |= {names.GPU_MODEL_LABEL: gpu, names.GPU_COUNT_LABEL: str(gpus)}
    return node(name, labels, cores=96.0 * sockets)


def hardware(
    name: str = "a", cpu: Mapping[str, Any] | None = None, gpu: Mapping[str, Any] | None = None
) -> NodeHardware:
    """NodeHardware from the JSON of its status' parts."""
    status = {key: dict(part) for key, part in (("cpu", cpu), ("gpu", gpu)) if part is not None}
    return msgspec.convert({"metadata": {"name": name}, "status": status}, NodeHardware)


def machine(of: Node, told: NodeHardware | None = None, env: Mapping[str, str] | None = None) -> Machine:
    return machine_of(of, told, load(HardwareSettings, env or {}), CATALOGUE)


def pod(
    name: str = "p",
    on: str = "",
    wants: WorkloadClass = "standard",
    *,
    cores: float = 0.0,
    gpus: float = 0.0,
    finished: bool = False,
    terminating: bool = False,
    scheduled_at_s: float | None = None,
) -> Pod:
    return Pod("default", name, on, wants, cores, gpus, finished, terminating, scheduled_at_s)


def twin(name: str = "a", spec: Mapping[str, Any] | None = None, status: Mapping[str, Any] | None = None) -> NodeTwin:
    """A NodeTwin from the JSON of its parts."""
    parts = {key: dict(part) for key, part in (("spec", spec), ("status", status)) if part is not None}
    return msgspec.convert({"metadata": {"name": name}, **parts}, NodeTwin)


def fresh_twin(name: str = "a", state: str = "performance", age_s: float = 0.0, **status: Any) -> NodeTwin:
    """A twin written `age_s` ago: half of its 600 W in use, cooling stress 20, flat trend, unless told otherwise."""
    power = {"measuredNodePowerW": 300, "nodeCappedPowerW": 600, "powerTrendWPerMin": 0}
    written = {
        "schedulableClass": state,
        "lastUpdated": format_time(NOW - age_s),
        "predictedCoolingStressScore": 20,
        "powerMeasurement": power | status.pop("power", {}),
    }
    return twin(name, status=written | status)


def snapshot(
    nodes: Iterable[Node],
    pods: Iterable[Pod] = (),
    *,
    told: Iterable[NodeHardware] = (),
    twins: Iterable[NodeTwin] = (),
    pins: Iterable[Pin] = (),
    telemetry: Telemetry | None = None,
) -> Snapshot:
    return Snapshot(
        nodes={each.name: each for each in nodes},
        pods=tuple(pods),
        hardware={each.metadata.name: each for each in told},
        twins={each.node: each for each in twins},
        pins=tuple(pins),
        telemetry=telemetry or Telemetry(),
    )


def plan(
    cluster: Snapshot | Iterable[Node],
    env: Mapping[str, str] | None = None,
    now_s: float = NOW,
    policy: Policy | None = None,
    cooling: CoolingModel | None = None,
) -> Plan:
    """The plan under these settings; the policy is the one that they name unless one is handed in."""
    settings = load(DecisionSettings, env or {})
    return decide(
        cluster if isinstance(cluster, Snapshot) else snapshot(cluster),
        settings,
        now_s,
        policy=policy or BUILTIN_POLICIES[settings.plan.policy_type],
        cooling=cooling or LinearCoolingModel(settings.twin),
    )


def states(decided: Plan) -> dict[str, str]:
    return {assignment.node: assignment.state for assignment in decided.assignments}


def performance_nodes(decided: Plan) -> set[str]:
    return {assignment.node for assignment in decided.assignments if assignment.profile == names.PERFORMANCE}


def assignment_of(decided: Plan, name: str = "a") -> Assignment:
    return next(assignment for assignment in decided.assignments if assignment.node == name)


def status_of(decided: Plan, name: str = "a") -> NodeTwinStatus:
    return decided.twins.status(list(decided.twins.nodes).index(name))


def power_of(decided: Plan, name: str = "a") -> PowerMeasurement:
    power = status_of(decided, name).power_measurement
    assert power is not None
    return power


def scores(
    cluster: Snapshot,
    asking: Pod | None = None,
    env: Mapping[str, str] | None = None,
    now_s: float = NOW,
    budgets: Iterable[PowerBudget] = (),
) -> dict[str, NodeScore]:
    """Every node's score for a pod, by node."""
    settings = load(ExtenderSettings, env or {})
    asking = asking or pod("asking")
    table = score_table(cluster, settings.score, settings.marginal, settings.hardware, CATALOGUE, now_s, budgets)
    return {scored.node: scored for scored in score_pod(table, asking)}

"""The decision core's answer to a random case of the oracle, in the shape that the oracle answers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from joulie.cluster.decoding import json_documents
from joulie.cluster.files.collection import Collection
from joulie.control.cycle import decide
from joulie.control.placement.score_table import score_pod, score_table
from joulie.control.plan import Assignment, Plan
from joulie.model.snapshot import Pod, Snapshot
from joulie.physics.cooling import LinearCoolingModel
from joulie.settings import DecisionSettings, ExtenderSettings, load
from tests.oracle.random_cases.clusters import Case
from tests.support.small_clusters import BUILTIN_POLICIES, CATALOGUE

Json = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """A case as the decision core takes it."""

    cluster: Snapshot
    asking: Pod
    decision: DecisionSettings
    extender: ExtenderSettings
    now_s: float

    @classmethod
    def of(cls, case: Case) -> Question:
        env = dict(case.env)
        overrides = {"POLICY_TYPE": case.policy, "NODE_SELECTOR": case.selector, "AMBIENT_TEMP_C": case.ambient}
        env |= {variable: str(value) for variable, value in overrides.items() if value is not None}
        return cls(
            _read(case.objects),
            next(iter(_read([case.pod]).pods)),
            load(DecisionSettings, env),
            load(ExtenderSettings, env),
            case.now,
        )

    def decide(self) -> Plan:
        policy = BUILTIN_POLICIES[self.decision.plan.policy_type]
        cooling = LinearCoolingModel(self.decision.twin)
        return decide(self.cluster, self.decision, self.now_s, policy=policy, cooling=cooling)


def _read(objects: list[Json]) -> Snapshot:
    collection = Collection()
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    collection.add("case", json_documents.bodies(json.dumps(listed).encode()))
    return collection.snapshot()


def plan_json(decided: Plan) -> Json:
    states = {state: decided.count(state) for state in ("performance", "eco", "draining")}
    return {
        "policy": decided.policy,
        "summary": {
            "eligible": len(decided.assignments),
            **states,
            "pods": msgspec.to_builtins(decided.demand),
        },
        "nodes": [_assignment_json(assignment) for assignment in decided.assignments],
    }


def _assignment_json(assignment: Assignment) -> Json:
    caps, has_gpu = assignment.caps, assignment.machine.gpu_count > 0
    return {
        "node": assignment.node,
        "profile": assignment.profile,
        "state": assignment.state,
        "draining": assignment.draining,
        "density": assignment.density,
        "family": assignment.machine.family,
        "cpu": {
            "capPct": caps.cpu_pct,
            "capWatts": caps.cpu_w(assignment.machine),
            "capWattsPerPackage": caps.cpu_w_each,
        },
        "gpu": {"capPct": caps.gpu_pct, "capWattsPerGpu": caps.gpu_w_each} if has_gpu else None,
    }


def twin_json(decided: Plan) -> list[Json]:
    statuses = enumerate(decided.twins.nodes)
    return [{"node": name, "status": msgspec.to_builtins(decided.twins.status(row))} for row, name in statuses]


def score_json(question: Question) -> Json:
    asking, extender = question.asking, question.extender
    table = score_table(
        question.cluster,
        extender.score,
        extender.marginal,
        extender.hardware,
        CATALOGUE,
        question.now_s,
    )
    return {
        "pod": f"{asking.namespace}/{asking.name}",
        "workloadClass": asking.workload_class,
        "nodes": msgspec.to_builtins(score_pod(table, asking)),
    }


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Where two answers differ, reasons aside: those are for people, and each side has its own words."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted((ours.keys() | theirs.keys()) - {"reason"}):
            if key in ours and key in theirs:
                yield from differences(ours[key], theirs[key], f"{path}.{key}")
            else:
                yield f"{path}.{key} only {'here' if key in ours else 'there'}"
    elif isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            yield f"{path}: {len(ours)} and {len(theirs)} elements"
        for index, pair in enumerate(zip(ours, theirs, strict=False)):
            yield from differences(*pair, f"{path}[{index}]")
    elif isinstance(ours, float) and isinstance(theirs, int | float) and not isinstance(theirs, bool):
        if not math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9):
            yield f"{path}: {ours!r} here, {theirs!r} there"
    elif ours != theirs:
        yield f"{path}: {ours!r} here, {theirs!r} there"

"""The guard between full power and eco: a node drains, and is never capped under a performance-only pod.

    performance ──eco wanted, performance-only pods there──▶ draining ──last of them gone──▶ eco
         ▲  └────────────eco wanted, none there────────────────────────────────────────────▶ │
         └───────────────────────────── performance wanted ──────────────────────────────────┘

What a node becomes depends only on what is wanted and on the pods that are there; where it came from matters for
events and metrics alone, and is read from the cluster's objects, so a restarted operator decides the same.

The rules: docs/reference/behaviour.md, 'Draining'.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from joulie.control.policies.interface import Profile, State
from joulie.model.api import NodeTwin
from joulie.model.names import DRAINING, DRAINING_LABEL, ECO, PERFORMANCE


class Transition(NamedTuple):
    """A change of a node's state, for events and metrics: applied, or deferred while pods hold it up."""

    from_state: State
    to_state: State
    result: Literal["applied", "deferred"]


def guarded_state(wanted: Profile, performance_pods: int) -> State:
    """Eco waits for the performance-only pods: the node drains instead, at performance caps."""
    if wanted == ECO and performance_pods > 0:
        return DRAINING
    return wanted


def current_state(twin: NodeTwin | None, labels: Mapping[str, str], profile_label: str) -> State:
    """What the objects say the node is; without twin and label it counts as performance."""
    published = twin.status.schedulable_class if twin and twin.status else None
    if published in (PERFORMANCE, ECO, DRAINING):
        return published
    spec = twin.spec if twin else None
    if spec is not None and spec.profile is not None:
        draining = spec.scheduling is not None and spec.scheduling.draining is True
        return DRAINING if draining and spec.profile == ECO else spec.profile
    if labels.get(profile_label) == ECO:
        return DRAINING if labels.get(DRAINING_LABEL) == "true" else ECO
    return PERFORMANCE


def transition(before: State, after: State) -> Transition | None:
    """The change to report, if there is one."""
    if before == after:
        return None
    return Transition(before, after, "deferred" if after == DRAINING else "applied")

"""What became of an object: conditions, as everywhere in Kubernetes, and the results of caps."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from joulie.model.api.fields import ControlResult, Generation, Part, Pct, Timestamp, Watts

ConditionStatus = Literal["True", "False", "Unknown"]
MAX_CONDITION_MESSAGE = 1024

# Condition types; each is written by one component, with the exceptions that ADR 0020 names.
ACCEPTED = "Accepted"
DISCOVERED = "Discovered"
DRAINING = "Draining"
ENFORCED = "Enforced"
WORKING = "Working"

AGENT_SILENT = "AgentSilent"  # reason of Enforced: the operator says so in place of the agent


class Condition(Part, frozen=True):
    """One statement about the object, for `kubectl wait --for=condition=...`.

    Only type and status are required: where two writers share an entry and one lets go, what is left must stay valid.
    """

    type: Annotated[str, Meta(description="What the statement is about.", min_length=1, max_length=316)]
    status: Annotated[ConditionStatus, Meta(description="Whether it holds.")]
    reason: Annotated[str, Meta(description="Why, in one word for programs.", max_length=1024)] | None = None
    message: Annotated[str, Meta(description="Why, for people.", max_length=32768)] | None = None
    last_transition_time: Annotated[Timestamp, Meta(description="When the status last changed.")] | None = None
    observed_generation: (
        Annotated[Generation, Meta(description="The metadata.generation that this was said of.")] | None
    ) = None


Conditions = Annotated[
    list[Condition],
    Meta(
        description="Statements about the object, one of each type.",
        extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    ),
]


class ControlState(Part, frozen=True):
    """What became of a cap on the node."""

    backend: (
        Annotated[str, Meta(description="What holds the cap, such as rapl or http; or none.", max_length=63)] | None
    ) = None
    result: Annotated[ControlResult, Meta(description="applied, blocked (cannot be), error or none.")] | None = None
    message: Annotated[str, Meta(description="The reason, for people.", max_length=1024)] | None = None
    cap_watts: Annotated[Watts, Meta(description="What the device holds: all CPU packages, or each GPU.")] | None = None
    throttle_pct: Annotated[Pct, Meta(description="How far the CPU's frequency is held back.")] | None = None
    updated_at: Annotated[Timestamp, Meta(description="When the agent last said so.")] | None = None


class ControlStatus(Part, frozen=True):
    """Written by the agent alone."""

    cpu: Annotated[ControlState, Meta(description="CPU cap on the node.")] | None = None
    gpu: Annotated[ControlState, Meta(description="GPU cap on the node.")] | None = None

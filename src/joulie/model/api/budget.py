"""PowerBudget: a limit in watts for groups of nodes."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from joulie.model.api.fields import Count, Generation, Part, Timestamp
from joulie.model.api.results import Conditions
from joulie.model.kubernetes import ObjectMeta

FEASIBLE = "Feasible"  # condition types; Enforced is among those that all kinds share
WITHIN_LIMIT = "WithinLimit"

LimitWatts = Annotated[float, Meta(gt=0, le=1e12)]
AnyWatts = Annotated[float, Meta(ge=0, le=1e12)]
Share = Annotated[float, Meta(gt=0, le=1)]
_LABEL_NAME = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_DNS_NAME = "[a-z0-9]([-a-z0-9.]*[a-z0-9])?"
LabelKey = Annotated[str, Meta(min_length=1, max_length=317, pattern=f"^({_DNS_NAME}/)?{_LABEL_NAME}$")]
LabelValue = Annotated[str, Meta(max_length=63, pattern=f"^({_LABEL_NAME})?$")]
TimeZone = Annotated[str, Meta(min_length=1, max_length=64, pattern="^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$")]
Clock = Annotated[str, Meta(max_length=5, pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$")]
Query = Annotated[str, Meta(min_length=1, max_length=4096)]
Weekday = Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
Mode = Literal["enforce", "report"]
GroupState = Literal["within", "settling", "exceeded", "infeasible", "reported"]


class LabelRequirement(Part, frozen=True):
    """One condition on one label."""

    key: Annotated[LabelKey, Meta(description="The label.")]
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist"], Meta(description="How it is compared with the values.")
    ]
    values: Annotated[list[LabelValue], Meta(max_length=256, description="With In and NotIn.")] | None = None


class LabelSelector(Part, frozen=True):
    """Nodes by their labels, as everywhere in Kubernetes; all conditions have to hold."""

    match_labels: Annotated[dict[str, str], Meta(description="Labels with their values.")] | None = None
    match_expressions: (
        Annotated[list[LabelRequirement], Meta(max_length=64, description="Conditions on labels.")] | None
    ) = None


class GroupException(Part, frozen=True):
    """What is different for one group."""

    value: Annotated[LabelValue, Meta(description="The group: a value of the label in groupBy.")]
    watts: Annotated[LimitWatts, Meta(description="Its limit.")] | None = None
    mode: Annotated[Mode, Meta(description="Whether its limit is enforced or only reported.")] | None = None


class BudgetWindow(Part, frozen=True):
    """A limit for certain hours; one that ends before it begins ends on the next day."""

    from_: Annotated[Clock, Meta(description="When it begins, HH:MM.")] = field(name="from")
    to: Annotated[Clock, Meta(description="When it ends, HH:MM.")]
    watts: Annotated[LimitWatts, Meta(description="Limit of each group meanwhile.")]
    days: Annotated[list[Weekday], Meta(max_length=7, description="Days on which it begins; absent: all.")] | None = (
        None
    )
    time_zone: Annotated[TimeZone, Meta(description="Such as Europe/Berlin; absent: UTC.")] | None = None


class Forecast(Part, frozen=True):
    """A forecast kept in a ConfigMap, as lines of `from,to,value`."""

    config_map: Annotated[
        str,
        Meta(max_length=317, pattern=f"^{_DNS_NAME}/{_DNS_NAME}$", description="Namespace and name, with a slash."),
    ]
    key: Annotated[str, Meta(min_length=1, max_length=253, description="The key that holds the lines.")]


class SignalPoint(Part, frozen=True):
    """The limit at one value of the signal."""

    value: Annotated[float, Meta(ge=-1e12, le=1e12, description="Value of the signal.")]
    watts: Annotated[LimitWatts, Meta(description="Limit of each group there.")]


class BudgetSignal(Part, frozen=True):
    """A limit that follows a price, the grid's carbon or any other number; straight lines between the points."""

    at: Annotated[list[SignalPoint], Meta(min_length=1, max_length=64, description="Limits by value.")]
    query: Annotated[Query, Meta(description="PromQL for the value now.")] | None = None
    forecast: Annotated[Forecast, Meta(description="Values to come.")] | None = None


class BudgetMeter(Part, frozen=True):
    """A meter that shows what each group really draws."""

    query: Annotated[Query, Meta(description="PromQL for the watts of a group; {group} becomes its value.")]


class PowerBudgetSpec(Part, frozen=True):
    """The limit and what it is for."""

    watts: Annotated[LimitWatts, Meta(description="Limit of each group.")]
    node_selector: Annotated[LabelSelector, Meta(description="Which nodes; absent: all.")] | None = None
    group_by: Annotated[LabelKey, Meta(description="One limit for each value of this label.")] | None = None
    groups: (
        Annotated[
            list[GroupException],
            Meta(
                max_length=1024,
                description="Groups that differ, each value once.",
                extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["value"]},
            ),
        ]
        | None
    ) = None
    windows: Annotated[list[BudgetWindow], Meta(max_length=64, description="Other limits at certain hours.")] | None = (
        None
    )
    signal: Annotated[BudgetSignal, Meta(description="A limit that follows a number.")] | None = None
    rest_watts_per_node: (
        Annotated[AnyWatts, Meta(description="The most that no cap of a node limits: fans, disks, losses.")] | None
    ) = None
    restart_reserve: (
        Annotated[Count, Meta(description="Room is kept for so many nodes that lose their caps; absent: 1.")] | None
    ) = None
    reserve_watts: Annotated[AnyWatts, Meta(description="For what is not a node: switches, storage.")] | None = None
    share: Annotated[Share, Meta(description="Part of a node's power that comes from this feed.")] | None = None
    failover_share: Annotated[Share, Meta(description="That part when the other feed is lost.")] | None = None
    meter: Annotated[BudgetMeter, Meta(description="Cuts everything where a meter shows too much.")] | None = None
    mode: Annotated[Mode, Meta(description="enforce (the default), or only report.")] | None = None


class MeterStatus(Part, frozen=True):
    """What a group's meter shows, and what follows from it."""

    share: (
        Annotated[Share, Meta(description="Part of the limit that caps may add up to; absent: all of it.")] | None
    ) = None
    watts: Annotated[AnyWatts, Meta(description="What it shows.")] | None = None
    lost: (
        Annotated[str, Meta(max_length=1024, description="Why it does not count; what it took before stays taken.")]
        | None
    ) = None


class BudgetGroupStatus(Part, frozen=True):
    """One group of a budget."""

    value: Annotated[LabelValue, Meta(description="Value of the label in groupBy; empty without one.")]
    nodes: Annotated[Count, Meta(description="Nodes that count.")]
    limit_watts: Annotated[AnyWatts, Meta(description="The limit in force.")]
    allocated_watts: Annotated[AnyWatts, Meta(description="The most that its nodes may draw now.")]
    floor_watts: Annotated[AnyWatts, Meta(description="The least that its nodes can be held to.")]
    state: Annotated[GroupState, Meta(description="Whether the limit holds; settling: not all caps are confirmed.")]
    measured_watts: (
        Annotated[AnyWatts, Meta(description="What its nodes draw, where it is measured; the meter's value if larger.")]
        | None
    ) = None
    reason: Annotated[str, Meta(max_length=1024, description="Why, for people.")] | None = None
    meter: Annotated[MeterStatus, Meta(description="Its meter; absent without spec.meter.")] | None = None


class PowerBudgetStatus(Part, frozen=True):
    """What became of the budget, written by the operator."""

    observed_generation: Annotated[Generation, Meta(description="The spec that this is about.")] | None = None
    groups: Annotated[list[BudgetGroupStatus], Meta(description="Each group, by value.")] | None = None
    until: Annotated[Timestamp, Meta(description="When a window or forecast next changes a limit.")] | None = None
    conditions: Conditions | None = None


class PowerBudget(Part, frozen=True):
    """A limit in watts that groups of nodes never exceed."""

    metadata: ObjectMeta
    spec: Annotated[PowerBudgetSpec, Meta(description="The limit.")]
    status: Annotated[PowerBudgetStatus, Meta(description="What became of it.")] | None = None

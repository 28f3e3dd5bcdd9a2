"""The operator's metrics. Series for nodes are rendered from the last plan on each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from joulie.control.density import density_parts
from joulie.control.plan import Plan
from joulie.metrics import Described, Instruments, head
from joulie.model.api import NodeTwin
from joulie.model.names import RACK_LABEL
from joulie.model.rfc3339 import readable_time_s
from joulie.model.snapshot import Node
from joulie.operator.apply import WriteOutcome
from joulie.operator.budget.metrics import BudgetMetrics

_STATES = ("performance", "eco", "draining")
_PROFILES = ("performance", "eco")
LINES_AT_ONCE = 2_000  # a few milliseconds, after which other tasks run
_DURATION_BUCKETS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 120)


class _Shown(NamedTuple):
    """A plan and the labels of its nodes when it was made."""

    plan: Plan
    labels: list[str]  # rendered labels of each row of the plan's twins; rack is empty without one
    twins: Mapping[str, NodeTwin]  # current ones: an agent may have reported since


class _Family(NamedTuple):
    """One metric of nodes, with its series rendered after the name."""

    name: str
    help: str
    labels: tuple[str, ...]
    series: Callable[[_Shown], Iterable[str]]


class OperatorMetrics:
    """What Prometheus scrapes from the operator (docs/reference/metrics.md)."""

    def __init__(self, is_leader: Callable[[], bool], power_budget_w: float = 0.0) -> None:
        self.made = made = Instruments("joulie_operator")
        self._shown: _Shown | None = None
        self._is_leader = is_leader
        made.gauge("leader", "1 while this operator leads.").set_function(lambda: float(is_leader()))
        made.gauge("power_budget_watts", "Power budget that the power of all nodes is compared with; 0: none.").set(
            power_budget_w
        )
        self.reconcile_seconds = made.histogram(
            "reconcile_duration_seconds", "Duration of one decision and its writes.", _DURATION_BUCKETS, "part"
        )
        self.reconcile_errors = made.counter("reconcile_errors", "Decisions that failed.")
        self.write_errors = made.counter("write_errors", "Nodes whose writes failed in a decision.")
        self.api_writes = made.counter("api_writes", "Writes to the API server.", "verb", "resource")
        self.transitions = made.counter(
            "state_transitions", "Changes of a node's state.", "node", "from_state", "to_state", "result"
        )
        self.broken_objects = made.gauge("broken_objects", "Objects that cannot be decoded.", "kind")
        self.broken_seen = made.counter("broken_objects_seen", "Objects that could not be decoded.", "kind")
        self.relists = made.counter("relists", "Times that a kind was listed again after a gap.", "kind")
        self.watch_errors = made.counter("watch_errors", "Failures of watches; each was retried.", "kind")
        self.held_removals = made.gauge(
            "held_removals", "Twins that are kept for now although no node is in scope, which may be a mistake."
        )
        self.tier_nodes = made.gauge("power_source_nodes", "Nodes whose power comes from each source.", "source")
        self.source_failures = made.counter(
            "source_failures", "Readings of a telemetry source that failed, wholly or in part.", "source"
        )
        self.source_success = made.gauge(
            "source_last_success_timestamp_seconds", "When a telemetry source last answered.", "source"
        )
        self.clock_ahead = made.gauge(
            "source_clock_ahead_seconds",
            "Clock of a Prometheus server minus local time, according to its responses.",
            "source",
        )
        self.refused_readings = made.counter(
            "refused_readings", "Sensor readings that were rejected as implausible.", "source", "reason"
        )

        self.budgets = BudgetMetrics()

    def count(self, outcome: WriteOutcome) -> None:
        for (verb, resource), number in outcome.writes.items():
            self.api_writes.labels(verb, resource).inc(number)
        self.write_errors.inc(len(outcome.failed))

    def show(self, plan: Plan, nodes: Mapping[str, Node], twins: Mapping[str, NodeTwin]) -> None:
        """Shows this plan from now on; `twins` is read again on every scrape."""
        names = plan.twins.nodes
        racks = [nodes[name].labels.get(RACK_LABEL, "") if name in nodes else "" for name in names]
        labels = [f'{{node="{name}",rack="{rack}"}}' for name, rack in zip(names, racks, strict=True)]
        self._shown = _Shown(plan, labels, twins)

    def page(self) -> bytes:
        """The text for a scrape."""
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        """The same in chunks, so that other tasks run in between."""
        shown = self._shown if self._is_leader() else None  # only the leader shows a plan
        yield self.made.page()
        yield from self.budgets.pieces()
        yield from _node_series(shown)

    def described(self) -> list[Described]:
        """Every metric, for the reference."""
        of_nodes = [Described(family.name, "gauge", family.help, family.labels) for family in _FAMILIES]
        return [*self.made.described, *self.budgets.described(), *of_nodes]


def _node_series(shown: _Shown | None) -> Iterator[bytes]:
    """prometheus-client takes 0.3 s for 30,000 series; rendering text takes a tenth of that."""
    if shown is None:
        return
    for name, meaning, _, series in _FAMILIES:
        yield head(name, "gauge", meaning).encode()
        lines = iter(series(shown))
        while some := list(islice(lines, LINES_AT_ONCE)):
            yield "".join([name + line for line in some]).encode()


def _reported_s(twin: NodeTwin | None) -> float:
    """When the node's agent last reported, by its own clock; 0: never."""
    control = twin.status.control_status if twin and twin.status else None
    said = control.cpu or control.gpu if control else None
    return _time_s(said.updated_at) if said and said.updated_at else 0.0


@lru_cache(maxsize=1024)  # many nodes share the same second
def _time_s(text: str) -> float:
    return readable_time_s(text) or 0.0


def _states(shown: _Shown) -> Iterator[str]:
    for node, current in zip(shown.plan.twins.nodes, shown.plan.twins.states, strict=True):
        for state in _STATES:
            yield f'{{node="{node}",state="{state}"}} {int(state == current)}\n'


def _profiles(shown: _Shown) -> Iterator[str]:
    for assignment in shown.plan.assignments:
        for profile in _PROFILES:
            value = int(profile == assignment.profile)
            yield f'{{node="{assignment.node}",profile="{profile}"}} {value}\n'


def _densities(shown: _Shown) -> Iterator[str]:
    machines = [assignment.machine for assignment in shown.plan.assignments]
    for machine, parts in zip(machines, density_parts(machines), strict=True):
        for component, part in zip(("cpu", "gpu"), parts, strict=True):
            yield f'{{node="{machine.node}",component="{component}"}} {part:g}\n'


def _reports(shown: _Shown) -> Iterator[str]:
    for node in shown.plan.twins.nodes:
        yield f'{{node="{node}"}} {_reported_s(shown.twins.get(node)):.0f}\n'


def _pods(shown: _Shown) -> Iterator[str]:
    demand = shown.plan.demand
    for asks, count in (
        ("performance", demand.performance_only),
        ("eco", demand.eco_only),
        ("general", demand.general),
    ):
        yield f'{{class="{asks}"}} {count}\n'


def _pue(shown: _Shown) -> Iterator[str]:
    if shown.plan.twins.estimated_pue is not None:
        yield f" {shown.plan.twins.estimated_pue:.6g}\n"


def _column(name: str, meaning: str, column: str) -> _Family:
    """A metric from a column of the twins."""

    def series(shown: _Shown) -> list[str]:
        values = shown.plan.twins.columns[column]
        return [f"{labels} {value:.7g}\n" for labels, value in zip(shown.labels, values, strict=True)]

    return _Family(f"joulie_operator_node_{name}", meaning, ("node", "rack"), series)


_FAMILIES: tuple[_Family, ...] = (
    _Family("joulie_operator_node_state", "1 for the state a node is in.", ("node", "state"), _states),
    _Family(
        "joulie_operator_node_profile_label",
        "1 for the profile in a node's label.",
        ("node", "profile"),
        _profiles,
    ),
    _Family(
        "joulie_operator_node_compute_density",
        "Compute relative to the densest node in scope, 0 to 1.",
        ("node", "component"),
        _densities,
    ),
    _column("power_watts", "Power of a node's CPUs and GPUs, from its best source.", "measured_w"),
    _column("capped_power_watts", "Maximum power under a node's caps.", "capped_w"),
    _column("headroom_score", "Predicted power headroom under the caps, 0 to 100.", "headroom"),
    _column("cooling_stress_score", "Predicted use of the cooling capacity, 0 to 100.", "cooling_stress"),
    _column(
        "psu_stress_score", "Load of the rack's power supply, 0 to 100; without a rack, of all nodes.", "psu_stress"
    ),
    _Family(
        "joulie_operator_agent_report_timestamp_seconds",
        "When a node's agent last reported on its caps; 0: never.",
        ("node",),
        _reports,
    ),
    _Family(
        "joulie_operator_pods",
        "Active pods by the profile that they require: performance, eco, or either (general).",
        ("class",),
        _pods,
    ),
    _Family("joulie_operator_estimated_pue", "Facility power over IT power; absent while unknown.", (), _pue),
)

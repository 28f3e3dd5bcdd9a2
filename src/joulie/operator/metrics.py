"""The operator's metrics. Series for each node are rendered from the last plan when asked, not kept twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from joulie.control.density import density_parts
from joulie.control.plan import Plan
from joulie.operator.apply import Outcome

_STATES = ("performance", "eco", "draining")
_PROFILES = ("performance", "eco")


class OperatorMetrics:
    """What Prometheus scrapes from the operator (SPEC 5)."""

    def __init__(self, is_leader: Callable[[], bool]) -> None:
        self.registry = CollectorRegistry()
        self.plan: Plan | None = None
        self._is_leader = is_leader
        self._gauge("leader", "1 while this operator leads.").set_function(lambda: float(is_leader()))
        self.reconcile_seconds = Histogram(
            "joulie_operator_reconcile_duration_seconds",
            "Time of one decision and its writes.",
            ["part"],
            registry=self.registry,
            buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 120),
        )
        self.reconcile_errors = self._counter("reconcile_errors", "Decisions that failed.")
        self.write_errors = self._counter("write_errors", "Nodes whose writes failed in a decision.")
        self.api_writes = self._counter("api_writes", "Writes to the API server.", "verb", "resource")
        self.transitions = self._counter(
            "state_transitions", "Changes of a node's state.", "node", "from_state", "to_state", "result"
        )
        self.broken_objects = self._gauge("broken_objects", "Objects that cannot be read.", "kind")
        self.broken_seen = self._counter("broken_objects_seen", "Objects found broken.", "kind")
        self.relists = self._counter("relists", "Times a kind was listed again after a gap.", "kind")
        self.watch_errors = self._counter("watch_errors", "Faults of watches, all survived.", "kind")
        self.tier_nodes = self._gauge("power_source_nodes", "Nodes that each source of power speaks for.", "source")
        self.refused_readings = self._counter("refused_readings", "Sensor readings not believed.", "source", "reason")

    def count(self, outcome: Outcome) -> None:
        for (verb, resource), number in outcome.writes.items():
            self.api_writes.labels(verb, resource).inc(number)
        self.write_errors.inc(len(outcome.failed))

    def page(self) -> bytes:
        """The text that a scrape gets."""
        plan = self.plan if self._is_leader() else None  # what another decides is the other's to show
        return generate_latest(self.registry) + "".join(_node_series(plan)).encode()

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"joulie_operator_{name}", meaning, labels, registry=self.registry)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(f"joulie_operator_{name}", meaning, labels, registry=self.registry)


def _node_series(plan: Plan | None) -> Iterator[str]:
    """30,000 series take prometheus-client 0.3 s of the process; as text they take a tenth of that."""
    if plan is None:
        return
    yield "# HELP joulie_operator_node_state 1 for the state a node is in.\n"
    yield "# TYPE joulie_operator_node_state gauge\n"
    for node, current in zip(plan.twins.nodes, plan.twins.states, strict=True):
        for state in _STATES:
            yield f'joulie_operator_node_state{{node="{node}",state="{state}"}} {int(state == current)}\n'
    yield "# HELP joulie_operator_node_profile_label 1 for the profile that a node's label says.\n"
    yield "# TYPE joulie_operator_node_profile_label gauge\n"
    for assignment in plan.assignments:
        for profile in _PROFILES:
            value = int(profile == assignment.profile)
            yield f'joulie_operator_node_profile_label{{node="{assignment.node}",profile="{profile}"}} {value}\n'
    yield "# HELP joulie_operator_node_compute_density Compute relative to the densest node in scope, 0 to 1.\n"
    yield "# TYPE joulie_operator_node_compute_density gauge\n"
    machines = [assignment.machine for assignment in plan.assignments]
    for machine, parts in zip(machines, density_parts(machines), strict=True):
        for component, part in zip(("cpu", "gpu"), parts, strict=True):
            labels = f'node="{machine.node}",component="{component}"'
            yield f"joulie_operator_node_compute_density{{{labels}}} {part:g}\n"

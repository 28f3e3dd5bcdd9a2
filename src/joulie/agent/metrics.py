"""The agent's metrics. A node's series are rendered when it ticks, so a scrape of thousands only joins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from joulie.agent import gpu_pods
from joulie.agent.budget.contact import BudgetContact
from joulie.agent.enforcement.dvfs_loop import DvfsView
from joulie.agent.node import NodeAgent
from joulie.agent.pool import Pool
from joulie.agent.reporting.reporter import Reporter
from joulie.cluster.watch.observer import ContactClock
from joulie.metrics import Described, escaped, head

_MODES = ("none", "rapl", "dvfs")
_ACTIONS = ("throttle_up", "throttle_down")


class _Family(NamedTuple):
    """One metric: its name, and the series that a node adds to it."""

    name: str
    type: str
    help: str
    labels: tuple[str, ...]
    series: Callable[[NodeAgent, str], str]


class AgentMetrics:
    """What Prometheus scrapes from the agent."""

    def __init__(
        self,
        pool: Pool,
        reporter: Reporter,
        contact: ContactClock,
        budget: BudgetContact,
        holders: gpu_pods.GpuPods,
    ) -> None:
        self._pool = pool
        self._holders = holders
        self._reporter = reporter
        self._contact = contact
        self._budget = budget
        self._relists = 0
        self._watch_errors = 0

    def count_relist(self, _kind: str) -> None:
        self._relists += 1

    def count_watch_error(self, _kind: str) -> None:
        self._watch_errors += 1

    def pieces(self) -> Iterator[bytes]:
        """The text that a scrape gets, a family at a time."""
        rendered = [node.series for node in self._pool.nodes.values() if node.series]
        yield self._own().encode()
        for number, family in enumerate(_FAMILIES):
            series = "".join([series[number] for series in rendered])
            yield f"{head(family.name, family.type, family.help)}{series}".encode()
        yield self._holders.text().encode()

    def _own(self) -> str:
        age_s = self._contact.age_s()
        values = (
            len(self._pool.nodes),
            math.inf if age_s is None else age_s,
            self._reporter.failures,
            self._relists,
            self._watch_errors,
            self._budget.renewal_age_s,
        )
        whole = (
            f"{head(name, kind, meaning)}{name} {_number(value)}\n"
            for (name, kind, meaning, _), value in zip(_OWN[:-1], values, strict=True)
        )
        name, kind, meaning, _ = _OWN[-1]
        writes = (
            f'{name}{{verb="{verb}",resource="{resource}"}} {number}\n'
            for (verb, resource), number in sorted(self._reporter.writes.items())
        )
        return "".join((*whole, head(name, kind, meaning), *writes))


def described() -> list[Described]:
    """Every metric, for the reference."""
    per_node = (Described(family.name, family.type, family.help, family.labels) for family in _FAMILIES)
    return [*_OWN, *per_node, gpu_pods.UP, gpu_pods.INFO]


def render(node: NodeAgent) -> tuple[str, ...]:
    """The node's series of every family, in their order."""
    labels = f'node="{node.name}"'
    return tuple(family.series(node, labels) for family in _FAMILIES)


def _number(value: float) -> str:
    return "+Inf" if value == math.inf else f"{value:.10g}"


def _line(name: str, labels: str, value: float | None) -> str:
    return "" if value is None else f"{name}{{{labels}}} {_number(value)}\n"


def _one(name: str, kind: str, meaning: str, value: Callable[[NodeAgent], float | None]) -> _Family:
    return _Family(name, kind, meaning, ("node",), lambda node, labels: _line(name, labels, value(node)))


def _many(
    name: str,
    kind: str,
    meaning: str,
    further: tuple[str, ...],
    values: Callable[[NodeAgent], Iterable[tuple[str, float | None]]],
) -> _Family:
    """Several series a node; each brings its further labels."""

    def series(node: NodeAgent, labels: str) -> str:
        return "".join(_line(name, f"{labels},{more}", value) for more, value in values(node))

    return _Family(name, kind, meaning, ("node", *further), series)


def _mode(node: NodeAgent) -> str:
    return node.control.cpu_mode if node.control else "none"


def _dvfs(value: Callable[[DvfsView], float | None]) -> Callable[[NodeAgent], float | None]:
    """Only while the loop acts: a stale value would mislead."""
    return lambda node: value(node.control.dvfs) if node.control and node.control.cpu_mode == "dvfs" else None


def _actions(node: NodeAgent) -> Iterable[tuple[str, float]]:
    taken = node.control.dvfs.actions if node.control else {}
    return ((f'action="{action}"', taken.get(action, 0)) for action in _ACTIONS)


def _package_total_w(node: NodeAgent) -> float | None:
    powers = [zone.power_w for zone in node.zones]
    known = [power_w for power_w in powers if power_w is not None]
    return math.fsum(known) if known and len(known) == len(powers) else None


def _policy_cap(node: NodeAgent) -> Iterable[tuple[str, float | None]]:
    if node.target is not None:
        yield f'policy="{escaped(node.target.chosen_by)}"', node.enforced.cpu.cap_w


def _caps(node: NodeAgent, *, enforced: bool) -> Iterable[tuple[str, float | None]]:
    for device, outcome in (("cpu", node.enforced.cpu), ("gpu", node.enforced.gpu)):
        if not enforced:
            yield f'device="{device}"', outcome.cap_w
        elif outcome.result == "applied":
            yield f'device="{device}"', outcome.held_w


def _missing(node: NodeAgent) -> Iterable[tuple[str, float]]:
    """Only where less than everything is asked for: where nothing has to be held back, nothing is missing."""
    target, simulated = node.target, node.control is not None and node.control.simulate_only
    if target is None:
        return
    for device, cap_w, cap_pct, outcome in (
        ("cpu", target.cpu_w_each, target.cpu_pct, node.enforced.cpu),
        ("gpu", target.gpu_w_each, target.gpu_pct, node.enforced.gpu),
    ):
        if cap_w is not None or (cap_pct is not None and cap_pct < 100):
            yield f'device="{device}"', int(outcome.result in ("blocked", "error") and not simulated)


def _results(node: NodeAgent) -> Iterable[tuple[str, float]]:
    for device, outcome in (("cpu", node.enforced.cpu), ("gpu", node.enforced.gpu)):
        yield f'device="{device}",result="{outcome.result}",backend="{escaped(outcome.backend)}"', 1


_OWN: tuple[Described, ...] = (
    Described("joulie_agent_nodes", "gauge", "Nodes that this agent looks after.", ()),
    Described("joulie_agent_contact_age_seconds", "gauge", "Time since the last contact with the API server.", ()),
    Described("joulie_agent_write_errors_total", "counter", "Failed writes of reports; each is retried.", ()),
    Described("joulie_agent_relists_total", "counter", "Relists after a gap in a watch.", ()),
    Described("joulie_agent_watch_errors_total", "counter", "Watch errors that were recovered from.", ()),
    Described(
        "joulie_agent_budget_renewal_age_seconds",
        "gauge",
        "Time since the last renewal by the operator's budget loop; infinite before the first one.",
        (),
    ),
    Described("joulie_agent_api_writes_total", "counter", "Writes to the API server.", ("verb", "resource")),
)
_FAMILIES: tuple[_Family, ...] = (
    _many(
        "joulie_backend_mode",
        "gauge",
        "1 for how CPU caps are held.",
        ("mode",),
        lambda node: ((f'mode="{mode}"', int(mode == _mode(node))) for mode in _MODES),
    ),
    _many(
        "joulie_policy_cap_watts",
        "gauge",
        "CPU cap that the policy asks for, all packages together.",
        ("policy",),
        _policy_cap,
    ),
    _many(
        "joulie_rapl_energy_uj",
        "counter",
        "Energy counter of a package zone; it wraps at its range.",
        ("zone",),
        lambda node: ((f'zone="{zone.zone}"', zone.energy_uj) for zone in node.zones),
    ),
    _many(
        "joulie_rapl_estimated_power_watts",
        "gauge",
        "Power of a package zone since the last reading.",
        ("zone",),
        lambda node: ((f'zone="{zone.zone}"', zone.power_w) for zone in node.zones),
    ),
    _one("joulie_rapl_package_total_power_watts", "gauge", "Power of all package zones.", _package_total_w),
    _one(
        "joulie_dvfs_observed_power_watts",
        "gauge",
        "Power that the throttling loop last read.",
        _dvfs(lambda dvfs: dvfs.observed_w),
    ),
    _one(
        "joulie_dvfs_ema_power_watts",
        "gauge",
        "The same, smoothed.",
        _dvfs(lambda dvfs: dvfs.state.ema_w),
    ),
    _one(
        "joulie_dvfs_throttle_pct",
        "gauge",
        "Throttle in force: 0 is none, 100 is down to the floor.",
        _dvfs(lambda dvfs: dvfs.state.throttle_pct),
    ),
    _one(
        "joulie_dvfs_above_trip_count",
        "gauge",
        "Readings in a row above the cap and its margin.",
        _dvfs(lambda dvfs: dvfs.state.above),
    ),
    _one(
        "joulie_dvfs_below_trip_count",
        "gauge",
        "Readings in a row below the cap and its margin.",
        _dvfs(lambda dvfs: dvfs.state.below),
    ),
    _many("joulie_dvfs_actions_total", "counter", "Changes of the throttle.", ("action",), _actions),
    _many(
        "joulie_dvfs_cpu_cur_freq_khz",
        "gauge",
        "Frequency of a CPU while the throttling loop acts.",
        ("cpu",),
        lambda node: ((f'cpu="{each.cpu}"', each.current_khz) for each in node.frequencies),
    ),
    _many(
        "joulie_dvfs_cpu_max_freq_khz",
        "gauge",
        "Highest frequency that a CPU may take while the throttling loop acts.",
        ("cpu",),
        lambda node: ((f'cpu="{each.cpu}"', each.max_khz) for each in node.frequencies),
    ),
    _one(
        "joulie_reconcile_errors_total",
        "counter",
        "Ticks that failed, or after which a device was in error.",
        lambda node: node.errors,
    ),
    _many(
        "joulie_agent_requested_cap_watts",
        "gauge",
        "Cap asked for: all CPU packages, or each GPU board.",
        ("device",),
        lambda node: _caps(node, enforced=False),
    ),
    _many(
        "joulie_agent_enforced_cap_watts",
        "gauge",
        "Cap that the device holds, read back: all CPU packages, or the highest of the GPU boards; without a limit its"
        " own maximum; absent where no target counts or where it is held by frequency and its watts are not known.",
        ("device",),
        lambda node: _caps(node, enforced=True),
    ),
    _many(
        "joulie_agent_control_result",
        "gauge",
        "1 for the result of a cap.",
        ("device", "result", "backend"),
        _results,
    ),
    _many(
        "joulie_agent_cap_missing",
        "gauge",
        "1 where a cap below the maximum is asked for and not in force, unless it is only simulated.",
        ("device",),
        _missing,
    ),
    _one(
        "joulie_agent_drift_corrections_total",
        "counter",
        "Changes to caps from outside that were put back.",
        lambda node: node.control.corrections_total if node.control else 0,
    ),
    _one(
        "joulie_agent_journal_entries",
        "gauge",
        "Values in the journal, waiting to be restored.",
        lambda node: len(node.journal.entries),
    ),
    _one(
        "joulie_agent_unrestored",
        "gauge",
        "Values that hold a cap which is no longer wanted and could not be restored yet.",
        lambda node: node.left,
    ),
    _one(
        "joulie_agent_restore_failures_total",
        "counter",
        "Failed restores; each is retried.",
        lambda node: node.restore_failures,
    ),
    _one(
        "joulie_agent_let_go",
        "gauge",
        "1 while nothing is capped because there is no target, or because the lease ended.",
        lambda node: int(node.verdict is not None and node.verdict.act == "restore" and not node.budget.holds),
    ),
    _one(
        "joulie_agent_budget_held",
        "gauge",
        "1 while an order of a power budget holds the node: nothing but a newer one raises its caps.",
        lambda node: int(node.budget.holds),
    ),
    _one(
        "joulie_agent_budget_order",
        "gauge",
        "Number of the budget order that the node follows; absent without one.",
        lambda node: node.budget.order,
    ),
    _one(
        "joulie_agent_budget_in_contact",
        "gauge",
        "1 while the operator's budget loop is in contact; otherwise failsafe caps hold. Absent without an order.",
        lambda node: int(node.in_contact) if node.budget.holds else None,
    ),
    _one(
        "joulie_agent_last_tick_timestamp_seconds",
        "gauge",
        "When the node was last checked.",
        lambda node: node.last_tick_at_s,
    ),
)

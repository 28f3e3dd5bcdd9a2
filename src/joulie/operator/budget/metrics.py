"""Metrics of budgets: one series a group, from the last turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from joulie.control.budget.cycle import BudgetTurn
from joulie.metrics import Described, Instruments, head

_GROUPS: Mapping[str, str] = {
    "limit_watts": "Limit in force of each group.",
    "allocated_watts": "The most that a group's nodes may draw now, what no cap limits included.",
    "measured_watts": "What a group's nodes draw, where all of them or their meter is measured; the larger of both.",
    "devices_watts": "What CPUs and GPUs of a group's nodes draw, where all of them are measured.",
    "nodes": "Nodes of a group.",
    "floor_watts": "The least that a group's nodes can be held to.",
    "missing_watts": "What a group lacks for the floors of its nodes.",
    "unconfirmed_nodes": "Nodes of a group without a confirmed cap.",
    "meter_share": "Part of a group's limit that its meter leaves to caps; only with spec.meter.",
    "meter_lost": "1 where a group's meter does not count: it shows nothing, or what cannot be; only with spec.meter.",
}


class BudgetMetrics:
    """What Prometheus scrapes of budgets (docs/reference/metrics.md)."""

    def __init__(self) -> None:
        self.made = made = Instruments("joulie_budget")
        self.orders = made.counter("orders", "Orders written into twins.")
        self.order_errors = made.counter("order_errors", "Orders that could not be written.")
        self.errors = made.counter("turn_errors", "Turns of the budget loop that failed.")
        self.raises = made.gauge("raises_allowed", "1 where this leader may raise caps: it has listed everything.")
        self.turn_seconds = made.histogram(
            "turn_duration_seconds", "Duration of one turn of the budget loop.", (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
        )
        self._series: dict[str, list[str]] = {}

    def show(self, turn: BudgetTurn | None) -> None:
        """Shows this turn from now on; None: nothing, for only the leader knows."""
        self._series = {name: [] for name in _GROUPS}
        for labels, values in _group_values(turn):
            for name, value in values.items():
                if value is not None:
                    self._series[name].append(f"joulie_budget_{name}{labels} {value}\n")

    def pieces(self) -> Iterator[bytes]:
        yield self.made.page()
        for name, meaning in _GROUPS.items():
            if lines := self._series.get(name):
                yield (head(f"joulie_budget_{name}", "gauge", meaning) + "".join(lines)).encode()

    def described(self) -> list[Described]:
        of_groups = [
            Described(f"joulie_budget_{name}", "gauge", meaning, ("budget", "group"))
            for name, meaning in _GROUPS.items()
        ]
        return [*self.made.described, *of_groups]


def _group_values(turn: BudgetTurn | None) -> Iterable[tuple[str, dict[str, float | None]]]:
    if turn is None:
        return
    allocation = turn.plan.allocation
    rows = {name: row for row, name in enumerate(allocation.groups.names)}
    devices_w = {each.member.name: each.devices_w for each in turn.members}
    for report in turn.reports:
        for group, status in zip(report.groups, report.statuses, strict=True):
            row = rows.get(group.name)
            missing_w = 0.0 if row is None else float(allocation.missing_w[row]) * group.limit.share
            open_nodes = 0 if row is None else sum(_is_open(turn, node) for node in group.nodes)
            yield (
                f'{{budget="{group.budget}",group="{group.value}"}}',
                {
                    "limit_watts": status.limit_watts,
                    "allocated_watts": status.allocated_watts,
                    "measured_watts": status.measured_watts,
                    "devices_watts": _sum([devices_w.get(node) for node in group.nodes]),
                    "nodes": status.nodes,
                    "floor_watts": status.floor_watts,
                    "missing_watts": missing_w,
                    "unconfirmed_nodes": open_nodes,
                    "meter_share": None if group.meter is None else group.meter.share,
                    "meter_lost": None if group.meter is None else float(bool(group.meter.lost)),
                },
            )


def _is_open(turn: BudgetTurn, node: str) -> bool:
    standing = turn.plan.standing.get(node)
    return standing is None or standing.standing != "confirmed"


def _sum(watts: Sequence[float | None]) -> float | None:
    """None where one of them is not known."""
    known = [each for each in watts if each is not None]
    return sum(known) if len(known) == len(watts) else None

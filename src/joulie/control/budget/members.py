"""The nodes under budgets as a snapshot shows them: how much each asks for, how important that is, what it may hold."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from msgspec import Struct, field

from joulie.catalogue.lookup import Catalogue
from joulie.control.budget.allocation import NO_WORK, OTHER_WORK, PERFORMANCE_WORK
from joulie.control.budget.envelopes import DEMAND_MARGIN, Envelope, Pair, ceiling_of, envelope_of
from joulie.control.budget.memory import Member
from joulie.control.budget.messages import confirmation_in, order_in
from joulie.control.caps import caps_as_written
from joulie.control.classify import is_performance_only
from joulie.control.cycle import BUILTIN_CATALOGUE
from joulie.control.plan import PINNED, Assignment, Plan
from joulie.model.api import NodeTwin
from joulie.model.names import PERFORMANCE
from joulie.model.snapshot import Node, Pod, Snapshot, Utilisation
from joulie.physics import power
from joulie.physics.hardware import Machine, machine_of
from joulie.settings import DecisionSettings, MarginalSettings

MIN_IDLE_SHARE = 0.1  # of the maximum: boards without work draw at least this
BUSY_SHARE = 0.02  # of the maximum: pods that ask for less than this are what runs on every node


class BudgetInput(Struct, frozen=True):
    """What a turn of the budget loop is decided from.

    The plan may be older than the snapshot: a node that it does not know has all that its twin allows.
    """

    snapshot: Snapshot
    plan: Plan
    settings: DecisionSettings
    now_s: float
    catalogue: Catalogue = BUILTIN_CATALOGUE
    in_flight: Mapping[str, Pair] = field(default_factory=dict)  # by node: written, but not answered yet
    monotonic_s: float | None = None  # for durations, which no change of the clock may shorten; None: as now_s

    def machine(self, name: str, assignment: Assignment | None) -> Machine:
        if assignment is not None:
            return assignment.machine
        node = self.snapshot.nodes.get(name) or Node(name, {})
        return machine_of(node, self.snapshot.hardware.get(name), self.settings.hardware, self.catalogue)

    def devices_w(self, machine: Machine) -> float | None:
        """What CPUs and GPUs draw, where it was measured lately; an estimate from requests is no measurement."""
        reading = self.snapshot.telemetry.power.get(machine.node)
        if reading is None or reading.measured_at_s < self.now_s - self.settings.twin.power_max_age_s:
            return None
        return reading.power_w if power.is_believable(reading.power_w, machine.max_w) else None


class PodLoad(Struct):
    """What runs on one node, and what the pods that were bound since its power was read will add."""

    performance_pods: int = 0
    pods_w: float = 0.0
    gpus: float = 0.0  # that pods hold
    bound_cpu_w: float = 0.0
    bound_gpu_w: float = 0.0


class MeasuredNode(Struct, frozen=True):
    """A member as it is shared out, with what its devices draw where that is measured."""

    member: Member
    devices_w: float | None
    max_w: float


def members_of(
    names: Iterable[str], groups: Mapping[str, Sequence[str]], in_scope: Container[str], given: BudgetInput
) -> list[MeasuredNode]:
    """Every named node or twin, by name; `groups` are the names of the groups that hold each of them."""
    assigned = {each.node: each for each in given.plan.assignments}
    machines = {name: given.machine(name, assigned.get(name)) for name in sorted(names)}
    loads = _loads(machines, given)
    return [
        _member(machine, assigned.get(name), loads[name], given, tuple(groups.get(name, ())), name in in_scope)
        for name, machine in machines.items()
    ]


def weight_of(performance_pods: int, pods: int, *, is_pinned_to_performance: bool = False) -> int:
    """Performance-only pods and pins to performance first, then other work, then none."""
    if performance_pods or is_pinned_to_performance:
        return PERFORMANCE_WORK
    return OTHER_WORK if pods else NO_WORK


def demand_of(
    envelope: Envelope,
    ceiling: Pair,
    devices_w: float | None,
    used: Utilisation | None,
    bound_w: Pair,
    gpus_held: float | None = None,
) -> Pair:
    """What its devices want to draw, each: a little more than they draw now, and what pods bound just now will add.

    `devices_w` is what CPUs and GPUs draw together and `bound_w` what the new pods add to each kind. Power is split by
    how busy the devices are, or by their size where that is not known. A node that is not measured wants all it may
    have: else it would be held to what it was held to before.

    All boards of a node have the same cap, so what boards want is what those want that pods hold (`gpus_held`): on a
    node of which half the boards idle, the mean would cap the other half far below what they draw.
    """
    if devices_w is None:
        return ceiling
    busy = Pair(*(1.0 if share is None else share for share in ((used.cpu, used.gpu) if used else (None, None))))
    draws = [
        count * (low + max(0.0, min(share, 1.0)) * (high - low))
        for count, low, high, share in zip(envelope.devices, envelope.floor, envelope.top, busy, strict=True)
    ]
    scale = devices_w / total if (total := sum(draws)) > 0 else 0.0
    boards = envelope.devices.gpu_w_each
    held = boards if not gpus_held else min(max(gpus_held, 1.0), boards)
    idle_w = min(MIN_IDLE_SHARE * envelope.top.gpu_w_each * (boards - held), draws[1] * scale)
    cpu, gpu = (
        (draw * DEMAND_MARGIN + added_w) / count if count else 0.0
        for draw, added_w, count in zip(
            (draws[0] * scale, draws[1] * scale - idle_w), bound_w, (envelope.devices[0], held), strict=True
        )
    )
    return Pair(cpu, gpu)


def _member(
    machine: Machine,
    assignment: Assignment | None,
    load: PodLoad,
    given: BudgetInput,
    groups: tuple[str, ...],
    is_controlled: bool,
) -> MeasuredNode:
    name, snapshot = machine.node, given.snapshot
    node, twin = snapshot.nodes.get(name), snapshot.twins.get(name)
    envelope = envelope_of(node or Node(name, {}), machine)
    caps = assignment.caps if assignment is not None else caps_as_written(machine, twin)
    ceiling, devices_w = ceiling_of(machine, caps, envelope), given.devices_w(machine)
    bound_w = Pair(load.bound_cpu_w, load.bound_gpu_w)
    confirmation = confirmation_in(twin) if twin is not None else None
    pinned = assignment is not None and assignment.chosen_by == PINNED and assignment.profile == PERFORMANCE
    busy = int(load.pods_w > BUSY_SHARE * machine.max_w)
    member = Member(
        name,
        _uid(twin),
        node.boot_id if node is not None else confirmation.boot_id if confirmation is not None else "",
        envelope,
        envelope.per_watt(rest_follows=True),
        groups,
        ceiling,
        demand_of(envelope, ceiling, devices_w, snapshot.telemetry.utilisation.get(name), bound_w, load.gpus),
        weight_of(load.performance_pods, busy, is_pinned_to_performance=pinned),
        is_controlled=is_controlled,
        has_left=node is None,
        order=order_in(twin) if twin is not None else None,
        confirmation=confirmation,
        in_flight=given.in_flight.get(name),
    )
    return MeasuredNode(member, devices_w, machine.max_w)


def _uid(twin: NodeTwin | None) -> str:
    return (twin.metadata.uid or "") if twin is not None else ""


def _loads(machines: Mapping[str, Machine], given: BudgetInput) -> dict[str, PodLoad]:
    """One pass over the pods."""
    snapshot, settings, now_s = given.snapshot, given.settings, given.now_s
    loads = {name: PodLoad() for name in machines}
    label, oldest_s = settings.plan.power_profile_label, now_s - settings.twin.power_max_age_s
    readings = snapshot.telemetry.power
    for pod in snapshot.pods:
        if pod.finished or (load := loads.get(pod.node)) is None:
            continue
        cpu_w, gpu_w = _added_w(pod, machines[pod.node], settings.marginal)
        load.pods_w += cpu_w + gpu_w
        load.gpus += pod.gpus
        load.performance_pods += is_performance_only(pod, label)
        reading = readings.get(pod.node)
        read_at_s = oldest_s if reading is None else reading.measured_at_s
        if pod.scheduled_at_s is not None and pod.scheduled_at_s >= read_at_s:
            load.bound_cpu_w += cpu_w
            load.bound_gpu_w += gpu_w
    return loads


def _added_w(pod: Pod, machine: Machine, settings: MarginalSettings) -> tuple[float, float]:
    cpu_share = min(1.0, pod.cpu_cores / machine.share_cores) if machine.share_cores else 0.0
    gpu_share = min(1.0, pod.gpus / machine.share_gpus) if machine.share_gpus else 0.0
    performance = pod.workload_class == PERFORMANCE
    gpu_coeff = settings.gpu_coeff_performance if performance else settings.gpu_coeff_standard
    return cpu_share * settings.cpu_coeff * machine.cpu_max_w, gpu_share * gpu_coeff * machine.gpu_max_w

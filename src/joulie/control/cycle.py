"""`decide`: a snapshot of the cluster in, a plan with reasons out. Operator, command line, demo and lab all call it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from reprlib import repr as shortened

from joulie.catalogue.lookup import Catalogue
from joulie.control.caps import caps_as_written, pinned_caps, profile_caps, watts_left_out
from joulie.control.density import densest_first, planning_densities
from joulie.control.pins import pins_in_force
from joulie.control.plan import PINNED, Assignment, Plan
from joulie.control.policies.interface import Choice, NodeView, Policy, PolicyView
from joulie.control.survey import MachineColumns, Survey, survey
from joulie.control.transitions import current_state, guarded_state
from joulie.control.twins import TwinRow, predict
from joulie.errors import PluginError
from joulie.model.names import DRAINING, ECO, PERFORMANCE
from joulie.model.snapshot import Node, Pin, Snapshot
from joulie.physics.cooling import CoolingModel
from joulie.physics.hardware import Machine, machine_of
from joulie.physics.plausibility import hardware_warnings
from joulie.settings import DecisionSettings, PlanSettings

BUILTIN_CATALOGUE = Catalogue()


def decide(
    snapshot: Snapshot,
    settings: DecisionSettings,
    now_s: float,
    *,
    policy: Policy,
    cooling: CoolingModel,
    catalogue: Catalogue = BUILTIN_CATALOGUE,
) -> Plan:
    """What every node in scope should be, and what its twin predicts. Pure: the same input gives the same plan."""
    in_scope = nodes_in_scope(snapshot.nodes, settings.plan)
    machines: list[Machine] = []
    doubts: list[str] = []
    for node in in_scope:
        hardware = snapshot.hardware.get(node.name)
        machines.append(machine_of(node, hardware, settings.hardware, catalogue))
        doubts += hardware_warnings(node, hardware)
    index = {node.name: row for row, node in enumerate(in_scope)}
    found = survey(
        snapshot.pods,
        index,
        MachineColumns.of(machines),
        settings.plan.power_profile_label,
        settings.marginal,
    )
    pins, warnings = pins_in_force(snapshot.pins, snapshot.nodes, index, now_s)
    assigned, order = _assign(snapshot, settings.plan, now_s, policy, in_scope, machines, found, pins)
    rows = [
        _twin_row(node, machine, assignment, snapshot, settings.plan)
        for node, machine, assignment in zip(in_scope, machines, assigned, strict=True)
    ]
    return Plan(
        policy=policy.name,
        demand=found.demand,
        assignments=tuple(assignment for row in order if (assignment := assigned[row]) is not None),
        left_alone=tuple(node.name for node in in_scope if node.unschedulable),
        twins=predict(rows, found.marginal_w_on, snapshot.telemetry, settings.twin, cooling, now_s),
        warnings=tuple(sorted([*warnings, *doubts])),
    )


def nodes_in_scope(nodes: Mapping[str, Node], settings: PlanSettings) -> list[Node]:
    """Nodes that the selector takes and that are not reserved, sorted by name; cordoned ones are in scope."""
    matches, reserved = settings.node_selector.matches, settings.reserved_label_key
    chosen = (node for node in nodes.values() if matches(node.labels) and node.labels.get(reserved) != "true")
    return sorted(chosen, key=lambda node: node.name)


def _assign(
    snapshot: Snapshot,
    settings: PlanSettings,
    now_s: float,
    policy: Policy,
    in_scope: Sequence[Node],
    machines: Sequence[Machine],
    found: Survey,
    pins: Mapping[str, Pin],
) -> tuple[list[Assignment | None], list[int]]:
    """The policy's choice for every eligible node, then pins, then the guard, then caps.

    The result is by row, with the rows in the policy's order beside it. Work is done in the order of the rows, because
    what was made together lies together in memory, and at thousands of nodes memory is what costs.
    """
    eligible = [row for row, node in enumerate(in_scope) if not node.unschedulable]
    densities = planning_densities([machines[row] for row in eligible])
    views = [
        _view(in_scope[row], machines[row], density, found.performance_pods_on[row], snapshot, settings)
        for row, density in zip(eligible, densities, strict=True)
    ]
    order = densest_first(densities)
    ranked = tuple([views[position] for position in order])
    choices = ask(policy, PolicyView(ranked, found.demand.performance_only, now_s, settings))
    assigned: list[Assignment | None] = [None] * len(in_scope)
    for row, view in zip(eligible, views, strict=True):
        pin = pins.get(view.name)
        assigned[row] = _assignment(view, machines[row], choices[view.name], pin, policy.name, settings)
    return assigned, [eligible[position] for position in order]


def _view(
    node: Node, machine: Machine, density: float, performance_pods: int, snapshot: Snapshot, settings: PlanSettings
) -> NodeView:
    twin = snapshot.twins.get(node.name)
    return NodeView(  # by position: there are many
        node.name,
        density,
        machine.family,
        node.labels,
        current_state(twin, node.labels, settings.power_profile_label),
        performance_pods,
        machine.cpu_max_w,
        machine.gpu_max_w,
        twin,
    )


def ask(policy: Policy, view: PolicyView) -> Mapping[str, Choice]:
    """The policy's plan, checked: a plug-in that leaves out a node or invents a profile must not reach hardware."""
    try:
        returned: object = policy.plan(view)
        plan = dict(returned) if isinstance(returned, Mapping) else None
    except Exception as error:  # whatever a plug-in raises is reported as its fault, in one line
        reason = " ".join(str(error).split())
        raise PluginError(f"policy {policy.name} failed: {type(error).__name__}: {reason}") from error
    if plan is None:
        raise PluginError(f"policy {policy.name} returned {_shown(returned)}: expected a Choice for each node, by name")
    for node in view.nodes:
        choice = plan.get(node.name)
        if type(choice) is not Choice:
            plan[node.name] = choice = _choice_of(policy, node.name, choice)
        if choice.profile not in (PERFORMANCE, ECO):
            given = f"profile {choice.profile!r}"
            raise PluginError(f"policy {policy.name} gave {given} for node {node.name}: expected performance or eco")
    return plan


def _choice_of(policy: Policy, node: str, given: object) -> Choice:
    """A plain pair will do."""
    if given is None:
        raise PluginError(f"policy {policy.name} gave no choice for node {node}: expected performance or eco")
    if not isinstance(given, tuple | list) or len(given) != len(Choice._fields):
        wanted = 'a Choice, as in Choice("eco", "why")'
        raise PluginError(f"policy {policy.name} returned {_shown(given)} for node {node}: expected {wanted}")
    return Choice(*given)


def _shown(value: object) -> str:
    """In one short line, whatever it is."""
    return " ".join(shortened(value).split())


def _assignment(
    view: NodeView, machine: Machine, choice: Choice, pin: Pin | None, policy: str, settings: PlanSettings
) -> Assignment:
    wanted = choice.profile if pin is None else pin.profile
    state = guarded_state(wanted, view.performance_pods)
    reason = choice.reason if pin is None else f"pinned to {pin.profile} by NodePowerProfile/{pin.name}"
    if state == DRAINING:
        pods = f"{view.performance_pods} performance-only pod{'s' * (view.performance_pods > 1)}"
        reason = f"eco wanted, but {pods} still here, so it drains at performance caps; {reason}"
        caps = profile_caps(machine, PERFORMANCE, settings)
    elif pin is not None:
        caps = pinned_caps(machine, pin, settings)
        if left_out := watts_left_out(machine, pin):
            reason = f"{reason}; {left_out}"
    else:
        caps = profile_caps(machine, wanted, settings)
    return Assignment(machine, wanted, state, view.state, view.density, caps, reason, PINNED if pin else policy)


def _twin_row(
    node: Node, machine: Machine, assignment: Assignment | None, snapshot: Snapshot, settings: PlanSettings
) -> TwinRow:
    written = snapshot.twins.get(node.name)
    if assignment is None:  # cordoned: left as it is
        state = current_state(written, node.labels, settings.power_profile_label)
        return TwinRow(node, machine, caps_as_written(machine, written), state, written)
    return TwinRow(node, machine, assignment.caps, assignment.state, written)

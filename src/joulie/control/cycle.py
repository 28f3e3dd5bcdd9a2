"""`decide`: a snapshot of the cluster in, a plan with reasons out. Operator, command line, demo and lab all call it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from joulie.catalogue.lookup import Catalogue
from joulie.control.caps import caps_as_written, pinned_caps, profile_caps, watts_left_out
from joulie.control.density import densest_first
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
from joulie.physics.hardware import Machine, label_warnings, machine_of
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
    machines = [machine_of(node, snapshot.hardware.get(node.name), settings.hardware, catalogue) for node in in_scope]
    index = {node.name: row for row, node in enumerate(in_scope)}
    found = survey(
        snapshot.pods,
        index,
        MachineColumns.of(machines),
        settings.plan.power_profile_label,
        settings.marginal,
    )
    pins, warnings = pins_in_force(snapshot.pins, snapshot.nodes, index, now_s)
    assignments = _assign(snapshot, settings.plan, now_s, policy, in_scope, machines, found, pins)
    by_node = {assignment.node: assignment for assignment in assignments}
    rows = [
        _twin_row(node, machine, by_node.get(node.name), snapshot, settings.plan)
        for node, machine in zip(in_scope, machines, strict=True)
    ]
    return Plan(
        policy=policy.name,
        assignments=assignments,
        left_alone=tuple(node.name for node in in_scope if node.unschedulable),
        twins=predict(rows, found.marginal_w_on, snapshot.telemetry, settings.twin, cooling, now_s),
        warnings=tuple(sorted([*warnings, *(line for node in in_scope for line in label_warnings(node))])),
    )


def nodes_in_scope(nodes: Mapping[str, Node], settings: PlanSettings) -> list[Node]:
    """Nodes that the selector takes and nobody reserved, sorted by name; cordoned ones are in scope."""
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
) -> tuple[Assignment, ...]:
    """The policy's choice for every eligible node, then pins, then the guard, then caps."""
    holding = {node.name: count for node, count in zip(in_scope, found.performance_pods_on, strict=True)}
    eligible = [m for node, m in zip(in_scope, machines, strict=True) if not node.unschedulable]
    ranked = densest_first(eligible)
    views = tuple(
        NodeView(
            name=machine.node,
            density=density,
            family=machine.family,
            labels=(labels := snapshot.nodes[machine.node].labels),
            state=current_state(snapshot.twins.get(machine.node), labels, settings.power_profile_label),
            performance_pods=holding[machine.node],
            cpu_max_w=machine.cpu_max_w,
            gpu_max_w=machine.gpu_max_w,
            twin=snapshot.twins.get(machine.node),
        )
        for machine, density in ranked
    )
    choices = _ask(policy, PolicyView(views, found.performance_pods, now_s, settings))
    return tuple(
        _assignment(view, machine, choices[view.name], pins.get(view.name), policy.name, settings)
        for view, (machine, _) in zip(views, ranked, strict=True)
    )


def _ask(policy: Policy, view: PolicyView) -> Mapping[str, Choice]:
    """The policy's plan, checked: a plug-in that leaves out a node or invents a profile must not reach hardware."""
    try:
        choices = {name: Choice(*choice) for name, choice in policy.plan(view).items()}
    except Exception as error:  # whatever a plug-in raises is its fault, and said in one line
        reason = " ".join(str(error).split())
        raise PluginError(f"policy {policy.name} failed: {type(error).__name__}: {reason}") from error
    for node in view.nodes:
        choice = choices.get(node.name)
        if choice is None or choice.profile not in (PERFORMANCE, ECO):
            given = "no choice" if choice is None else f"profile {choice.profile!r}"
            raise PluginError(f"policy {policy.name} gave {given} for node {node.name}: expected performance or eco")
    return choices


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

"""Which pods must never run on an eco node (SPEC 4, "Performance-only pods")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from joulie.model.names import ECO, PERFORMANCE
from joulie.model.selector import Requirement
from joulie.model.snapshot import Pod


def is_performance_only(pod: Pod, label_key: str) -> bool:
    """Whether the pod says so by its class, or rules eco out by its node selector or required affinity."""
    if pod.workload_class == PERFORMANCE:
        return True
    if pod.node_selector is None and pod.required_terms is None:
        return False
    return excludes_eco(pod.node_selector, pod.required_terms, label_key)


def excludes_eco(
    node_selector: Mapping[str, str] | None,
    required_terms: Sequence[Sequence[Requirement]] | None,
    label_key: str,
) -> bool:
    """Whether selector and terms speak of the power profile and can never be met by a node labelled `eco`.

    Selector and terms must both be met; terms are ORed, the requirements inside a term ANDed, and requirements on
    other labels count as possible. No term at all (`()`) is met by no node. A pod that never mentions the label is not
    performance-only, even if no node can satisfy it: it has no wish about power.
    """
    wanted = node_selector.get(label_key) if node_selector else None
    mentioned = wanted is not None
    if mentioned and wanted != ECO:
        return True
    if required_terms is None:
        return False
    eco_node = {label_key: ECO}
    for term in required_terms:
        on_label = [requirement for requirement in term if requirement.key == label_key]
        mentioned = mentioned or bool(on_label)
        if all(requirement.matches(eco_node) for requirement in on_label):
            return False
    return mentioned

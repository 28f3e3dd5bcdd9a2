"""What pods ask of a node's profile: performance-only, eco-only, or either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from joulie.model.names import DRAINING_LABEL, ECO, PERFORMANCE
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
    performance-only, even if no node can satisfy it: it states no preference about power.

    A second term for nodes that are draining changes nothing: it lets a kubelet that restarts keep the pod while its
    node drains, and such a node keeps full power until the pod has left.
    """
    wanted = node_selector.get(label_key) if node_selector else None
    mentioned = wanted is not None
    if mentioned and wanted != ECO:
        return True
    if required_terms is None:
        return False
    eco_node = {label_key: ECO}
    excluded = wants_draining = False
    for term in required_terms:
        on_label = [requirement for requirement in term if requirement.key == label_key]
        mentioned = mentioned or bool(on_label)
        if not all(requirement.matches(eco_node) for requirement in on_label):
            excluded = True
        elif _takes_only_draining(term):
            wants_draining = True
        else:
            return False
    return excluded if wants_draining else mentioned


def _takes_only_draining(term: Sequence[Requirement]) -> bool:
    """Whether no node that has settled meets the term: neither one that says so, nor one without the label."""
    on_draining = [requirement for requirement in term if requirement.key == DRAINING_LABEL]
    settled: tuple[dict[str, str], ...] = ({DRAINING_LABEL: "false"}, {})
    return not any(all(requirement.matches(labels) for requirement in on_draining) for labels in settled)


def is_eco_only(pod: Pod, label_key: str) -> bool:
    """Whether selector or required affinity let the pod run on eco nodes and on no other."""
    selector, terms = pod.node_selector, pod.required_terms
    if (selector is None and terms is None) or is_performance_only(pod, label_key):
        return False
    if selector and label_key in selector:
        return True  # `eco`: any other value had made it performance-only
    performance_node = {label_key: PERFORMANCE}
    on_label = [[asked for asked in term if asked.key == label_key] for term in terms or ()]
    return any(on_label) and not any(all(asked.matches(performance_node) for asked in term) for term in on_label)

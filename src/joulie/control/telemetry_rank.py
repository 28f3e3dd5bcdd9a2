"""Which TelemetryProfiles apply to a node, the closest first. Pure.

A profile for the node beats one for a selector, which beats one for the cluster. Of several of equal rank the oldest
wins, then the first by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from joulie.model.api import TelemetryProfile

_NODE, _SELECTOR, _CLUSTER = 0, 1, 2


class RankedProfiles:
    """Profiles in their order; those of one node by its name, so that thousands of them cost little."""

    def __init__(self, profiles: Iterable[TelemetryProfile]) -> None:
        self._of_node: dict[str, list[TelemetryProfile]] = {}
        self._general: list[TelemetryProfile] = []
        for profile in sorted(profiles, key=_order):
            target = profile.spec.target
            if target.scope == "node":
                self._of_node.setdefault(target.node_name or "", []).append(profile)
            else:
                self._general.append(profile)

    def speaking(self, node: str, labels: Mapping[str, str]) -> list[TelemetryProfile]:
        """Those that concern this node."""
        return [*self._of_node.get(node, ()), *(each for each in self._general if selects(each, labels))]


def selects(profile: TelemetryProfile, labels: Mapping[str, str]) -> bool:
    """Whether a profile that is not for one node is for nodes with these labels."""
    selector = profile.spec.target.node_selector
    wanted = (selector and selector.match_labels) or {}
    return all(labels.get(key) == value for key, value in wanted.items())


def _order(profile: TelemetryProfile) -> tuple[int, str, str]:
    return _rank(profile), profile.metadata.creation_timestamp or "", profile.metadata.name


def _rank(profile: TelemetryProfile) -> int:
    target = profile.spec.target
    if target.scope == "node":
        return _NODE
    return _SELECTOR if target.node_selector is not None and target.node_selector.match_labels else _CLUSTER

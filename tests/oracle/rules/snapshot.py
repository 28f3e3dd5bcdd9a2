"""The cluster as plain collections: raw objects sorted by kind and by the node that they speak of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.rules.selector import matches
from tests.oracle.rules.settings import Settings
from tests.oracle.rules.values import Obj, dig, items, mapping, text


@dataclass
class Snapshot:
    """Raw objects by kind; hardware and twins by node name."""

    nodes: dict[str, Obj] = field(default_factory=dict)
    pods: list[Obj] = field(default_factory=list)
    hardware: dict[str, Obj] = field(default_factory=dict)
    twins: dict[str, Obj] = field(default_factory=dict)
    pins: list[Obj] = field(default_factory=list)


def read_snapshot(objects: Iterable[Obj]) -> Snapshot:
    """Sort raw objects; kinds that no rule uses are skipped, lists are unfolded."""
    snapshot = Snapshot()
    for obj in objects:
        kind = obj.get("kind")
        if kind == "Node":
            snapshot.nodes[name_of(obj)] = obj
        elif kind == "Pod":
            snapshot.pods.append(obj)
        elif kind == "NodeHardware":
            snapshot.hardware[name_of(obj)] = obj
        elif kind == "NodeTwin":
            snapshot.twins[text(dig(obj, "spec", "nodeName")) or name_of(obj)] = obj
        elif kind == "NodePowerProfile":
            snapshot.pins.append(obj)
        elif kind == "List":
            inner = read_snapshot(items(obj.get("items")))
            snapshot.nodes |= inner.nodes
            snapshot.pods += inner.pods
            snapshot.hardware |= inner.hardware
            snapshot.twins |= inner.twins
            snapshot.pins += inner.pins
    return snapshot


def name_of(obj: Obj) -> str:
    """``metadata.name``."""
    return str(dig(obj, "metadata", "name"))


def labels_of(obj: Obj) -> dict[str, Any]:
    """``metadata.labels``, empty when absent."""
    return mapping(dig(obj, "metadata", "labels"))


def in_scope(node: Obj, settings: Settings) -> bool:
    """Selected and not reserved."""
    labels = labels_of(node)
    return matches(settings.node_selector, labels) and labels.get(settings.reserved_key) != "true"


def is_cordoned(node: Obj) -> bool:
    """``spec.unschedulable``: in scope, yet not planned."""
    return dig(node, "spec", "unschedulable") is True


def scope_names(snapshot: Snapshot, settings: Settings) -> list[str]:
    """Names of all nodes in scope, cordoned ones included, sorted."""
    return sorted(name for name, node in snapshot.nodes.items() if in_scope(node, settings))


def eligible_names(snapshot: Snapshot, settings: Settings) -> list[str]:
    """Names of the nodes a policy plans over, sorted."""
    return [name for name in scope_names(snapshot, settings) if not is_cordoned(snapshot.nodes[name])]

"""Which pin applies to which node: the oldest that has not expired, then by name.

The rules: docs/reference/behaviour.md, 'Pins'.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from typing import Final, Literal, NamedTuple

from joulie.model.snapshot import Node, Pin

PIN_ACCEPTED: Final = "Accepted"


class PinVerdict(NamedTuple):
    """Whether a pin applies to its node: a reason for programs, and one for people."""

    pin: Pin
    reason: Literal["Accepted", "Expired", "NodeUnknown", "OutOfScope", "Cordoned", "Shadowed"]
    message: str = ""


def pins_in_force(
    pins: Iterable[Pin], nodes: Mapping[str, Node], in_scope: Container[str], now_s: float
) -> tuple[dict[str, Pin], list[str]]:
    """The pin of each node that is planned, and a warning for each pin that can do nothing."""
    verdicts = pin_verdicts(pins, nodes, in_scope, now_s)
    chosen = {verdict.pin.node: verdict.pin for verdict in verdicts if verdict.reason == PIN_ACCEPTED}
    silent = (PIN_ACCEPTED, "Expired")
    return chosen, [f"NodePowerProfile/{pin.name}: {why}" for pin, reason, why in verdicts if reason not in silent]


def pin_verdicts(
    pins: Iterable[Pin], nodes: Mapping[str, Node], in_scope: Container[str], now_s: float
) -> list[PinVerdict]:
    """All pins, the oldest first."""
    chosen: dict[str, Pin] = {}
    return [_verdict(pin, chosen, nodes, in_scope, now_s) for pin in sorted(pins, key=_age_order)]


def _verdict(
    pin: Pin, chosen: dict[str, Pin], nodes: Mapping[str, Node], in_scope: Container[str], now_s: float
) -> PinVerdict:
    if pin.expires_at_s is not None and pin.expires_at_s <= now_s:
        return PinVerdict(pin, "Expired", "spec.expiresAt has passed")
    if pin.node not in nodes:
        return PinVerdict(pin, "NodeUnknown", f"spec.nodeName: {pin.node} is not in the cluster, so it is ignored")
    if pin.node not in in_scope:
        return PinVerdict(pin, "OutOfScope", f"spec.nodeName: {pin.node} is out of scope, so it is ignored")
    if nodes[pin.node].unschedulable:
        return PinVerdict(pin, "Cordoned", f"{pin.node} is cordoned, so it is left as it is")
    if pin.node in chosen:
        return PinVerdict(pin, "Shadowed", f"{pin.node} is pinned by the older {chosen[pin.node].name} already")
    chosen[pin.node] = pin
    return PinVerdict(pin, PIN_ACCEPTED)


def _age_order(pin: Pin) -> tuple[float, str]:
    return (-math.inf if pin.created_at_s is None else pin.created_at_s, pin.name)


def pin_in_force(pins: Iterable[Pin], node: str, now_s: float) -> Pin | None:
    """The pin that applies to the node, in scope or not."""
    chosen, _ = pins_in_force([p for p in pins if p.node == node], {node: Node(node, {})}, {node}, now_s)
    return chosen.get(node)

"""Which pin speaks for which node (SPEC 13): the oldest that has not expired, then by name."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping

from joulie.model.snapshot import Node, Pin


def pins_in_force(
    pins: Iterable[Pin], nodes: Mapping[str, Node], in_scope: Container[str], now_s: float
) -> tuple[dict[str, Pin], list[str]]:
    """The pin of each node that is planned, and a warning for each pin that can do nothing."""
    chosen: dict[str, Pin] = {}
    warnings: list[str] = []
    for pin in sorted(pins, key=_age_order):
        if pin.expires_at_s is not None and pin.expires_at_s <= now_s:
            continue
        if pin.node not in in_scope:
            where = "out of scope" if pin.node in nodes else "not in the cluster"
            warnings.append(f"NodePowerProfile/{pin.name}: spec.nodeName: {pin.node} is {where}, so it is ignored")
        elif nodes[pin.node].unschedulable:
            warnings.append(f"NodePowerProfile/{pin.name}: {pin.node} is cordoned, so it is left as it is")
        elif pin.node in chosen:
            older = chosen[pin.node].name
            warnings.append(f"NodePowerProfile/{pin.name}: {pin.node} is pinned by the older {older} already")
        else:
            chosen[pin.node] = pin
    return chosen, warnings


def _age_order(pin: Pin) -> tuple[float, str]:
    return (-math.inf if pin.created_at_s is None else pin.created_at_s, pin.name)

"""What a node is to be held to: its twin's spec, or where no operator made a twin, the pin of a person. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from joulie.model.api import NodeTwin
from joulie.model.names import ECO
from joulie.model.rfc3339 import readable_time_s
from joulie.model.snapshot import Pin
from joulie.settings import AgentSettings
from joulie.settings.agent import PinSettings

PINNED = "pinned"


class Target(Struct, frozen=True):
    """Caps that somebody wants on a node; watts win over percent, and what is None is not capped."""

    profile: str
    chosen_by: str  # the policy, or `pinned`
    origin: Literal["twin", "pin"]
    cpu_w: float | None = None  # all packages together
    cpu_pct: float | None = None
    gpu_w_each: float | None = None
    gpu_pct: float | None = None
    has_live_pin: bool = False  # then a twin that nobody refreshes still holds
    refreshed_at_s: float | None = None  # when the operator last spoke; None: it is not known


def target_of(
    node: str,
    labels: Mapping[str, str],
    twin: NodeTwin | None,
    pins: Iterable[Pin],
    settings: AgentSettings,
    now_s: float,
) -> Target | None:
    """The target in force; None: nobody wants a cap on this node.

    A twin without a profile (a cordoned node that is new) asks for nothing, and then no pin speaks in its place: where
    there is an operator, the operator decides what a pin means.
    """
    pin = live_pin(node, pins, now_s)
    if twin is not None:
        return _of_twin(twin, pin)
    if pin is None or not settings.pool_node_selector.matches(labels):
        return None
    if labels.get(settings.reserved_label_key) == "true":
        return None
    return _of_pin(pin, settings.pins)


def live_pin(node: str, pins: Iterable[Pin], now_s: float) -> Pin | None:
    """Of the pins that name the node and have not ended: the oldest, then the first by name (SPEC 13)."""
    live = [pin for pin in pins if pin.node == node and (pin.expires_at_s is None or pin.expires_at_s > now_s)]
    return min(live, key=_age_order, default=None)


def _age_order(pin: Pin) -> tuple[float, str]:
    return (-math.inf if pin.created_at_s is None else pin.created_at_s, pin.name)


def _of_twin(twin: NodeTwin, pin: Pin | None) -> Target | None:
    spec = twin.spec
    if spec is None or spec.profile is None:
        return None
    cpu, gpu = spec.cpu, spec.gpu.power_cap if spec.gpu else None
    return Target(
        profile=spec.profile,
        chosen_by=(spec.policy and spec.policy.name) or "unknown",
        origin="twin",
        cpu_w=cpu.package_power_cap_watts if cpu else None,
        cpu_pct=cpu.package_power_cap_pct_of_max if cpu else None,
        gpu_w_each=gpu.cap_watts_per_gpu if gpu else None,
        gpu_pct=gpu.cap_pct_of_max if gpu else None,
        has_live_pin=pin is not None,
        refreshed_at_s=_refreshed_at_s(twin),
    )


def _of_pin(pin: Pin, settings: PinSettings) -> Target:
    eco = pin.profile == ECO
    cpu_said = pin.cpu_cap_w is not None or pin.cpu_cap_pct is not None
    gpu_said = pin.gpu_cap_w is not None or pin.gpu_cap_pct is not None
    cpu_usual = settings.cpu_eco_cap_pct if eco else settings.cpu_performance_cap_pct
    gpu_usual = settings.gpu_eco_cap_pct if eco else settings.gpu_performance_cap_pct
    return Target(
        profile=pin.profile,
        chosen_by=PINNED,
        origin="pin",
        cpu_w=pin.cpu_cap_w,
        cpu_pct=pin.cpu_cap_pct if cpu_said else cpu_usual,
        gpu_w_each=pin.gpu_cap_w,
        gpu_pct=pin.gpu_cap_pct if gpu_said else gpu_usual,
        has_live_pin=True,
    )


def _refreshed_at_s(twin: NodeTwin) -> float | None:
    """When the operator last wrote; a twin that has no status yet is as old as itself."""
    return readable_time_s((twin.status.last_updated if twin.status else None) or twin.metadata.creation_timestamp)

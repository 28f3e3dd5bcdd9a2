"""What a node should be held to: its twin's spec, or where no operator made a twin, a pin. Pure."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from joulie.model.api import NodeTwin
from joulie.model.api.twin import NodeTwinSpec
from joulie.model.names import ECO
from joulie.model.snapshot import Pin
from joulie.settings import AgentSettings
from joulie.settings.agent import PinSettings

PINNED = "pinned"


class CapTarget(Struct, frozen=True):
    """The caps wanted on a node; watts win over percent, and what is None is not capped."""

    profile: str
    chosen_by: str  # the policy, or `pinned`
    origin: Literal["twin", "pin"]
    cpu_w_each: float | None = None  # each package
    cpu_pct: float | None = None
    gpu_w_each: float | None = None
    gpu_pct: float | None = None
    kept_by_pin: bool = False  # a live pin asks for exactly this, so it holds even if no operator refreshes the twin
    refresh: str = ""  # changes with each write of the operator, and with nothing else
    under_budget: bool = False  # no device may exceed its cap, not even for moments
    never_raise: bool = False  # caps that are in force and lower stay


def target_of(
    node: str,
    labels: Mapping[str, str],
    twin: NodeTwin | None,
    pins: Iterable[Pin],
    settings: AgentSettings,
    now_s: float,
    *,
    has_gpus: bool = True,
) -> CapTarget | None:
    """The target in force; None: no cap is wanted on this node.

    A twin without a profile (a new node that is cordoned) asks for nothing, and no pin takes its place: where there is
    an operator, the operator decides what a pin means.
    """
    pin = live_pin(node, pins, now_s)
    if twin is not None:
        return _of_twin(twin, pin)
    if pin is None or not is_in_scope(labels, settings):
        return None
    return _of_pin(pin, settings.pins, has_gpus)


def is_in_scope(labels: Mapping[str, str], settings: AgentSettings) -> bool:
    """Whether a pin may speak for a node with these labels where no operator decides it."""
    reserved = labels.get(settings.reserved_label_key) == "true"
    return settings.pool_node_selector.matches(labels) and not reserved


def live_pin(node: str, pins: Iterable[Pin], now_s: float) -> Pin | None:
    """Of the pins that name the node and have not ended: the oldest, then the first by name."""
    live = [pin for pin in pins if pin.node == node and (pin.expires_at_s is None or pin.expires_at_s > now_s)]
    return min(live, key=_age_order, default=None)


def _age_order(pin: Pin) -> tuple[float, str]:
    return (-math.inf if pin.created_at_s is None else pin.created_at_s, pin.name)


def _of_twin(twin: NodeTwin, pin: Pin | None) -> CapTarget | None:
    spec = twin.spec
    if spec is None or spec.profile is None:
        return None
    cpu, gpu = spec.cpu, spec.gpu.power_cap if spec.gpu else None
    return CapTarget(
        profile=spec.profile,
        chosen_by=(spec.policy and spec.policy.name) or "unknown",
        origin="twin",
        cpu_w_each=cpu.package_power_cap_watts if cpu else None,
        cpu_pct=cpu.package_power_cap_pct_of_max if cpu else None,
        gpu_w_each=gpu.cap_watts_per_gpu if gpu else None,
        gpu_pct=gpu.cap_pct_of_max if gpu else None,
        kept_by_pin=pin is not None and _asks_for(pin, spec),
        refresh=_refresh(twin),
    )


def _of_pin(pin: Pin, settings: PinSettings, has_gpus: bool) -> CapTarget:
    eco = pin.profile == ECO
    cpu_said = pin.cpu_cap_w is not None or pin.cpu_cap_pct is not None
    gpu_said = pin.gpu_cap_w is not None or pin.gpu_cap_pct is not None
    cpu_usual = settings.cpu_eco_cap_pct if eco else settings.cpu_performance_cap_pct
    gpu_usual = settings.gpu_eco_cap_pct if eco else settings.gpu_performance_cap_pct
    return CapTarget(
        profile=pin.profile,
        chosen_by=PINNED,
        origin="pin",
        cpu_w_each=pin.cpu_cap_w,
        cpu_pct=pin.cpu_cap_pct if cpu_said else cpu_usual,
        gpu_w_each=pin.gpu_cap_w,
        gpu_pct=pin.gpu_cap_pct if gpu_said or not has_gpus else gpu_usual,
        kept_by_pin=True,
    )


def _asks_for(pin: Pin, spec: NodeTwinSpec) -> bool:
    """Whether a pin wants what the twin says: the same profile, and no looser cap than stands there.

    The operator may have raised what the pin states to what the hardware can hold, so a looser cap in the twin is fine.
    """
    cpu, gpu = spec.cpu, spec.gpu.power_cap if spec.gpu else None
    by_pin = spec.policy is not None and spec.policy.name == PINNED
    cpu_held = (cpu.package_power_cap_watts, cpu.package_power_cap_pct_of_max) if cpu else (None, None)
    gpu_held = (gpu.cap_watts_per_gpu, gpu.cap_pct_of_max) if gpu else (None, None)
    return (
        pin.profile == spec.profile
        and _is_no_looser((pin.cpu_cap_w, pin.cpu_cap_pct), cpu_held, by_pin)
        and _is_no_looser((pin.gpu_cap_w, pin.gpu_cap_pct), gpu_held, by_pin)
    )


def _is_no_looser(
    asked: tuple[float | None, float | None], held: tuple[float | None, float | None], by_pin: bool
) -> bool:
    """For watts and percent: whether what is held is not below what is asked for.

    Watts and percent cannot be compared here; a cap in the other unit is the pin's where the operator says so.
    """
    return all(
        wish is None or (value >= wish - 0.01 if value is not None else by_pin or held == (None, None))
        for wish, value in zip(asked, held, strict=True)
    )


def _refresh(twin: NodeTwin) -> str:
    """What only the operator writes; the agent's own report of its caps does not count."""
    last_updated = (twin.status.last_updated if twin.status else None) or ""
    written = (twin.metadata.uid, twin.metadata.creation_timestamp, last_updated, twin.spec)
    return hashlib.sha256(msgspec.json.encode(written)).hexdigest()[:16]

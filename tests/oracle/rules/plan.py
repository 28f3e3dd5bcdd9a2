"""``plan``: policy, pins and downgrade guard over the eligible nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.oracle.rules.caps import Caps, settings_caps, stated_caps
from tests.oracle.rules.hardware import hardware_of
from tests.oracle.rules.pods import demand_by_class, is_performance_only, performance_demand, pods_on
from tests.oracle.rules.policy import Ranked, planned_profiles, ranked
from tests.oracle.rules.settings import Settings, read_settings
from tests.oracle.rules.snapshot import Snapshot, eligible_names, name_of, read_snapshot
from tests.oracle.rules.values import Obj, dig, parse_time, text

PROFILES = ("performance", "eco")


@dataclass(frozen=True)
class Decision:
    """What one eligible node shall be."""

    ranked: Ranked
    profile: str
    state: str
    caps: Caps
    pinned: bool


def plan(
    objects: Iterable[Obj],
    env: Mapping[str, str],
    now: float,
    policy: str | None = None,
    selector: str | None = None,
) -> Obj:
    """The JSON of ``joulie plan``."""
    settings = read_settings(env, policy=policy, selector=selector)
    snapshot = read_snapshot(objects)
    decisions = decide(snapshot, settings, now)
    states = [decision.state for decision in decisions]
    return {
        "policy": settings.policy,
        "summary": {
            "eligible": len(states),
            "performance": states.count("performance"),
            "eco": states.count("eco"),
            "draining": states.count("draining"),
            "pods": demand_by_class(snapshot, settings),
        },
        "nodes": [_node(decision) for decision in decisions],
    }


def decide(snapshot: Snapshot, settings: Settings, now: float) -> list[Decision]:
    """Decisions for all eligible nodes, in the policy's order."""
    hardware = {name: hardware_of(name, snapshot, settings) for name in eligible_names(snapshot, settings)}
    order = ranked(hardware)
    profiles = planned_profiles(order, performance_demand(snapshot, settings), settings, now)
    return [
        _decide_node(node, profiles[node.name], live_pin(node.name, snapshot, now), snapshot, settings)
        for node in order
    ]


def _decide_node(node: Ranked, planned: str, pin: Obj | None, snapshot: Snapshot, settings: Settings) -> Decision:
    profile = planned if pin is None else text(dig(pin, "spec", "profile"))
    held = any(is_performance_only(pod, settings.profile_key) for pod in pods_on(snapshot, node.name))
    if profile == "eco" and held:
        return Decision(node, "eco", "draining", settings_caps(node.hardware, "performance", settings), pin is not None)
    caps = settings_caps(node.hardware, profile, settings)
    if pin is not None:
        caps = stated_caps(node.hardware, pin["spec"], missing=caps, gpu_absolute=settings.gpu_absolute)
    return Decision(node, profile, profile, caps, pin is not None)


def live_pin(node: str, snapshot: Snapshot, now: float) -> Obj | None:
    """The oldest valid NodePowerProfile that names the node and has not expired, ties by name."""
    pins = [pin for pin in snapshot.pins if dig(pin, "spec", "nodeName") == node and _is_live(pin, now)]
    return min(pins, key=_age_order, default=None)


def _is_live(pin: Obj, now: float) -> bool:
    if dig(pin, "spec", "profile") not in PROFILES:
        return False
    stated = dig(pin, "spec", "expiresAt")
    if stated is None:
        return True
    expires = parse_time(stated)
    return expires is not None and now < expires


def _age_order(pin: Obj) -> tuple[float, str]:
    created = parse_time(dig(pin, "metadata", "creationTimestamp"))
    return (float("-inf") if created is None else created, name_of(pin))


def _node(decision: Decision) -> Obj:
    caps, hardware = decision.caps, decision.ranked.hardware
    return {
        "node": decision.ranked.name,
        "profile": decision.profile,
        "state": decision.state,
        "draining": decision.state == "draining",
        "density": decision.ranked.density,
        "family": hardware.family,
        "cpu": {
            "capPct": caps.cpu_pct,
            "capWatts": caps.cpu_node_watts(hardware),
            "capWattsPerPackage": caps.cpu_watts,
        },
        "gpu": {"capPct": caps.gpu_pct, "capWattsPerGpu": caps.gpu_watts} if hardware.gpu_count > 0 else None,
        "reason": "",
    }

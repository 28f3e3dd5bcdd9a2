"""Order of nodes by density and the three policies."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tests.oracle.rules.hardware import Hardware
from tests.oracle.rules.settings import Settings
from tests.oracle.rules.values import clamp, round_half_up


@dataclass(frozen=True)
class Ranked:
    """One eligible node in the policy's order."""

    name: str
    density: float
    hardware: Hardware


def ranked(hardware: dict[str, Hardware]) -> list[Ranked]:
    """Eligible nodes by density, highest first, ties by name."""
    cpu = {name: hw.cores * hw.boost_ghz for name, hw in hardware.items()}
    gpu = {name: hw.gpu_total_w for name, hw in hardware.items()}
    cpu_top, gpu_top = max(cpu.values(), default=0.0), max(gpu.values(), default=0.0)

    def density(name: str) -> float:
        cpu_part = cpu[name] / cpu_top if cpu_top > 0 else 0.0
        gpu_part = gpu[name] / gpu_top if gpu_top > 0 else 0.0
        return round(cpu_part + gpu_part, 9)

    nodes = [Ranked(name, density(name), hardware[name]) for name in hardware]
    return sorted(nodes, key=lambda node: (-node.density, node.name))


def planned_profiles(order: list[Ranked], performance_pods: int, settings: Settings, now: float) -> dict[str, str]:
    """The policy's choice, ``performance`` or ``eco``, for every eligible node."""
    if settings.policy == "static_partition":
        return _partition(order, round_half_up(len(order) * settings.static_hp_frac))
    if settings.policy == "queue_aware_v1":
        return _partition(order, _queue_count(len(order), performance_pods, settings))
    if settings.policy == "rule_swap_v1":
        return _rule_swap(order, now, settings.reconcile_interval_s)
    raise ValueError(f"POLICY_TYPE: unknown policy {settings.policy!r}")


def _queue_count(nodes: int, performance_pods: int, settings: Settings) -> int:
    base = round_half_up(nodes * settings.queue_base_frac)
    need = math.ceil(performance_pods / settings.queue_perf_per_node)
    count = max(base, need, settings.queue_min)
    if settings.queue_max > 0:
        count = min(count, settings.queue_max)
    return count


def _partition(order: list[Ranked], wanted: int) -> dict[str, str]:
    """The densest node of each family first, while the count lasts, then the densest of the rest."""
    count = int(clamp(wanted, 0, len(order)))
    chosen: list[str] = []
    families: set[str] = set()
    for node in order:
        if len(chosen) < count and node.hardware.family not in families:
            families.add(node.hardware.family)
            chosen.append(node.name)
    for node in order:
        if len(chosen) < count and node.name not in chosen:
            chosen.append(node.name)
    return {node.name: "performance" if node.name in chosen else "eco" for node in order}


def _rule_swap(order: list[Ranked], now: float, interval_s: float) -> dict[str, str]:
    profiles = {node.name: "performance" for node in order}
    if order:
        phase = math.floor(now / interval_s) % min(2, len(order))
        profiles[order[phase].name] = "eco"
    return profiles

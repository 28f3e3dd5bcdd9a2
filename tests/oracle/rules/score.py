"""``score``: the extender's filter and score for one pod over all nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from tests.oracle.rules.hardware import hardware_of
from tests.oracle.rules.pods import is_finished, marginal_power_w, workload_class
from tests.oracle.rules.settings import Settings, read_settings
from tests.oracle.rules.snapshot import Snapshot, labels_of, name_of, read_snapshot
from tests.oracle.rules.values import Obj, clamp, dig, items, number, parse_time

NEUTRAL_SCORE = 50.0
CLASSES = ("performance", "eco", "draining")


def score(objects: Iterable[Obj], env: Mapping[str, str], now: float, pod: Obj) -> Obj:
    """The JSON of ``joulie score``."""
    settings = read_settings(env)
    snapshot = read_snapshot(objects)
    fresh = [name for name in snapshot.twins if not is_stale(snapshot.twins[name], settings, now)]
    pressure = performance_pressure(fresh, snapshot, settings)
    trend = math.fsum(_trend(snapshot.twins[name]) for name in fresh)
    nodes = []
    for name in sorted(snapshot.nodes):
        node_class = class_of(name, snapshot, settings)
        breakdown = _breakdown(name, node_class, pod, pressure, trend, snapshot, settings) if name in fresh else None
        nodes.append(
            {
                "node": name,
                "feasible": workload_class(pod) != "performance" or node_class not in ("eco", "draining"),
                "reason": "",
                "score": NEUTRAL_SCORE if breakdown is None else total(breakdown),
                "breakdown": breakdown,
            }
        )
    return {
        "pod": f"{dig(pod, 'metadata', 'namespace') or 'default'}/{name_of(pod)}",
        "workloadClass": workload_class(pod),
        "nodes": nodes,
    }


def total(breakdown: Obj) -> float:
    """The score of a breakdown, clamped and unrounded."""
    return clamp(
        breakdown["headroomScore"] * 0.7
        + breakdown["coolingTerm"]
        + breakdown["trendBonus"]
        + breakdown["profileBonus"]
        + breakdown["drainingPenalty"]
        + breakdown["pressureRelief"],
        0,
        100,
    )


def is_stale(twin: Obj, settings: Settings, now: float) -> bool:
    """Older than the threshold, or of no readable age."""
    updated = parse_time(dig(twin, "status", "lastUpdated"))
    return updated is None or now - updated > settings.stale_after_s


def class_of(name: str, snapshot: Snapshot, settings: Settings) -> str:
    """The twin's class at any age; where that says nothing, the node's label; else ``unknown``."""
    stated = dig(snapshot.twins.get(name), "status", "schedulableClass")
    if stated in CLASSES:
        return str(stated)
    label = labels_of(snapshot.nodes.get(name, {})).get(settings.profile_key)
    return label if label in ("performance", "eco") else "unknown"


def performance_pressure(fresh: list[str], snapshot: Snapshot, settings: Settings) -> float:
    """Mean congestion of all performance nodes with a fresh twin; 0 without any."""
    congestion = []
    for name in fresh:
        if class_of(name, snapshot, settings) == "performance":
            twin = snapshot.twins[name]
            power = _measured_and_capped(twin)
            headroom = _predicted(twin) if power is None else (power[1] - power[0]) / power[1] * 100
            congestion.append(100 - clamp(headroom, 0, 100))
    return math.fsum(congestion) / len(congestion) if congestion else 0.0


def _breakdown(
    name: str,
    node_class: str,
    pod: Obj,
    pressure: float,
    cluster_trend: float,
    snapshot: Snapshot,
    settings: Settings,
) -> Obj:
    twin = snapshot.twins[name]
    hardware = hardware_of(name, snapshot, settings)
    pue = max(1.0, number(dig(twin, "status", "estimatedPUE")) or 1.0) if settings.weigh_by_pue else 1.0
    pod_w = marginal_power_w(pod, hardware, settings) * pue
    recent_w = math.fsum(marginal_power_w(other, hardware, settings) for other in recent_pods(name, snapshot))

    power = _measured_and_capped(twin)
    if power is None:
        headroom = _predicted(twin)
    else:
        measured_w, capped_w = power
        headroom = (capped_w - (measured_w + recent_w + pod_w)) / capped_w * 100
    cooling = number(dig(twin, "status", "predictedCoolingStressScore")) or 0.0
    scale = 2.0 if abs(cluster_trend) > 500 else 6.0
    standard = workload_class(pod) == "standard"
    return {
        "headroomScore": headroom,
        "coolingTerm": (100 - cooling) * 0.15,
        "trendBonus": -clamp(_trend(twin) / scale, -25, 25),
        "profileBonus": 10.0 if standard and node_class == "eco" else 0.0,
        "drainingPenalty": -30.0 if standard and node_class == "draining" else 0.0,
        "pressureRelief": -0.3 * pressure if standard and node_class == "performance" else 0.0,
        "podMarginalW": pod_w,
        "recentPodsW": recent_w,
    }


def recent_pods(name: str, snapshot: Snapshot) -> list[Obj]:
    """Unfinished pods that were bound since the twin was updated."""
    updated = parse_time(dig(snapshot.twins[name], "status", "lastUpdated"))
    recent = []
    for other in snapshot.pods:
        bound = _bound_at(other)
        if (
            dig(other, "spec", "nodeName") == name
            and not is_finished(other)
            and updated is not None
            and bound is not None
            and bound >= updated
        ):
            recent.append(other)
    return recent


def _bound_at(pod: Obj) -> float | None:
    """When the condition PodScheduled became true."""
    for condition in items(dig(pod, "status", "conditions")):
        if dig(condition, "type") == "PodScheduled" and dig(condition, "status") == "True":
            return parse_time(dig(condition, "lastTransitionTime"))
    return None


def _measured_and_capped(twin: Obj) -> tuple[float, float] | None:
    """(measured, capped) watts where the twin has both and the budget is above zero."""
    measured = number(dig(twin, "status", "powerMeasurement", "measuredNodePowerW"))
    capped = number(dig(twin, "status", "powerMeasurement", "nodeCappedPowerW"))
    return (measured, capped) if measured is not None and capped is not None and capped > 0 else None


def _predicted(twin: Obj) -> float:
    return number(dig(twin, "status", "predictedPowerHeadroomScore")) or 0.0


def _trend(twin: Obj) -> float:
    return number(dig(twin, "status", "powerMeasurement", "powerTrendWPerMin")) or 0.0

"""Random NodeTwins as an operator may have left them, and NodePowerProfiles as people write them."""

from __future__ import annotations

from random import Random

from tests.oracle.random_cases.nodes import whole
from tests.oracle.rules.hardware import Hardware
from tests.oracle.rules.values import Obj, format_time


def random_twin(
    rng: Random, name: str, now: float, stale_after_s: float, hardware: Hardware | None, contested: bool
) -> Obj:
    """A twin of any age and completeness whose spec agrees with its class."""
    state = rng.choice(["performance", "performance", "eco", "draining"])
    published = state if rng.random() < 0.75 else rng.choice(["", "unknown", None])
    spec: Obj = {
        "nodeName": name,
        "profile": "performance" if state == "performance" else "eco",
        "policy": {"name": "static_partition"},
        "scheduling": {"draining": state == "draining"},
    }
    if rng.random() < 0.8:
        spec["cpu"] = {"packagePowerCapPctOfMax": whole(rng, rng.choice([60, 80, 55.5, 100]))}
        if (contested or (hardware and hardware.cpu_max_known)) and rng.random() < 0.3:
            spec["cpu"] = {"packagePowerCapWatts": whole(rng, rng.choice([120, 300, 5000]))}
    if (hardware is None or hardware.gpu_count > 0) and rng.random() < 0.8:
        spec["gpu"] = {"powerCap": {"scope": "perGpu", "capPctOfMax": whole(rng, rng.choice([60, 75, 100]))}}
        if hardware and hardware.gpu_max_known and rng.random() < 0.3:
            spec["gpu"]["powerCap"] = {
                "scope": "perGpu",
                "capWattsPerGpu": whole(rng, rng.choice([100, 300, 1000])),
            }
    twin: Obj = {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodeTwin",
        "metadata": {"name": name},
        "spec": spec,
    }
    if rng.random() < 0.05:
        return twin
    status: Obj = {
        "predictedPowerHeadroomScore": whole(rng, rng.choice([0, 40, 62.5, 100, rng.uniform(0, 100)])),
        "predictedCoolingStressScore": whole(rng, rng.choice([0, 20, 31.3, 100, rng.uniform(0, 100)])),
        "predictedPsuStressScore": 12,
    }
    if published is not None:
        status["schedulableClass"] = published
    age = rng.choice(
        [
            0,
            1,
            rng.randint(1, 60),
            rng.randint(1, 60),
            int(stale_after_s) - 1,
            int(stale_after_s),
            int(stale_after_s) + 1,
            90000,
            -30,
            -600,
        ]
    )
    if rng.random() < 0.92:
        status["lastUpdated"] = format_time(now - age)
    elif rng.random() < 0.5:
        status["lastUpdated"] = "soon"
    if rng.random() < 0.75:
        status["powerMeasurement"] = _measurement(rng, hardware)
    if rng.random() < 0.25:
        status["estimatedPUE"] = whole(rng, rng.choice([1, 1.6, 1.25, 0.9, 2]))
    if rng.random() < 0.35:
        status["controlStatus"] = {
            part: {
                "backend": "rapl" if part == "cpu" else "host",
                "result": rng.choice(["applied", "applied", "blocked", "error", "none"]),
                "message": "",
                "updatedAt": format_time(now - rng.choice([5, 90000] if contested else [5, 60])),
            }
            for part in ("cpu", "gpu")
            if rng.random() < 0.8
        }
    twin["status"] = status
    return twin


def _measurement(rng: Random, hardware: Hardware | None) -> Obj:
    own_w = hardware.cpu_max_w + hardware.gpu_total_w if hardware else 2000
    tdp = rng.choice([own_w, own_w, own_w, own_w, 800, 6400, rng.uniform(300, 7000)])
    capped = tdp * rng.choice([1, 0.6, 0.8])
    measured = capped * rng.choice([0, 0.2, 0.3, 0.5, 0.9, 1.1, rng.random()])
    trend = rng.choice([0, 0, 12, -30, 60, -200, 400, 600, rng.uniform(-300, 300)])
    return {
        "source": rng.choice(["kepler", "static", "utilization"]),
        "measuredNodePowerW": whole(rng, measured),
        "nodeCappedPowerW": whole(rng, capped),
        "nodeTdpW": whole(rng, tdp),
        "powerTrendWPerMin": whole(rng, trend),
    }


def random_pins(rng: Random, nodes: list[str], now: float, hardware: dict[str, Hardware], contested: bool) -> list[Obj]:
    """Pins: several for one node, expired and not yet, on unknown nodes, with any sort of caps."""
    if not nodes or rng.random() < 0.4:
        return []
    favourite = rng.choice(nodes)
    pins = []
    for i in range(rng.randint(1, 5)):
        node = rng.choice([favourite, favourite, rng.choice(nodes), rng.choice(nodes), "no-such-node"])
        created = now - rng.choice([3600, 3600, 7200, 86400])
        spec: Obj = {"nodeName": node, "profile": rng.choice(["performance", "eco"])}
        if rng.random() < 0.35:
            spec["expiresAt"] = format_time(now + rng.choice([-3600, -1, 0, 1, 7200]))
        spec |= _pinned_caps(rng, hardware.get(node), contested)
        pins.append(
            {
                "apiVersion": "joulie.io/v1alpha1",
                "kind": "NodePowerProfile",
                "metadata": {
                    "name": f"pin-{rng.choice('abcxyz')}{i}",
                    "creationTimestamp": format_time(created),
                },
                "spec": spec,
            }
        )
    return pins


def _pinned_caps(rng: Random, hardware: Hardware | None, contested: bool) -> Obj:
    caps: Obj = {}
    if rng.random() < 0.6:
        caps["cpu"] = {}
        if rng.random() < 0.6:
            caps["cpu"]["packagePowerCapPctOfMax"] = whole(rng, rng.choice([10, 45, 70.5, 100]))
        if rng.random() < 0.5 and (contested or (hardware and hardware.cpu_max_known)):
            caps["cpu"]["packagePowerCapWatts"] = whole(rng, rng.choice([1, 90, 250, 333.3, 640, 100000]))
    if rng.random() < 0.6:
        cap: Obj = {"scope": "perGpu"}
        if rng.random() < 0.6:
            cap["capPctOfMax"] = whole(rng, rng.choice([10, 50, 85, 100]))
        if rng.random() < 0.5 and (contested or (hardware and hardware.gpu_max_known)):
            cap["capWattsPerGpu"] = whole(rng, rng.choice([1, 150, 275.5, 400, 9000]))
        caps["gpu"] = {"powerCap": cap}
    return caps

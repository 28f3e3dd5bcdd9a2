"""``twin``: the status of every node in scope, from files (static tier, no facility data)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from tests.oracle.rules.caps import Caps, stated_caps
from tests.oracle.rules.hardware import Hardware, hardware_of
from tests.oracle.rules.plan import PROFILES, decide
from tests.oracle.rules.pods import marginal_power_w, pods_on
from tests.oracle.rules.settings import Settings, read_settings
from tests.oracle.rules.snapshot import Snapshot, labels_of, read_snapshot, scope_names
from tests.oracle.rules.values import Obj, clamp, dig, format_time

CLASSES = ("performance", "eco", "draining")
RACK_LABEL = "joulie.io/rack"
FULL_CORES, FULL_GPUS = 192.0, 8.0


def twin(
    objects: Iterable[Obj],
    env: Mapping[str, str],
    now: float,
    ambient: float | None = None,
    policy: str | None = None,
    selector: str | None = None,
) -> list[Obj]:
    """The JSON of ``joulie twin``, sorted by node."""
    settings = read_settings(env, policy=policy, selector=selector, ambient=ambient)
    snapshot = read_snapshot(objects)
    decided = {d.ranked.name: (d.state, d.caps) for d in decide(snapshot, settings, now)}
    statuses: dict[str, Obj] = {}
    for name in scope_names(snapshot, settings):
        hardware = hardware_of(name, snapshot, settings)
        state, caps = decided.get(name) or _kept(name, hardware, snapshot, settings)
        statuses[name] = _status(name, state, caps, hardware, snapshot, settings)
    for name, status in statuses.items():
        watts = psu_power_w(name, statuses, snapshot)
        status["predictedPsuStressScore"] = clamp(watts / settings.rack_capacity_w * 100, 0, 100)
        status["lastUpdated"] = format_time(now)
    return [{"node": name, "status": statuses[name]} for name in sorted(statuses)]


def linear_cooling_stress(node_power_w: float, ambient_c: float, reference_w: float) -> float:
    """Seed 000's default cooling model."""
    return clamp(node_power_w / reference_w * 80 + max(0.0, ambient_c - 20) * 0.5, 0, 100)


def psu_power_w(name: str, statuses: dict[str, Obj], snapshot: Snapshot) -> float:
    """Measured power of the node's rack, of all nodes in scope where the node has no rack label."""
    rack = labels_of(snapshot.nodes[name]).get(RACK_LABEL)
    mates = [other for other in statuses if not rack or labels_of(snapshot.nodes[other]).get(RACK_LABEL) == rack]
    return math.fsum(statuses[other]["powerMeasurement"]["measuredNodePowerW"] for other in mates)


def _kept(name: str, hardware: Hardware, snapshot: Snapshot, settings: Settings) -> tuple[str, Caps]:
    """Class and caps of a cordoned node: as they are."""
    existing = snapshot.twins.get(name)
    caps = stated_caps(hardware, dig(existing, "spec"), missing=Caps())
    published = dig(existing, "status", "schedulableClass")
    if published in CLASSES:
        return published, caps
    if dig(existing, "spec", "scheduling", "draining") is True:
        return "draining", caps
    for profile in (
        dig(existing, "spec", "profile"),
        labels_of(snapshot.nodes[name]).get(settings.profile_key),
    ):
        if profile in PROFILES:
            return profile, caps
    return "performance", caps


def _status(name: str, state: str, caps: Caps, hardware: Hardware, snapshot: Snapshot, settings: Settings) -> Obj:
    control = dig(snapshot.twins.get(name), "status", "controlStatus")
    cpu_pct = 100.0 if _not_enforced(control, "cpu") else caps.cpu_effective_pct(hardware)
    has_gpu = hardware.gpu_count > 0
    gpu_pct = 100.0 if not has_gpu or _not_enforced(control, "gpu") else caps.gpu_effective_pct(hardware)

    cpu_capped_w = hardware.cpu_max_w * cpu_pct / 100
    gpu_capped_w = hardware.gpu_total_w * gpu_pct / 100
    capped_w = cpu_capped_w + gpu_capped_w
    idle_w = hardware.cpu_idle_w + 0.2 * hardware.gpu_total_w
    marginal_w = math.fsum(marginal_power_w(pod, hardware, settings) for pod in pods_on(snapshot, name))
    reference_w = settings.reference_node_w or max(4000, 1.25 * (hardware.cpu_max_w + hardware.gpu_total_w))
    cooling = linear_cooling_stress(capped_w, settings.ambient_c, reference_w)
    headroom = (cpu_pct + gpu_pct) / 200 * (1 - cooling / 100) * 100
    return {
        "schedulableClass": state,
        "predictedPowerHeadroomScore": clamp(headroom, 0, 100),
        "predictedCoolingStressScore": cooling,
        "effectiveCapState": {"cpuPct": cpu_pct, "gpuPct": gpu_pct} if has_gpu else {"cpuPct": cpu_pct},
        "hardwareDensityScore": hardware_density_score(hardware),
        "powerMeasurement": {
            "source": "static",
            "measuredNodePowerW": min(capped_w, idle_w + marginal_w),
            "cpuCappedPowerW": cpu_capped_w,
            "gpuCappedPowerW": gpu_capped_w,
            "nodeCappedPowerW": capped_w,
            "cpuTdpW": hardware.cpu_max_w,
            "gpuTdpW": hardware.gpu_total_w,
            "nodeTdpW": hardware.cpu_max_w + hardware.gpu_total_w,
            "powerTrendWPerMin": 0.0,
        },
    }


def _not_enforced(control: object, part: str) -> bool:
    """Whether the agent says that this part's cap is not in force."""
    return dig(control, part, "result") in ("blocked", "error")


def hardware_density_score(hardware: Hardware) -> float:
    """Cores of 192 and GPUs of 8 in percent, each at most 100, averaged where there is a GPU."""
    cpu = clamp(hardware.cores / FULL_CORES * 100, 0, 100)
    if hardware.gpu_count <= 0:
        return cpu
    return (cpu + clamp(hardware.gpu_count / FULL_GPUS * 100, 0, 100)) / 2

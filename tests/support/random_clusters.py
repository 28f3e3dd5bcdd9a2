"""Whole clusters for hypothesis: plausible in shape, extreme in their numbers."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from joulie.model import names
from joulie.model.api import NodeHardware, NodeTwin
from joulie.model.rfc3339 import format_time
from joulie.model.selector import Requirement
from joulie.model.snapshot import Node, Pin, Pod, PowerReading, Snapshot, Telemetry, Utilisation
from joulie.settings import DecisionSettings, HardwareSettings, MarginalSettings, PlanSettings, TwinSettings
from joulie.settings.parsing import GpuModelCaps
from tests.support.small_clusters import NOW, hardware, twin

CPU_NAMES = ["EPYC-9654", "AMD EPYC 9965 192-Core Processor", "Xeon-Gold-6530", "Own-CPU", " "]
GPU_NAMES = ["NVIDIA-H100-80GB-HBM3", "L40S", "AMD-Instinct-MI300X", "Own-GPU", ""]
NODE_NAMES = ["a", "b", "n1", "n2", "n10", "node-3", "gpu-7", "z"]

whole_or_not = st.integers(0, 2000).map(float) | st.floats(0, 2000, allow_subnormal=False)
reported_watts = st.sampled_from([None, 0, -1.0]) | st.floats(1, 2000)
pct = st.floats(0, 100) | st.sampled_from([0.0, 60.0, 100.0])
score = st.floats(0, 100) | st.none()
times = st.sampled_from([NOW - 90_000, NOW - 301, NOW - 300, NOW - 60, NOW, NOW + 60])


def maybe(value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | value


def some_of(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """JSON with any of these fields."""
    return st.fixed_dictionaries({}, optional=parts)


labels = st.fixed_dictionaries(
    {},
    optional={
        names.MANAGED_LABEL: st.sampled_from(["true", "true", "true", "true", "false"]),
        names.RESERVED_LABEL: st.sampled_from(["true", "false", "false", "false"]),
        names.RACK_LABEL: st.sampled_from(["", "r1", "r2"]),
        names.COOLING_ZONE_LABEL: st.sampled_from(["z1", "z2"]),
        names.POWER_PROFILE_LABEL: st.sampled_from(["performance", "eco", "other"]),
        names.DRAINING_LABEL: st.sampled_from(["true", "false"]),
        names.CPU_MODEL_LABEL: st.sampled_from(CPU_NAMES),
        names.CPU_SOCKETS_LABEL: st.sampled_from(["0", "1", "2", "two"]),
        names.GPU_MODEL_LABEL: st.sampled_from(GPU_NAMES),
        names.GPU_COUNT_LABEL: st.sampled_from(["0", "4", "8", "many"]),
        "amd.com/gpu.product": st.sampled_from(GPU_NAMES),
    },
).map(lambda found: {names.MANAGED_LABEL: "true", **found})


def nodes(name: str) -> st.SearchStrategy[Node]:
    gpus = st.sampled_from([0.0, 0.0, 1.0, 8.0])
    cores = st.sampled_from([0.0, 5e-324, 1e-9, 0.5, 64.0, 192.0]) | st.floats(1, 1000)
    return st.builds(Node, st.just(name), labels, st.sampled_from([False] * 5 + [True]), cores, gpus, gpus)


def hardware_of(name: str) -> st.SearchStrategy[NodeHardware]:
    counts = st.sampled_from([0, 1, 2, 4.0, 8])
    cpu = some_of(
        model=st.sampled_from(CPU_NAMES),
        sockets=counts,
        totalCores=counts.map(lambda count: count * 24),
        capRange=some_of(minWattsPerSocket=reported_watts, maxWattsPerSocket=reported_watts),
    )
    gpu = some_of(
        present=st.booleans(),
        count=counts,
        model=st.sampled_from(GPU_NAMES),
        vendor=st.sampled_from(["NVIDIA", "amd", ""]),
        capRangePerGpu=some_of(minWatts=reported_watts, maxWatts=reported_watts),
    )
    return st.builds(hardware, st.just(name), maybe(cpu), maybe(gpu))


def twins(name: str) -> st.SearchStrategy[NodeTwin]:
    control = some_of(result=st.sampled_from(["applied", "blocked", "error", "none"]))
    spec = some_of(
        profile=st.sampled_from(["performance", "eco"]),
        cpu=some_of(packagePowerCapWatts=whole_or_not, packagePowerCapPctOfMax=pct),
        gpu=some_of(powerCap=some_of(capWattsPerGpu=whole_or_not, capPctOfMax=pct)),
        scheduling=some_of(draining=st.booleans()),
    )
    status = some_of(
        schedulableClass=st.sampled_from(["performance", "eco", "draining", "unknown", ""]),
        predictedPowerHeadroomScore=score,
        predictedCoolingStressScore=score,
        estimatedPUE=st.floats(0.5, 3),
        powerMeasurement=some_of(
            measuredNodePowerW=whole_or_not,
            nodeCappedPowerW=whole_or_not,
            powerTrendWPerMin=st.floats(-1000, 1000),
        ),
        controlStatus=some_of(cpu=control, gpu=control),
        lastUpdated=times.map(format_time) | st.just("soon"),
    )
    return st.builds(twin, st.just(name), maybe(spec), maybe(status))


requirements = st.builds(
    Requirement,
    st.sampled_from([names.POWER_PROFILE_LABEL, names.DRAINING_LABEL, "zone"]),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt"]),
    st.sampled_from([("eco",), ("performance",), ("eco", "performance"), ("true",)]),
)
terms = st.lists(st.lists(requirements, min_size=1, max_size=2).map(tuple), max_size=2).map(tuple)
selectors = st.sampled_from(
    [{names.POWER_PROFILE_LABEL: "performance"}, {names.POWER_PROFILE_LABEL: "eco"}, {"a": "b"}]
)


def pods(on: st.SearchStrategy[str]) -> st.SearchStrategy[Pod]:
    return st.builds(
        Pod,
        namespace=st.sampled_from(["default", "team"]),
        name=st.text("abc", min_size=1, max_size=6),
        node=on,
        workload_class=st.sampled_from(["standard", "standard", "performance"]),
        cpu_cores=st.floats(0, 200),
        gpus=st.sampled_from([0.0, 0.0, 1.0, 8.0]),
        finished=st.sampled_from([False] * 5 + [True]),
        terminating=st.sampled_from([False] * 5 + [True]),
        scheduled_at_s=maybe(times),
        node_selector=maybe(selectors),
        required_terms=maybe(terms),
    )


def pins(of: st.SearchStrategy[str]) -> st.SearchStrategy[Pin]:
    return st.builds(
        Pin,
        name=st.text("pq", min_size=1, max_size=4),
        node=of,
        profile=st.sampled_from(["performance", "eco"]),
        cpu_cap_w=maybe(whole_or_not),
        cpu_cap_pct=maybe(pct),
        gpu_cap_w=maybe(whole_or_not),
        gpu_cap_pct=maybe(pct),
        created_at_s=maybe(times),
        expires_at_s=maybe(times),
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    chosen = draw(st.lists(st.sampled_from(NODE_NAMES), unique=True, max_size=5))
    anywhere = st.sampled_from([*chosen, *chosen, "", "gone"])
    return Snapshot(
        nodes={name: draw(nodes(name)) for name in chosen},
        pods=draw(st.lists(pods(anywhere), max_size=5, unique_by=lambda pod: (pod.namespace, pod.name)).map(tuple)),
        hardware={name: draw(hardware_of(name)) for name in chosen if draw(st.booleans())},
        twins={name: draw(twins(name)) for name in [*chosen, "departed"] if draw(st.booleans())},
        pins=draw(st.lists(pins(anywhere), max_size=3, unique_by=lambda pin: pin.name).map(tuple)),
        telemetry=draw(telemetries(chosen)),
    )


def telemetries(of: list[str]) -> st.SearchStrategy[Telemetry]:
    if not of:
        return st.just(Telemetry())
    on = st.sampled_from(of)
    loads = st.none() | st.floats(0, 1) | st.just(1.5)
    watts = st.floats(0, 3000) | st.sampled_from([float("nan"), -1.0, 1e9])
    readings = st.builds(PowerReading, st.sampled_from(["kepler", "http"]), watts, times)
    degrees = st.floats(-20, 60)
    full = st.builds(
        Telemetry,
        power=st.dictionaries(on, readings, max_size=3),
        utilisation=st.dictionaries(on, st.builds(Utilisation, times, loads, loads), max_size=3),
        trend_w_per_min=st.dictionaries(on, st.floats(-1000, 1000), max_size=3),
        ambient_c=maybe(degrees),
        zone_ambient_c=st.dictionaries(st.sampled_from(["z1", "z2"]), degrees),
        rack_power_w=st.dictionaries(st.sampled_from(["r1", "r2"]), st.floats(0, 99_999)),
        estimated_pue=maybe(st.floats(1, 3)),
    )
    return st.just(Telemetry()) | full


fractions = st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0])
cap_pct = st.floats(0.5, 100) | st.sampled_from([60.0, 100.0])
cap_watts = st.floats(0.5, 6000)
plan_settings = st.builds(
    PlanSettings,
    static_hp_frac=fractions,
    queue_hp_base_frac=fractions,
    queue_hp_min=st.integers(0, 5),
    queue_hp_max=st.integers(-1, 6),
    queue_perf_per_hp_node=st.integers(1, 4),
    performance_cap_w=cap_watts,
    eco_cap_w=cap_watts,
    cpu_performance_cap_pct=cap_pct,
    cpu_eco_cap_pct=cap_pct,
    cpu_write_absolute_caps=st.booleans(),
    gpu_performance_cap_pct=cap_pct,
    gpu_eco_cap_pct=cap_pct,
    gpu_write_absolute_caps=st.booleans(),
    policy_type=st.sampled_from(["static_partition", "queue_aware_v1", "rule_swap_v1"]),
)
own_caps = st.builds(GpuModelCaps, reported_watts, reported_watts)
hardware_settings = st.builds(
    HardwareSettings, gpu_model_caps=st.dictionaries(st.sampled_from(["H100 SXM", "Own-GPU"]), own_caps, max_size=2)
)
twin_settings = st.builds(
    TwinSettings,
    ambient_c=st.floats(-60, 80),
    reference_node_power_w=st.none() | st.floats(1, 10_000),
    rack_capacity_w=st.floats(1, 1e5),
)
decision_settings = st.builds(
    DecisionSettings,
    plan=plan_settings,
    hardware=hardware_settings,
    twin=twin_settings,
    marginal=st.just(MarginalSettings()),
)

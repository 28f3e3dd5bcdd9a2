"""Settings of the decision code: the plan, the twin and the marginal power of a pod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from joulie.model import names
from joulie.model.selector import Selector
from joulie.settings.loading import group, setting
from joulie.settings.parsing import (
    BOOLEAN,
    DURATION,
    FRACTION,
    GPU_MODEL_CAPS,
    LABEL_KEY,
    OWN_LABEL_KEY,
    PCT_OF_MAX,
    SELECTOR,
    TEXT,
    TEXT_LIST,
    WATTS,
    GpuModelCaps,
    integer,
    number,
    number_or_auto,
)


@dataclass(frozen=True, slots=True)
class HardwareSettings:
    """How a node's hardware is recognised; plan, twin and score share this."""

    gpu_model_caps: Mapping[str, GpuModelCaps] = setting(
        "GPU_MODEL_CAPS_JSON", "{}", GPU_MODEL_CAPS, "Cap ranges of GPU models that no node reports."
    )
    gpu_product_label_keys: tuple[str, ...] = setting(
        "GPU_PRODUCT_LABEL_KEYS",
        "joulie.io/gpu.product,nvidia.com/gpu.product,amd.com/gpu.product,amd.com/gpu.product-name,amd.com/gpu.family",
        TEXT_LIST,
        "Node labels that may name the GPU model; the first one present counts.",
    )
    cpu_min_cap_pct: float = setting(
        "CPU_MIN_CAP_PCT",
        "40",
        PCT_OF_MAX,
        "Lowest CPU cap in watts, percent of maximum, where the hardware states no minimum.",
    )
    hardware_catalog_path: str = setting(
        "HARDWARE_CATALOG_PATH", "", TEXT, "TOML file with more CPUs and GPUs for the catalogue."
    )


def power_profile_label() -> str:
    """The label that plan and score must agree on."""
    return setting(
        "POWER_PROFILE_LABEL", names.POWER_PROFILE_LABEL, OWN_LABEL_KEY, "Node label that publishes the profile."
    )


def max_connections(default: str = "256") -> int:
    """What every process that listens allows at each of its ports."""
    return setting(
        "MAX_CONNECTIONS",
        default,
        integer(16, 100_000),
        "Maximum connections at each port; a new one that finds all taken replaces an idle one.",
    )


def enable_facility_metrics() -> bool:
    """Operator and extender must agree: what is not asked for weighs in no score."""
    return setting(
        "ENABLE_FACILITY_METRICS",
        "false",
        BOOLEAN,
        "Operator: ask the facility for temperature and cooling power. Extender: weigh a pod's power by the PUE.",
    )


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """Which nodes are in scope, which policy plans them, and what its profiles mean in caps."""

    reconcile_interval_s: float = setting("RECONCILE_INTERVAL", "1m", DURATION, "Time between two decisions.")
    node_selector: Selector = setting(
        "NODE_SELECTOR", f"{names.MANAGED_LABEL}=true", SELECTOR, "Nodes in scope, as a label selector."
    )
    reserved_label_key: str = setting(
        "RESERVED_LABEL_KEY",
        names.RESERVED_LABEL,
        LABEL_KEY,
        "Nodes with this label set to true are left alone.",
    )
    power_profile_label: str = power_profile_label()
    policy_type: str = setting(
        "POLICY_TYPE", "static_partition", TEXT, "The policy that plans: a built-in one or any installed one."
    )
    static_hp_frac: float = setting(
        "STATIC_HP_FRAC", "0.5", FRACTION, "static_partition: share of nodes at full power."
    )
    queue_hp_base_frac: float = setting(
        "QUEUE_HP_BASE_FRAC", "0.6", FRACTION, "queue_aware_v1: share of nodes at full power without demand."
    )
    queue_hp_min: int = setting(
        "QUEUE_HP_MIN", "1", integer(-(10**9), 10**9), "queue_aware_v1: at least so many nodes at full power."
    )
    queue_hp_max: int = setting(
        "QUEUE_HP_MAX",
        "1000000",
        integer(-(10**9), 10**9),
        "queue_aware_v1: at most so many nodes at full power, stronger than QUEUE_HP_MIN; 0 or less: no maximum.",
    )
    queue_perf_per_hp_node: int = setting(
        "QUEUE_PERF_PER_HP_NODE",
        "10",
        integer(1, 10**9),
        "queue_aware_v1: performance-only pods for each node.",
    )
    performance_cap_w: float = setting(
        "PERFORMANCE_CAP_WATTS", "5000", WATTS, "CPU cap of a performance node in absolute mode, each package."
    )
    eco_cap_w: float = setting("ECO_CAP_WATTS", "120", WATTS, "CPU cap of an eco node in absolute mode, each package.")
    cpu_performance_cap_pct: float = setting(
        "CPU_PERFORMANCE_CAP_PCT_OF_MAX",
        "100",
        PCT_OF_MAX,
        "CPU cap of a performance node, percent of maximum.",
    )
    cpu_eco_cap_pct: float = setting(
        "CPU_ECO_CAP_PCT_OF_MAX", "60", PCT_OF_MAX, "CPU cap of an eco node, percent of maximum."
    )
    cpu_write_absolute_caps: bool = setting(
        "CPU_WRITE_ABSOLUTE_CAPS", "false", BOOLEAN, "Write CPU caps in watts instead of percent."
    )
    gpu_performance_cap_pct: float = setting(
        "GPU_PERFORMANCE_CAP_PCT_OF_MAX",
        "100",
        PCT_OF_MAX,
        "GPU cap of a performance node, percent of maximum.",
    )
    gpu_eco_cap_pct: float = setting(
        "GPU_ECO_CAP_PCT_OF_MAX", "60", PCT_OF_MAX, "GPU cap of an eco node, percent of maximum."
    )
    gpu_write_absolute_caps: bool = setting(
        "GPU_WRITE_ABSOLUTE_CAPS", "false", BOOLEAN, "Write GPU caps in watts besides percent."
    )


@dataclass(frozen=True, slots=True)
class TwinSettings:
    """What the digital twin assumes."""

    cooling_model: str = setting(
        "COOLING_MODEL", "linear", TEXT, "The cooling model: linear, fmu or any installed one."
    )
    cooling_fmu_path: str = setting(
        "COOLING_FMU_PATH", "", TEXT, "The FMU file (FMI 2.0 or 3.0) that COOLING_MODEL=fmu steps."
    )
    ambient_c: float = setting(
        "AMBIENT_TEMP_C", "20", number(-273, 1000), "Inlet air temperature where the facility reports none."
    )
    reference_node_power_w: float | None = setting(
        "REFERENCE_NODE_POWER_WATTS",
        "4000",
        number_or_auto(0, 1_000_000),
        "Node power that makes a cooling stress of 80 at 20 °C; auto: 1.25 times a node's maximum, at least 4000.",
    )
    rack_capacity_w: float = setting(
        "RACK_CAPACITY_WATTS", "50000", number(0, 1e9, above=True), "What one rack's supply can deliver."
    )
    power_max_age_s: float = setting(
        "POWER_MAX_AGE", "2m", DURATION, "A power or utilisation reading older than this is not used."
    )


@dataclass(frozen=True, slots=True)
class MarginalSettings:
    """How much of what a pod asks for it is expected to draw."""

    cpu_coeff: float = setting(
        "MARGINAL_CPU_UTIL_COEFF", "0.7", number(0, 10), "Share of the asked CPU power that a pod draws."
    )
    gpu_coeff_standard: float = setting(
        "MARGINAL_GPU_UTIL_COEFF_STANDARD", "0.65", number(0, 10), "Likewise for GPUs of standard pods."
    )
    gpu_coeff_performance: float = setting(
        "MARGINAL_GPU_UTIL_COEFF_PERFORMANCE", "0.85", number(0, 10), "Likewise for GPUs of performance pods."
    )


@dataclass(frozen=True, slots=True)
class DecisionSettings:
    """Everything that `decide` depends on besides the snapshot and the time."""

    plan: PlanSettings = group(PlanSettings)
    hardware: HardwareSettings = group(HardwareSettings)
    twin: TwinSettings = group(TwinSettings)
    marginal: MarginalSettings = group(MarginalSettings)

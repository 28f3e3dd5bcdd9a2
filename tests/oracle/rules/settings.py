"""The settings that decisions depend on, read from environment variables (sections 5, 6, 13)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.oracle.rules.values import parse_duration

DEFAULTS: dict[str, str] = {
    "RECONCILE_INTERVAL": "1m",
    "NODE_SELECTOR": "joulie.io/managed=true",
    "RESERVED_LABEL_KEY": "joulie.io/reserved",
    "POWER_PROFILE_LABEL": "joulie.io/power-profile",
    "POLICY_TYPE": "static_partition",
    "STATIC_HP_FRAC": "0.5",
    "QUEUE_HP_BASE_FRAC": "0.6",
    "QUEUE_HP_MIN": "1",
    "QUEUE_HP_MAX": "1000000",
    "QUEUE_PERF_PER_HP_NODE": "10",
    "PERFORMANCE_CAP_WATTS": "5000",
    "ECO_CAP_WATTS": "120",
    "CPU_PERFORMANCE_CAP_PCT_OF_MAX": "100",
    "CPU_ECO_CAP_PCT_OF_MAX": "60",
    "CPU_WRITE_ABSOLUTE_CAPS": "false",
    "GPU_PERFORMANCE_CAP_PCT_OF_MAX": "100",
    "GPU_ECO_CAP_PCT_OF_MAX": "60",
    "GPU_WRITE_ABSOLUTE_CAPS": "false",
    "GPU_MODEL_CAPS_JSON": "{}",
    "GPU_PRODUCT_LABEL_KEYS": "joulie.io/gpu.product,nvidia.com/gpu.product,amd.com/gpu.product,"
    "amd.com/gpu.product-name,amd.com/gpu.family",
    "CPU_MIN_CAP_PCT": "40",
    "AMBIENT_TEMP_C": "20",
    "REFERENCE_NODE_POWER_WATTS": "4000",
    "RACK_CAPACITY_WATTS": "50000",
    "TWIN_STALENESS_THRESHOLD": "5m",
    "ENABLE_FACILITY_METRICS": "false",
    "MARGINAL_CPU_UTIL_COEFF": "0.7",
    "MARGINAL_GPU_UTIL_COEFF_STANDARD": "0.65",
    "MARGINAL_GPU_UTIL_COEFF_PERFORMANCE": "0.85",
}


@dataclass(frozen=True)
class Settings:
    """Parsed settings; percentages and watts by profile (``performance``, ``eco``)."""

    reconcile_interval_s: float
    node_selector: str
    reserved_key: str
    profile_key: str
    policy: str
    static_hp_frac: float
    queue_base_frac: float
    queue_min: int
    queue_max: int
    queue_perf_per_node: float
    cpu_absolute: bool
    cpu_watts: dict[str, float]
    cpu_pct: dict[str, float]
    cpu_min_cap_pct: float
    gpu_absolute: bool
    gpu_pct: dict[str, float]
    gpu_model_caps: dict[str, dict[str, Any]]
    gpu_label_keys: list[str]
    ambient_c: float
    reference_node_w: float | None  # None: by each node
    rack_capacity_w: float
    stale_after_s: float
    weigh_by_pue: bool
    cpu_coefficient: float
    gpu_coefficient: dict[str, float]


def read_settings(
    env: Mapping[str, str],
    policy: str | None = None,
    selector: str | None = None,
    ambient: float | None = None,
) -> Settings:
    """The environment over the defaults, and what the command line overrides over both."""

    def value(key: str) -> str:
        return env.get(key, DEFAULTS[key]).strip()

    def truth(key: str) -> bool:
        return value(key).lower() in ("true", "1")

    reference = value("REFERENCE_NODE_POWER_WATTS")
    return Settings(
        reconcile_interval_s=parse_duration(value("RECONCILE_INTERVAL")),
        node_selector=value("NODE_SELECTOR") if selector is None else selector,
        reserved_key=value("RESERVED_LABEL_KEY"),
        profile_key=value("POWER_PROFILE_LABEL"),
        policy=value("POLICY_TYPE") if policy is None else policy,
        static_hp_frac=float(value("STATIC_HP_FRAC")),
        queue_base_frac=float(value("QUEUE_HP_BASE_FRAC")),
        queue_min=int(value("QUEUE_HP_MIN")),
        queue_max=int(value("QUEUE_HP_MAX")),
        queue_perf_per_node=float(value("QUEUE_PERF_PER_HP_NODE")),
        cpu_absolute=truth("CPU_WRITE_ABSOLUTE_CAPS"),
        cpu_watts={
            "performance": float(value("PERFORMANCE_CAP_WATTS")),
            "eco": float(value("ECO_CAP_WATTS")),
        },
        cpu_pct={
            "performance": float(value("CPU_PERFORMANCE_CAP_PCT_OF_MAX")),
            "eco": float(value("CPU_ECO_CAP_PCT_OF_MAX")),
        },
        cpu_min_cap_pct=float(value("CPU_MIN_CAP_PCT")),
        gpu_absolute=truth("GPU_WRITE_ABSOLUTE_CAPS"),
        gpu_pct={
            "performance": float(value("GPU_PERFORMANCE_CAP_PCT_OF_MAX")),
            "eco": float(value("GPU_ECO_CAP_PCT_OF_MAX")),
        },
        gpu_model_caps=json.loads(value("GPU_MODEL_CAPS_JSON")),
        gpu_label_keys=[key.strip() for key in value("GPU_PRODUCT_LABEL_KEYS").split(",") if key.strip()],
        ambient_c=float(value("AMBIENT_TEMP_C")) if ambient is None else ambient,
        reference_node_w=None if reference == "auto" else float(reference),
        rack_capacity_w=float(value("RACK_CAPACITY_WATTS")),
        stale_after_s=parse_duration(value("TWIN_STALENESS_THRESHOLD")),
        weigh_by_pue=truth("ENABLE_FACILITY_METRICS"),
        cpu_coefficient=float(value("MARGINAL_CPU_UTIL_COEFF")),
        gpu_coefficient={
            "standard": float(value("MARGINAL_GPU_UTIL_COEFF_STANDARD")),
            "performance": float(value("MARGINAL_GPU_UTIL_COEFF_PERFORMANCE")),
        },
    )

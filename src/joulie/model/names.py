"""Labels, annotations and resource names that the outside world agrees on."""

from __future__ import annotations

from typing import Final, Literal

GROUP: Final = "joulie.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

MANAGED_LABEL: Final = f"{GROUP}/managed"
RESERVED_LABEL: Final = f"{GROUP}/reserved"
POWER_PROFILE_LABEL: Final = f"{GROUP}/power-profile"
DRAINING_LABEL: Final = f"{GROUP}/draining"
RACK_LABEL: Final = f"{GROUP}/rack"
COOLING_ZONE_LABEL: Final = f"{GROUP}/cooling-zone"
CPU_MODEL_LABEL: Final = f"{GROUP}/hw.cpu-model"
CPU_SOCKETS_LABEL: Final = f"{GROUP}/hw.cpu-sockets"
GPU_MODEL_LABEL: Final = f"{GROUP}/hw.gpu-model"
GPU_COUNT_LABEL: Final = f"{GROUP}/hw.gpu-count"
MAX_WATTS_LABEL: Final = f"{GROUP}/max-watts"
WORKLOAD_CLASS_ANNOTATION: Final = f"{GROUP}/workload-class"
PAUSED_ANNOTATION: Final = f"{GROUP}/paused"  # of a budget: nothing rises while it is "true"
FORGET_ANNOTATION: Final = f"{GROUP}/forget"  # of a budget: deleted nodes that draw nothing any more, with commas

# Nodes may register with this taint, so that no pod starts before their first cap is confirmed.
UNCAPPED_TAINT: Final = f"{GROUP}/uncapped"

BUDGET_LEASE: Final = "joulie-budget"  # renewed by the leader; agents that see no renewal fall back to failsafe caps

# Who wrote which field of an object (metadata.managedFields).
OPERATOR_MANAGER: Final = "joulie-operator"
AGENT_MANAGER: Final = "joulie-agent"
CLI_MANAGER: Final = "joulie-cli"

NVIDIA_GPU: Final = "nvidia.com/gpu"
AMD_GPU: Final = "amd.com/gpu"
WATTS_RESOURCE: Final = f"{GROUP}/watts"  # in a node's capacity, in requests of pods, and their annotation

PERFORMANCE: Final = "performance"
ECO: Final = "eco"
DRAINING: Final = "draining"
UNKNOWN: Final = "unknown"
STANDARD: Final = "standard"

# Where power is read and where caps go, in TelemetryProfiles and in the agent's settings alike.
SourceType = Literal["host", "http", "prometheus", "none"]
ControlType = Literal["host", "http", "none"]
ControlMode = Literal["auto", "rapl", "dvfs"]  # of CPU caps over HTTP: by watts, by throttle, or whichever works

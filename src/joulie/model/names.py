"""Labels, annotations and resource names that the outside world agrees on (SPEC section 2)."""

from __future__ import annotations

from typing import Final

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
WORKLOAD_CLASS_ANNOTATION: Final = f"{GROUP}/workload-class"

NVIDIA_GPU: Final = "nvidia.com/gpu"
AMD_GPU: Final = "amd.com/gpu"

PERFORMANCE: Final = "performance"
ECO: Final = "eco"
DRAINING: Final = "draining"
UNKNOWN: Final = "unknown"
STANDARD: Final = "standard"

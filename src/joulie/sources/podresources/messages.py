"""The answer of kubelet's pod resources API, as far as it is about GPUs.

Protocol buffers, of which only embedded messages and texts are needed; other fields are skipped, also of newer
versions. A library for all of it would be larger than everything else that the agent loads for this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from joulie.model.names import AMD_GPU, NVIDIA_GPU
from joulie.sources.transport import SourceError

# Of device plug-ins, by the name of the resource; slices of a board (nvidia.com/mig-1g.5gb) have names of their own.
GPU_RESOURCES = (NVIDIA_GPU, "nvidia.com/mig-", AMD_GPU, "gpu.intel.com/")
# Of dynamic resource allocation, by the name of the driver.
GPU_DRIVERS = ("gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com")

_VARINT, _FIXED_64, _LENGTH, _FIXED_32 = 0, 1, 2, 5
_VARINT_BITS = 64
# Field numbers of k8s.io/kubelet/pkg/apis/podresources/v1.
_POD_RESOURCES = 1
_POD_NAME, _POD_NAMESPACE, _POD_CONTAINERS = 1, 2, 3
_CONTAINER_NAME, _CONTAINER_DEVICES, _CONTAINER_DYNAMIC = 1, 2, 5
_DEVICES_RESOURCE, _DEVICES_IDS = 1, 2
_DYNAMIC_CLAIMS = 4
_CLAIM_DRIVER, _CLAIM_POOL, _CLAIM_DEVICE = 2, 3, 4


class GpuHolder(NamedTuple):
    """A container and one board, or slice of a board, that kubelet gave to it."""

    namespace: str
    pod: str
    container: str
    resource: str  # or the driver of dynamic resource allocation
    device: str  # as the device plug-in calls it: for NVIDIA the UUID


def gpu_holders(answer: bytes) -> list[GpuHolder]:
    """Every GPU that is in use, from a ListPodResourcesResponse; SourceError where it is none."""
    try:
        return [holder for pod in _parts(answer, _POD_RESOURCES) for holder in _of_pod(pod)]
    except (IndexError, UnicodeDecodeError) as error:
        raise SourceError(f"kubelet's answer cannot be read: {error}") from None


def _of_pod(pod: bytes) -> Iterator[GpuHolder]:
    namespace, name = _text(pod, _POD_NAMESPACE), _text(pod, _POD_NAME)
    for container in _parts(pod, _POD_CONTAINERS):
        for resource, device in _gpus(container):
            yield GpuHolder(namespace, name, _text(container, _CONTAINER_NAME), resource, device)


def _gpus(container: bytes) -> Iterator[tuple[str, str]]:
    for devices in _parts(container, _CONTAINER_DEVICES):
        if (resource := _text(devices, _DEVICES_RESOURCE)).startswith(GPU_RESOURCES):
            for device in _parts(devices, _DEVICES_IDS):
                yield resource, device.decode()
    for dynamic in _parts(container, _CONTAINER_DYNAMIC):
        for claim in _parts(dynamic, _DYNAMIC_CLAIMS):
            if (driver := _text(claim, _CLAIM_DRIVER)) in GPU_DRIVERS:
                yield driver, f"{_text(claim, _CLAIM_POOL)}/{_text(claim, _CLAIM_DEVICE)}"


def _text(message: bytes, number: int) -> str:
    """The last one counts, as protocol buffers say; an absent one is empty."""
    return next(iter(reversed(list(_parts(message, number)))), b"").decode()


def _parts(message: bytes, number: int) -> Iterator[bytes]:
    """The fields of this number that have a length."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            _, at = _varint(message, at)
        elif kind == _LENGTH:
            length, at = _varint(message, at)
            if at + length > len(message):
                raise IndexError("it ends early")
            if key >> 3 == number:
                yield message[at : at + length]
            at += length
        elif kind in (_FIXED_64, _FIXED_32):
            at += 8 if kind == _FIXED_64 else 4
        else:
            raise IndexError(f"a field of the unknown kind {kind}")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, _VARINT_BITS, 7):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # the bit that says that more follows
            return value, at
    raise IndexError("a number without an end")

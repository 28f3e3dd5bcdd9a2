"""The lines of a trace file (docs/reference/traces.md); JSON Lines, one pod or one workload a line."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from joulie.model.kubernetes import Affinity
from joulie.model.names import AMD_GPU, GPU_MODEL_LABEL, NVIDIA_GPU, POWER_PROFILE_LABEL, WORKLOAD_CLASS_ANNOTATION
from joulie.model.quantity import Quantity

MAX_TIME_S = 10 * 366 * 86_400  # ten years: catches Unix time written by mistake
TOO_LONG = "is above ten years"
Time = Annotated[float, Meta(ge=0, le=MAX_TIME_S)]
Units = Annotated[float, Meta(ge=0, le=1e15)]
Share = Annotated[float, Meta(ge=0, le=1)]
Name = Annotated[str, Meta(min_length=1, max_length=253)]


class Requests(Struct, frozen=True, gc=False, rename={"nvidia": NVIDIA_GPU, "amd": AMD_GPU}, omit_defaults=True):
    """Kubernetes quantities; GPUs of both vendors add up."""

    cpu: Quantity = 0
    nvidia: Quantity = 0
    amd: Quantity = 0


class Annotations(
    Struct, frozen=True, gc=False, rename={"workload_class": WORKLOAD_CLASS_ANNOTATION}, omit_defaults=True
):
    workload_class: str = ""


class TraceNodeSelector(
    Struct,
    frozen=True,
    gc=False,
    rename={"gpu_model": GPU_MODEL_LABEL, "power_profile": POWER_PROFILE_LABEL},
    omit_defaults=True,
):
    gpu_model: str = ""
    power_profile: str | None = None


class PodTemplate(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Of a pod's specification what matters here."""

    requests: Requests
    annotations: Annotations = Annotations()
    node_selector: TraceNodeSelector | UnsetType = UNSET
    affinity: Affinity | None = None
    intent_class: str = ""


class Work(Struct, frozen=True, gc=False, rename="camel"):
    """Core-seconds of an EPYC 9654 and GPU-seconds of an H100 SXM, uncapped."""

    cpu_units: Units = 0.0
    gpu_units: Units = 0.0


class Sensitivity(Struct, frozen=True, gc=False):
    """How much of a slowdown by caps it feels."""

    cpu: Share = 1.0
    gpu: Share = 1.0


class WorkloadClass(Struct, frozen=True, gc=False):
    """For people: what bounds the work."""

    cpu: str = ""
    gpu: str = ""


class WorkloadProfile(Struct, frozen=True, gc=False, rename="camel"):
    """What the pod does to what it holds."""

    cpu_utilization: Share = 1.0
    gpu_utilization: Share = 1.0
    memory_intensity: Share = 0.0
    io_intensity: Share = 0.0
    cpu_feed_intensity_gpu: Share = 0.0


class JobRecord(Struct, frozen=True, gc=False, rename="camel", tag_field="type", tag="job"):
    """One pod. Those of a gang share workloadId and the time; what has a default may be left out."""

    job_id: Name
    submit_time_offset_sec: Time
    pod_template: PodTemplate
    work: Work
    workload_id: str = ""
    workload_type: str = "unknown"
    pod_role: str = ""
    gang: bool = False
    namespace: str = ""
    sensitivity: Sensitivity = Sensitivity()
    workload_class: WorkloadClass = WorkloadClass()
    workload_profile: WorkloadProfile = WorkloadProfile()
    deadline_offset_sec: Time | UnsetType = UNSET
    intent_class: str | UnsetType = UNSET  # as other generators write a pod's class


class PodGroup(Struct, frozen=True, gc=False):
    """Equal pods of a workload; what each is stands in the line of its job."""

    replicas: Annotated[int, Meta(ge=0, le=1_000_000)] = 1


class WorkloadRecord(Struct, frozen=True, gc=False, rename="camel", tag_field="type", tag="workload"):
    """What belongs together. `pods` is how many of a gang have to be there, or a list of them by role."""

    workload_id: Name
    workload_type: str = "unknown"
    gang: bool = False
    submit_time_offset_sec: Time = 0.0
    namespace: str = ""
    pods: Annotated[int, Meta(ge=1)] | Annotated[tuple[PodGroup, ...], Meta(min_length=1)] | UnsetType = UNSET

    @property
    def pod_count(self) -> int | None:
        """None where it is not said."""
        if isinstance(self.pods, tuple):
            return sum(max(1, group.replicas) for group in self.pods)  # a group that names none is one pod
        return None if self.pods is UNSET else self.pods


Record = JobRecord | WorkloadRecord
decoder: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


def complaint(error: msgspec.DecodeError) -> tuple[str, str]:
    """Field and reason of what msgspec says: `Expected `float` >= 0.0 - at `$.work.gpuUnits``."""
    reason, _, place = str(error).partition(" - at `$")
    what = place.rstrip("`").lstrip(".")
    if reason.startswith("Object missing required field `"):
        return ".".join(part for part in (what, reason.split("`")[1]) if part), "missing"
    return what, reason[:1].lower() + reason[1:] if what else reason

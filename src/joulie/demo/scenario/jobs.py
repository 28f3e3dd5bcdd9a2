"""The work of a day: which pods come when, what they ask for and how long they would run uncapped. Pure.

A seed and the number of a day give the same jobs, always. A GPU job asks for one model of GPU and a CPU job stays off
GPU nodes, as users' node selectors and taints have it. So the same job does the same work on the same kind of device,
with Joulie and without; a core-second counts alike on every CPU.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import Struct

from joulie.demo.scenario.day import DAY_S, DemoScene, demand
from joulie.model.names import AMD_GPU, GPU_MODEL_LABEL, NVIDIA_GPU, PERFORMANCE, STANDARD, WORKLOAD_CLASS_ANNOTATION
from joulie.model.snapshot import WorkloadClass

NAMESPACE = "demo"
SCHEDULER = "demo-scheduler"
GPU_TAINT = "joulie.io/gpu-only"

CPU_JOBS_PER_S, GPU_JOBS_PER_S = 0.30, 0.16  # at the busiest moment
BEFORE_S = 300.0
PERFORMANCE_SHARE = 0.2
MEDIAN_S, SPREAD = 300.0, 0.6  # log-normal
MIN_DURATION_S, MAX_DURATION_S = 60.0, 1200.0
_CORES = ((16.0, 0.5), (32.0, 0.3), (64.0, 0.2))
_GPUS = ((1.0, 0.80), (2.0, 0.10), (4.0, 0.07), (8.0, 0.03))  # boards of a job, and how often
_CORES_PER_GPU = 8.0
# Model, share of the GPU jobs, boards of a node.
_MODELS = (("H100 SXM", 0.45, 8.0), ("MI300X", 0.3, 8.0), ("L40S", 0.25, 4.0))


class DemoJob(Struct, frozen=True):
    """One pod's worth of work."""

    name: str
    submit_s: float  # of the day
    workload_class: WorkloadClass
    cores: float
    gpus: float
    gpu_model: str  # "": a CPU job
    duration_s: float  # uncapped

    @property
    def key(self) -> str:
        return f"{NAMESPACE}/{self.name}"


@lru_cache(maxsize=8)
def jobs_of_day(seed: int, day: int = 0) -> tuple[DemoJob, ...]:
    """All jobs of a day, by the time of their arrival."""
    chance = np.random.default_rng([seed, day])
    jobs = [*_arrivals(chance, "batch", CPU_JOBS_PER_S, day), *_arrivals(chance, "train", GPU_JOBS_PER_S, day)]
    return tuple(sorted(jobs, key=lambda job: (job.submit_s, job.name)))


def jobs_of_scene(seed: int, scene: DemoScene, day: int = 0) -> tuple[DemoJob, ...]:
    return tuple(job for job in jobs_of_day(seed, day) if scene.begins_s <= job.submit_s < scene.ends_s)


def _arrivals(chance: np.random.Generator, family: str, most_per_s: float, day: int) -> list[DemoJob]:
    """A Poisson process that follows the day's demand, by thinning one at its crest.

    What came shortly before the day waits at its beginning, so that the nodes do not start empty.
    """
    jobs: list[DemoJob] = []
    at_s = -BEFORE_S
    while (at_s := at_s + chance.exponential(1.0 / most_per_s)) < DAY_S:
        if chance.random() < demand(at_s):
            jobs.append(_job(chance, f"{family}-{day}-{len(jobs):04d}", max(0.0, at_s), is_gpu=family == "train"))
    return jobs


def _job(chance: np.random.Generator, name: str, at_s: float, *, is_gpu: bool) -> DemoJob:
    duration_s = min(max(float(chance.lognormal(np.log(MEDIAN_S), SPREAD)), MIN_DURATION_S), MAX_DURATION_S)
    workload_class: WorkloadClass = PERFORMANCE if chance.random() < PERFORMANCE_SHARE else STANDARD
    if not is_gpu:
        return DemoJob(name, at_s, workload_class, _one_of(chance, _CORES), 0.0, "", duration_s)
    model = _one_of(chance, tuple((model, share) for model, share, _ in _MODELS))
    boards = next(boards for name_, _, boards in _MODELS if name_ == model)
    gpus = min(_one_of(chance, _GPUS), boards)
    return DemoJob(name, at_s, workload_class, _CORES_PER_GPU * gpus, gpus, model, duration_s)


def _one_of(chance: np.random.Generator, choices: tuple[tuple[Any, float], ...]) -> Any:
    """One of several by their shares, which add up to 1."""
    left = chance.random()
    for choice, share in choices:
        left -= share
        if left < 0:
            return choice
    return choices[-1][0]


def pod_manifest(job: DemoJob) -> dict[str, Any]:
    """The pod that a user would have sent."""
    requests = {"cpu": f"{job.cores:g}"}
    spec: dict[str, Any] = {"schedulerName": SCHEDULER}
    if job.gpus:
        requests[AMD_GPU if job.gpu_model.startswith("MI") else NVIDIA_GPU] = f"{job.gpus:g}"
        spec["nodeSelector"] = {GPU_MODEL_LABEL: label_of(job.gpu_model)}
        spec["tolerations"] = [{"key": GPU_TAINT, "operator": "Exists"}]
    container = {"name": "work", "image": "demo", "resources": {"requests": requests, "limits": dict(requests)}}
    return {
        "metadata": {
            "name": job.name,
            "namespace": NAMESPACE,
            "annotations": {WORKLOAD_CLASS_ANNOTATION: job.workload_class},
        },
        "spec": {**spec, "containers": [container]},
    }


def label_of(model: str) -> str:
    """A model's name as a label may hold it."""
    return model.replace(" ", "-")

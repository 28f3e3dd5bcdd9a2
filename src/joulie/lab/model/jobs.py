"""The work of a run as arrays: jobs by the time they come, and the pods that each is made of.

A gang is one job with several pods, which start together and get on only as fast as the slowest. All amounts are of one
pod. One cpuUnit is a core-second of an uncapped EPYC 9654, one gpuUnit a GPU-second of an uncapped H100 SXM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]

ANY_MODEL = -1


@dataclass(frozen=True, slots=True)
class JobTable:
    """Job j has the pods first_pod[j] to first_pod[j + 1]; jobs are sorted by `submit_s`."""

    # One element a job.
    submit_s: Numbers  # from the beginning of the run
    deadline_s: Numbers  # from the beginning of the run; NaN: none
    family: Codes  # place in `families`
    first_pod: Codes  # one element more than there are jobs
    # One element a pod.
    cores: Numbers
    gpus: Codes
    gpu_model: Codes  # place in `gpu_models`, or ANY_MODEL
    performance: Flags  # joulie.io/workload-class: performance
    cpu_units: Numbers
    gpu_units: Numbers
    cpu_utilisation: Numbers  # of the cores that it holds, 0 to 1
    gpu_utilisation: Numbers
    memory_intensity: Numbers
    io_intensity: Numbers
    feed_intensity: Numbers  # cpuFeedIntensityGpu
    cpu_sensitivity: Numbers  # how much of a slowdown by caps it feels, 1: all of it
    gpu_sensitivity: Numbers

    families: tuple[str, ...]
    gpu_models: tuple[str, ...]
    ids: Sequence[str] = ()  # of each job, where a file names them

    def __len__(self) -> int:
        return len(self.submit_s)

    @property
    def pods(self) -> int:
        return len(self.cores)

    def id_of(self, job: int) -> str:
        return self.ids[job] if self.ids else f"job-{job:07d}"

    @property
    def job_of_pod(self) -> NDArray[np.intp]:
        return np.repeat(np.arange(len(self)), np.diff(self.first_pod))

    @property
    def reference_s(self) -> Numbers:
        """How long each job runs on reference devices, uncapped: its longest pod."""
        cpu_s = np.divide(self.cpu_units, self.cores, out=np.zeros(self.pods), where=self.cores > 0)
        gpu_s = np.divide(self.gpu_units, self.gpus, out=np.zeros(self.pods), where=self.gpus > 0)
        return np.maximum.reduceat(np.maximum(cpu_s, gpu_s), self.first_pod[:-1]) if len(self) else np.zeros(0)

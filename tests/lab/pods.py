"""Jobs, pod by pod, for tests that care about each of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from joulie.lab.model.jobs import ANY_MODEL, JobTable, Numbers

PROFILE = (
    *("cpu_utilisation", "gpu_utilisation", "memory_intensity", "io_intensity", "feed_intensity"),
    *("cpu_sensitivity", "gpu_sensitivity"),
)


def table(pods: list[dict[str, float]], models: tuple[str, ...] = (), gang: bool = False) -> JobTable:
    """A job for each pod, or one gang of all; what is not said is 0, and all of a slowdown is felt."""
    usual = dict.fromkeys((*PROFILE, "submit_s", "cores", "gpus", "cpu_units", "gpu_units"), 0.0)
    usual |= {"cpu_sensitivity": 1.0, "gpu_sensitivity": 1.0, "gpu_model": float(ANY_MODEL)}

    def column(name: str) -> Numbers:
        return np.asarray([(usual | pod)[name] for pod in pods])

    jobs = 1 if gang else len(pods)
    profile: dict[str, Any] = {name: column(name) for name in PROFILE}
    return JobTable(
        submit_s=column("submit_s")[:jobs],
        deadline_s=np.full(jobs, np.nan),
        family=np.zeros(jobs, np.int32),
        first_pod=np.asarray([0, len(pods)] if gang else range(jobs + 1), np.int32),
        cores=column("cores"),
        gpus=column("gpus").astype(np.int32),
        gpu_model=column("gpu_model").astype(np.int32),
        performance=np.zeros(len(pods), bool),
        cpu_units=column("cpu_units"),
        gpu_units=column("gpu_units"),
        **profile,
        families=("any",),
        gpu_models=models,
    )

"""The families of generated work: how often they come, how long they run, and what they do to a node.

Shares and GPU counts are those of docs/reference/traces.md. Durations and profiles are ours: medians and tails of the
size that published traces of such clusters show, not measurements. A family has a few dozen applications, whose
profiles are spread evenly around the family's; a job is one of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joulie.lab.model.jobs import Numbers


class Profile(NamedTuple):
    """What a pod does while it runs, each from 0 to 1."""

    cpu_utilisation: float
    gpu_utilisation: float
    memory_intensity: float
    io_intensity: float
    feed_intensity: float


class Family(NamedTuple):
    """Durations are seconds on reference devices: a log-normal distribution, clamped."""

    name: str
    gpu_work: bool
    share: float  # of GPU workloads, or of CPU workloads
    median_s: float
    sigma: float  # of the logarithm
    shortest_s: float
    longest_s: float
    profile: Profile


MINUTE_S, HOUR_S = 60.0, 3600.0

FAMILIES = (
    Family("debug_eval", True, 0.45, 4 * MINUTE_S, 1.2, 10.0, HOUR_S, Profile(0.45, 0.55, 0.30, 0.20, 0.30)),
    Family(
        "single_gpu_training", True, 0.25, 30 * MINUTE_S, 1.3, 2 * MINUTE_S, 8 * HOUR_S,
        Profile(0.50, 0.90, 0.35, 0.15, 0.35),
    ),
    Family(
        "distributed_training", True, 0.14, 45 * MINUTE_S, 1.2, 5 * MINUTE_S, 8 * HOUR_S,
        Profile(0.45, 0.90, 0.40, 0.15, 0.25),
    ),
    Family(
        "parameter_server_training", True, 0.07, 40 * MINUTE_S, 1.2, 5 * MINUTE_S, 8 * HOUR_S,
        Profile(0.55, 0.85, 0.40, 0.20, 0.40),
    ),
    Family(
        "hpo_experiment", True, 0.09, 15 * MINUTE_S, 1.0, MINUTE_S, 2 * HOUR_S,
        Profile(0.45, 0.80, 0.30, 0.15, 0.30),
    ),
    Family("cpu_preprocess", False, 0.75, 12 * MINUTE_S, 1.2, 15.0, 4 * HOUR_S, Profile(0.85, 0.0, 0.35, 0.45, 0.0)),
    Family("cpu_analytics", False, 0.25, 40 * MINUTE_S, 1.3, 30.0, 8 * HOUR_S, Profile(0.80, 0.0, 0.60, 0.20, 0.0)),
)  # fmt: skip
NAMES = tuple(family.name for family in FAMILIES)
DEBUG, SINGLE, DISTRIBUTED, PARAMETER_SERVER, HPO, PREPROCESS, ANALYTICS = range(len(FAMILIES))
SERVER_PROFILE = Profile(0.50, 0.0, 0.60, 0.30, 0.0)  # the pods of a parameter server

GPU_COUNTS = np.array([1, 2, 4, 8])
GPU_COUNT_SHARES = np.array([0.80, 0.10, 0.07, 0.03])
# Few sizes make few pod shapes, and a scheduler that keeps the best node for each shape fast.
CORES = {
    PREPROCESS: (np.array([4.0, 8.0, 16.0, 32.0]), np.array([0.35, 0.35, 0.20, 0.10])),
    ANALYTICS: (np.array([16.0, 32.0, 64.0]), np.array([0.50, 0.35, 0.15])),
}
MAX_CORES_PER_GPU = 8.0
SERVER_CORES = 8.0
GANG_SIZES, GANG_SHARES = np.array([2, 4, 8]), np.array([0.6, 0.3, 0.1])
WORKERS_PER_SERVER = 4
TRIALS, TRIAL_SHARES = np.array([4, 8, 16]), np.array([0.5, 0.35, 0.15])

APPLICATIONS = 32
SPREAD = 0.1  # of an application's figure around its family's, at most


def applications() -> dict[str, Numbers]:
    """By column: families (and, last, parameter servers) × applications; the same in every trace."""
    rng = np.random.default_rng(10)
    steps = (np.arange(APPLICATIONS) + 0.5) / APPLICATIONS * 2 - 1
    profiles = np.array([family.profile for family in FAMILIES] + [SERVER_PROFILE])
    tables = {}
    for place, name in enumerate(Profile._fields):
        means = profiles[:, place]
        varied = np.stack([mean + SPREAD * rng.permutation(steps) for mean in means])
        tables[name] = np.where(means[:, None] > 0, np.clip(varied, 0.0, 1.0), 0.0)
    return tables

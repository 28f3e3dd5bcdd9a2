"""Jobs by chance for tests: few words, every field under control."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from joulie.lab.model.jobs import ANY_MODEL, JobTable
from joulie.lab.simulation.custom_ranking import RankView

Numbers = NDArray[np.float64]
T = TypeVar("T", bound=np.generic)


def table(
    submit_s: Sequence[float] | Numbers,
    lasts_s: Sequence[float] | Numbers,
    cores: float | Sequence[float] | Numbers = 1.0,
    *,
    gpus: int | Sequence[int] | NDArray[np.int64] = 0,
    pods: int | Sequence[int] | NDArray[np.int64] = 1,
    gpu_model: int | Sequence[int] | NDArray[np.int64] = ANY_MODEL,
    gpu_models: tuple[str, ...] = (),
    performance: bool | Sequence[bool] | NDArray[np.bool_] = False,
    utilisation: float = 0.5,
) -> JobTable:
    """Jobs that take so long on reference devices; every argument is one value for all jobs, or one for each.

    All pods of a job are alike.
    """
    submit = np.asarray(submit_s, dtype=np.float64)
    count = len(submit)
    pods_of = np.broadcast_to(np.asarray(pods, dtype=np.int64), count)

    def each(value: Any, kind: type[T]) -> NDArray[T]:
        """By pod, from one value or one a job."""
        return np.repeat(np.broadcast_to(np.asarray(value, dtype=kind), count), pods_of)

    of_pod_cores, of_pod_gpus = each(cores, np.float64), each(gpus, np.int32)
    seconds, numbers = each(lasts_s, np.float64), int(pods_of.sum())

    def all_pods(value: float) -> Numbers:
        return np.full(numbers, value)

    return JobTable(
        submit_s=submit,
        deadline_s=np.full(count, np.nan),
        family=np.zeros(count, dtype=np.int32),
        first_pod=np.concatenate([[0], np.cumsum(pods_of)]).astype(np.int32),
        cores=of_pod_cores,
        gpus=of_pod_gpus,
        gpu_model=each(gpu_model, np.int32),
        performance=each(performance, np.bool_),
        cpu_units=np.where(of_pod_gpus > 0, 0.0, of_pod_cores * seconds),
        gpu_units=of_pod_gpus * seconds,
        cpu_utilisation=all_pods(utilisation),
        gpu_utilisation=all_pods(utilisation),
        memory_intensity=all_pods(0.2),
        io_intensity=all_pods(0.1),
        feed_intensity=all_pods(0.1),
        cpu_sensitivity=all_pods(1.0),
        gpu_sensitivity=all_pods(1.0),
        families=("work",),
        gpu_models=gpu_models,
    )


def mixed(seed: int, count: int = 300, every_s: float = 60.0, models: tuple[str, ...] = ()) -> JobTable:
    """CPU and GPU jobs of many sizes, some of them gangs; for performance nodes, or for a model, but never for both."""
    chance = np.random.default_rng([seed, 1])
    on_gpus = chance.random(count) < (0.4 if models else 0.0)
    sizes = chance.choice([1, 2, 4], count, p=[0.6, 0.3, 0.1])
    insists = on_gpus & (chance.random(count) < 0.5)
    return table(
        np.cumsum(chance.exponential(every_s, count)),
        chance.lognormal(6.0, 1.0, count),
        np.where(on_gpus, 4.0 * sizes, chance.integers(1, 96, count)),
        gpus=np.where(on_gpus, sizes, 0),
        pods=chance.choice([1, 1, 1, 2, 3], count),
        gpu_model=np.where(insists, chance.integers(0, max(1, len(models)), count), ANY_MODEL),
        gpu_models=models,
        performance=~insists & (chance.random(count) < 0.2),
    )


class Fullest:
    """A ranking in Python: the node with the fewest free cores."""

    def rank(self, view: RankView) -> Numbers:
        return -view.free_cores

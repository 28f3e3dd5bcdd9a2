"""One pass over the pods: which hold the guard, how many ask for performance, what they draw where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from joulie.control.classify import is_performance_only
from joulie.model.names import PERFORMANCE
from joulie.model.snapshot import Pod
from joulie.physics.hardware import Machine
from joulie.physics.marginal import inverse, marginal_power_w, share
from joulie.settings import MarginalSettings

Numbers = NDArray[np.float64]


class MachineColumns(Struct, frozen=True):
    """The numbers of many machines as arrays, one element a machine."""

    cpu_max_w: Numbers
    gpu_max_w: Numbers
    inverse_cores: Numbers
    inverse_gpus: Numbers

    @classmethod
    def of(cls, machines: Sequence[Machine]) -> MachineColumns:
        return cls(
            np.array([machine.cpu_max_w for machine in machines], dtype=np.float64),
            np.array([machine.gpu_max_w for machine in machines], dtype=np.float64),
            inverse(np.array([machine.share_cores for machine in machines], dtype=np.float64)),
            inverse(np.array([machine.share_gpus for machine in machines], dtype=np.float64)),
        )


class Survey(Struct, frozen=True):
    """What the pods mean for the nodes of an index."""

    performance_pods: int  # active in the whole cluster, pending ones and nodes out of scope included
    performance_pods_on: Sequence[int]  # by node: these hold the guard, terminating ones included
    marginal_w_on: Numbers  # by node: what the pods bound there draw


def survey(
    pods: Iterable[Pod],
    index: Mapping[str, int],
    columns: MachineColumns,
    profile_label: str,
    settings: MarginalSettings,
) -> Survey:
    """Finished pods count for nothing; terminating ones still hold the guard and still draw power."""
    demand = 0
    holding = [0] * len(index)
    bound: list[Pod] = []
    rows: list[int] = []
    for pod in pods:
        if pod.finished:
            continue
        row = index.get(pod.node, -1) if pod.node else -1
        if row >= 0:
            bound.append(pod)
            rows.append(row)
        if is_performance_only(pod, profile_label):
            demand += not pod.terminating
            if row >= 0:
                holding[row] += 1
    return Survey(demand, holding, added_power_w(bound, rows, columns, settings))


def added_power_w(
    pods: Sequence[Pod], rows: Sequence[int], columns: MachineColumns, settings: MarginalSettings
) -> Numbers:
    """The marginal power of pods, added up by the row of the node that each is bound to.

    Summed in order of size, so that the order of the pods cannot change the last digit.
    """
    row = np.array(rows, dtype=np.intp)
    cores = np.array([pod.cpu_cores for pod in pods], dtype=np.float64)
    gpus = np.array([pod.gpus for pod in pods], dtype=np.float64)
    performance = np.array([pod.workload_class == PERFORMANCE for pod in pods], dtype=np.bool_)
    gpu_coeff = np.where(performance, settings.gpu_coeff_performance, settings.gpu_coeff_standard)
    watts = marginal_power_w(
        share(cores, columns.inverse_cores[row]),
        share(gpus, columns.inverse_gpus[row]),
        settings.cpu_coeff * columns.cpu_max_w[row],
        gpu_coeff * columns.gpu_max_w[row],
    )
    order = np.lexsort((watts, row))
    return np.bincount(row[order], watts[order], len(columns.cpu_max_w)).astype(np.float64, copy=False)

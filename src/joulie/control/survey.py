"""One pass over the pods: which hold the guard, how many ask for performance, what they draw where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from joulie.control.classify import is_eco_only, is_performance_only
from joulie.model.names import PERFORMANCE
from joulie.model.snapshot import Pod
from joulie.physics.hardware import Machine
from joulie.physics.marginal import inverse, marginal_power_w, share
from joulie.settings import MarginalSettings

Numbers = NDArray[np.float64]

NANOWATTS = 2.0**30  # a power of two near 10⁹: multiplying by it and dividing changes no other digit


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


class DemandByClass(Struct, frozen=True, rename="camel"):
    """Active pods of the whole cluster by what they ask of a node, pending ones and nodes out of scope included."""

    performance_only: int = 0
    eco_only: int = 0
    general: int = 0


class Survey(Struct, frozen=True):
    """What the pods mean for the nodes of an index."""

    demand: DemandByClass
    performance_pods_on: Sequence[int]  # by node: these hold the guard, terminating ones included
    marginal_w_on: Numbers  # by node: what the pods bound there draw


def survey(
    pods: Iterable[Pod],
    index: Mapping[str, int],
    columns: MachineColumns,
    profile_label: str,
    settings: MarginalSettings,
) -> Survey:
    """Finished pods count for nothing; terminating ones still hold the guard and still draw power.

    One pass: a large cluster's pods do not fit into the processor's cache, so looking at each of them is what costs.
    """
    active = performance = eco = 0
    holding = [0] * len(index)
    bound = BoundPods()
    row_of = index.get
    take_row, take_cores, take_gpus = bound.rows.append, bound.cores.append, bound.gpus.append
    take_class = bound.classes.append
    for pod in pods:
        if pod.finished:
            continue
        row = row_of(pod.node, -1)
        if row >= 0:
            take_row(row)
            take_cores(pod.cpu_cores)
            take_gpus(pod.gpus)
            take_class(pod.workload_class)
        active += not pod.terminating
        if is_performance_only(pod, profile_label):
            performance += not pod.terminating
            if row >= 0:
                holding[row] += 1
        elif is_eco_only(pod, profile_label):
            eco += not pod.terminating
    demand = DemandByClass(performance, eco, active - performance - eco)
    return Survey(demand, holding, bound.added_power_w(columns, settings))


class BoundPods:
    """What pods that are bound to nodes ask for, collected by the row of their node."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.cores: list[float] = []
        self.gpus: list[float] = []
        self.classes: list[str] = []

    def add(self, row: int, pod: Pod) -> None:
        self.rows.append(row)
        self.cores.append(pod.cpu_cores)
        self.gpus.append(pod.gpus)
        self.classes.append(pod.workload_class)

    def added_power_w(self, columns: MachineColumns, settings: MarginalSettings) -> Numbers:
        """Their marginal power, added up by row.

        Each pod's is taken to the nanowatt: sums of such numbers are exact below some megawatts, so that the order
        of the pods cannot change the last digit.
        """
        row = np.array(self.rows, dtype=np.intp)
        performance = np.array([name == PERFORMANCE for name in self.classes], dtype=np.bool_)
        gpu_coeff = np.where(performance, settings.gpu_coeff_performance, settings.gpu_coeff_standard)
        watts = marginal_power_w(
            share(np.array(self.cores, dtype=np.float64), columns.inverse_cores[row]),
            share(np.array(self.gpus, dtype=np.float64), columns.inverse_gpus[row]),
            settings.cpu_coeff * columns.cpu_max_w[row],
            gpu_coeff * columns.gpu_max_w[row],
        )
        exact = np.rint(watts * NANOWATTS) / NANOWATTS
        return np.bincount(row, exact, len(columns.cpu_max_w)).astype(np.float64, copy=False)

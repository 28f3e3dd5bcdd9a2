"""Pods as they stand in a file to jobs: gangs put together, order and completeness checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joulie.lab.model.jobs import Codes, Flags, JobTable, Numbers
from joulie.lab.traces.remarks import Remarks

TIME = "submitTimeOffsetSec"


@dataclass(slots=True)
class Pods:
    """One element a pod, in the order of the file."""

    line: NDArray[np.int64]
    key: list[str]  # of the job: pods of a gang share it
    gang: Flags
    submit_s: Numbers
    deadline_s: Numbers
    family: Codes
    cores: Numbers
    gpus: Codes
    gpu_model: Codes
    performance: Flags
    cpu_units: Numbers
    gpu_units: Numbers
    cpu_utilisation: Numbers
    gpu_utilisation: Numbers
    memory_intensity: Numbers
    io_intensity: Numbers
    feed_intensity: Numbers
    cpu_sensitivity: Numbers
    gpu_sensitivity: Numbers
    bad: Flags

    def __len__(self) -> int:
        return len(self.line)

    @staticmethod
    def joined(parts: Sequence[Pods]) -> Pods:
        """One after the other."""
        columns: dict[str, Any] = {}
        for part in fields(Pods):
            if part.name == "key":
                columns["key"] = [key for one in parts for key in one.key]
            else:
                columns[part.name] = np.concatenate([getattr(one, part.name) for one in parts])
        return Pods(**columns)

    def reject(
        self, places: NDArray[np.intp], what: str, reason: Callable[[int], str], origin: str, remarks: Remarks
    ) -> None:
        """Notes these pods as bad, unless they were before."""
        for pod in places[~self.bad[places]].tolist():
            self.bad[pod] = True
            remarks.bad(f"{origin}:{self.line[pod]}", what, reason(pod))


def table(
    pods: Pods,
    expected: Mapping[str, tuple[int, int]],
    families: tuple[str, ...],
    gpu_models: tuple[str, ...],
    origin: str,
    remarks: Remarks,
) -> tuple[JobTable, NDArray[np.int64]]:
    """The jobs, and the line of each of their pods; `expected` has line and number of pods of gangs."""
    _check_order(pods, origin, remarks)
    head = _heads(pods, origin, remarks)
    bad_jobs = np.unique(head[pods.bad])
    bad_jobs = np.union1d(bad_jobs, _incomplete(pods, head, expected, origin, remarks))
    bad_jobs = np.union1d(bad_jobs, _idle(pods, head, bad_jobs, origin, remarks))
    order = np.argsort(head, kind="stable")
    order = order[~np.isin(head[order], bad_jobs)] if len(bad_jobs) else order
    if not len(order):
        raise remarks.no_job(origin)
    heads, first_pod = np.unique(head[order], return_index=True)
    first_pod = np.append(first_pod, len(order))
    per_pod = {part.name: getattr(pods, part.name)[order] for part in fields(JobTable) if part.name in _PER_POD}
    jobs = JobTable(
        submit_s=pods.submit_s[heads],
        deadline_s=pods.deadline_s[heads],
        family=pods.family[heads],
        first_pod=first_pod.astype(np.int32),
        **per_pod,
        families=families,
        gpu_models=gpu_models,
        ids=[pods.key[pod] for pod in heads.tolist()],
    )
    return jobs, pods.line[order]


_PER_POD = {part.name for part in fields(Pods)} - {"line", "key", "gang", "submit_s", "deadline_s", "family", "bad"}


def _check_order(pods: Pods, origin: str, remarks: Remarks) -> None:
    """Time must not go backwards from line to line; a line that was skipped does not count."""
    submit_s = np.where(pods.bad, -np.inf, pods.submit_s)
    before_s = np.concatenate([[-np.inf], np.maximum.accumulate(submit_s)[:-1]])
    backwards = np.flatnonzero(pods.submit_s < before_s)

    def reason(pod: int) -> str:
        return f"time goes backwards, from {before_s[pod]:.12g} to {pods.submit_s[pod]:.12g}"

    pods.reject(backwards, TIME, reason, origin, remarks)


def _heads(pods: Pods, origin: str, remarks: Remarks) -> NDArray[np.intp]:
    """Of each pod the first pod of its job."""
    head = np.arange(len(pods))
    first: dict[str, int] = {}
    for pod in np.flatnonzero(pods.gang).tolist():
        head[pod] = first.setdefault(pods.key[pod], pod)
    apart = np.flatnonzero(pods.submit_s != pods.submit_s[head])

    def other_time(pod: int) -> str:
        return f"{pods.submit_s[pod]:.12g}, but gang {pods.key[pod]!r} comes at {pods.submit_s[head[pod]]:.12g}"

    pods.reject(apart, TIME, other_time, origin, remarks)
    heads = np.flatnonzero(head == np.arange(len(pods)))
    if len(set(pods.key)) < len(heads):
        seen: dict[str, int] = {}
        again = [pod for pod in heads.tolist() if seen.setdefault(pods.key[pod], pod) != pod]

        def twice(pod: int) -> str:
            return f"{pods.key[pod]!r} is in line {pods.line[seen[pods.key[pod]]]} already"

        pods.reject(np.asarray(again, np.intp), "jobId", twice, origin, remarks)
    return head


def _incomplete(
    pods: Pods, head: NDArray[np.intp], expected: Mapping[str, tuple[int, int]], origin: str, remarks: Remarks
) -> list[int]:
    """Gangs of which the file has fewer or more pods than it says."""
    if not expected:
        return []
    gangs = np.flatnonzero(pods.gang)
    counts = dict(zip(*(part.tolist() for part in np.unique(head[gangs], return_counts=True)), strict=True))
    by_key = {pods.key[pod]: pod for pod in counts}
    wrong = []
    for key, (line, said) in expected.items():
        found = counts[by_key[key]] if key in by_key else 0
        if found != said:
            remarks.bad(f"{origin}:{line}", "pods", f"gang {key!r} has {said}, but {found} are there")
            wrong += [by_key[key]] if key in by_key else []
    return wrong


def _idle(
    pods: Pods, head: NDArray[np.intp], bad_jobs: NDArray[np.intp], origin: str, remarks: Remarks
) -> NDArray[np.intp]:
    """Gangs without any work; a single pod of one may have none."""
    heads = np.unique(head)
    work = np.bincount(head, weights=pods.cpu_units + pods.gpu_units, minlength=len(pods))
    idle: NDArray[np.intp] = np.setdiff1d(heads[work[heads] <= 0], bad_jobs)
    for pod in idle.tolist():
        remarks.bad(f"{origin}:{pods.line[pod]}", "work", f"gang {pods.key[pod]!r} has none in any of its pods")
    return idle

"""Pods of Alibaba's GPU clusters (cluster-trace-gpu-v2023): `openb_pod_list_*.csv`, comma-separated.

A pod comes at `creation_time`, asks for `cpu_milli` and `num_gpu`, and runs from `scheduled_time` to `deletion_time`,
all in seconds. A pod that shares a board (`gpu_milli` below 1000) holds a whole one here, as busy as its share: the
lab has no parts of boards. Which model it wants (`gpu_spec`) is not kept, for a cluster of other boards could run
none of them. Latency-sensitive pods (`qos` LS) are of class performance. Pods that were never scheduled, or not
deleted within the trace, are left out and counted.
"""

from __future__ import annotations

from typing import IO

import numpy as np
from numpy.typing import NDArray

from joulie.lab.model.jobs import Flags, Numbers
from joulie.lab.traces.families import FAMILIES, SINGLE
from joulie.lab.traces.formats.columns import LATEST_S, RequestColumns, jobs_of_requests, numbers, read_csv, refuse
from joulie.lab.traces.formats.jsonl import MAX_CORES, Read
from joulie.lab.traces.formats.records import MAX_TIME_S, TOO_LONG
from joulie.lab.traces.remarks import Remarks

NUMBERS = ("cpu_milli", "num_gpu", "creation_time")
MAYBE = ("gpu_milli", "deletion_time", "scheduled_time")  # empty for some pods
TEXTS = ("name", "gpu_spec", "qos", *MAYBE)
MAX_GPUS = 64  # of a pod
WHOLE = 1000.0  # thousandths of a board
LATENCY_SENSITIVE = "LS"


def read_alibaba(file: IO[bytes], origin: str, remarks: Remarks) -> Read:
    """In the order of creation; InputError names file, line and field."""
    rows = read_csv(file, origin, remarks, (*NUMBERS, *TEXTS), text=TEXTS)
    text = dict(zip(TEXTS, rows.texts, strict=True))
    cpu_milli, num_gpu, created_s = (rows.values[:, place] for place in range(len(NUMBERS)))
    shared, deleted_s, scheduled_s = (_maybe(text[name], name, rows.lines, origin, remarks) for name in MAYBE)
    never = (_empty(text["scheduled_time"]) | _empty(text["deletion_time"])) & ~np.isinf(scheduled_s + deleted_s)
    good = ~never & ~np.isinf(shared + deleted_s + scheduled_s)  # what is no number was said already
    shared = np.where(np.isnan(shared), WHOLE, shared)
    run_s = deleted_s - scheduled_s
    for bad, what, reason in (
        ((created_s < 0) | (created_s > LATEST_S), "creation_time", f"is not from 0 to {LATEST_S:,.0f} s"),
        (scheduled_s < created_s, "scheduled_time", "is before creation_time"),
        (run_s < 0, "deletion_time", "is before scheduled_time"),
        (run_s > MAX_TIME_S, "deletion_time", f"{TOO_LONG} of run time"),
        ((num_gpu < 0) | (num_gpu > MAX_GPUS) | (num_gpu != np.floor(num_gpu)), "num_gpu", "is not a number of GPUs"),
        ((shared < 0) | (shared > WHOLE) | ((shared == 0) & (num_gpu > 0)), "gpu_milli", "is not from 1 to 1000"),
        ((cpu_milli < 0) | (cpu_milli > 1000 * MAX_CORES), "cpu_milli", f"is not from 0 to {1000 * MAX_CORES:,}"),
        ((cpu_milli == 0) & (num_gpu == 0), "cpu_milli", "asks for neither CPU nor GPU"),
    ):
        good &= refuse(bad & good, rows.lines, origin, what, reason, remarks)
    good &= _once(text["name"], good, rows.lines, origin, remarks)
    order = np.flatnonzero(good)[np.argsort(created_s[good], kind="stable")]
    far = created_s[order] - created_s[order][:1] > MAX_TIME_S
    order = order[refuse(far, rows.lines[order], origin, "creation_time", "is ten years after the first", remarks)]
    part = (shared < WHOLE) & (num_gpu == 1)
    _notes(origin, remarks, int(never.sum()), int(part[order].sum()), [text["gpu_spec"][row] for row in order.tolist()])
    profile, gpus = FAMILIES[SINGLE].profile, num_gpu[order].astype(np.int64)
    jobs = jobs_of_requests(
        RequestColumns(
            submit_s=created_s[order] - created_s[order][:1],
            duration_s=np.maximum(run_s[order], 1.0),
            pods=np.ones(len(order), np.int64),
            cores=cpu_milli[order] / 1000.0,
            gpus=gpus,
            performance=np.asarray([text["qos"][row] == LATENCY_SENSITIVE for row in order.tolist()], bool),
            cpu_utilisation=np.full(len(order), profile.cpu_utilisation),
            gpu_utilisation=profile.gpu_utilisation * np.where(part, shared / WHOLE, 1.0)[order],
            ids=[text["name"][row] for row in order.tolist()],
        ),
        "alibaba",
        profile,
    )
    return Read(jobs, rows.lines[order])


def _empty(cells: list[str]) -> Flags:
    return np.asarray([not cell for cell in cells], bool)


def _maybe(cells: list[str], name: str, lines: NDArray[np.int64], origin: str, remarks: Remarks) -> Numbers:
    """NaN where nothing stands, infinite where no number does."""
    values = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        if cell:
            read = numbers((cell,), ((name, 0),), f"{origin}:{lines[row]}", remarks)
            values[row] = np.inf if read is None else read[0]
    return values


def _once(names: list[str], good: Flags, lines: NDArray[np.int64], origin: str, remarks: Remarks) -> Flags:
    """Which pods are in no line before theirs; one without a name is bad, too."""
    first: dict[str, int] = {}
    rows = np.flatnonzero(good).tolist()
    again = np.zeros(len(names), bool)
    for row in rows:
        again[row] = first.setdefault(names[row], row) != row
    nameless = good & _empty(names)

    def twice(row: int) -> str:
        return f"{names[row][:80]!a} is in line {lines[first[names[row]]]} already"

    kept = refuse(nameless, lines, origin, "name", "is empty", remarks)
    return kept & refuse(again & ~nameless, lines, origin, "name", twice, remarks)


def _notes(origin: str, remarks: Remarks, never: int, part: int, wanted: list[str]) -> None:
    if never:
        remarks.notes.append(f"{origin}: left out {never:,} pods that were never scheduled or not deleted")
    if part:
        remarks.notes.append(f"{origin}: {part:,} pods share a board; here each holds one, as busy as its share")
    if insist := sum(map(bool, wanted)):
        remarks.notes.append(f"{origin}: {insist:,} pods want a GPU model (gpu_spec); here they take any board")

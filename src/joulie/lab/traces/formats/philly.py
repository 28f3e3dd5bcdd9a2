"""Arrivals and GPU counts of Microsoft's Philly clusters: comma-separated `vc,arrival_s,gpus`.

Each virtual cluster counts its time from its own first job; all begin together here. A job becomes one pod, or, above 8
GPUs, a gang of equal pods. Run times stand in a file of their own beside it, `philly_runtime_s.csv` with the column
`runtime`, as a distribution alone: each job gets one drawn from it, so that a large job is no longer than a small one.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from joulie.errors import InputError
from joulie.lab.model.jobs import Flags, Numbers
from joulie.lab.traces.families import FAMILIES, SINGLE
from joulie.lab.traces.formats.columns import (
    Columns,
    RequestColumns,
    backwards,
    jobs_of_requests,
    read_csv,
    refuse,
    refuse_many,
)
from joulie.lab.traces.formats.jsonl import Read
from joulie.lab.traces.formats.records import MAX_TIME_S, TOO_LONG
from joulie.lab.traces.remarks import Remarks

RUNTIMES = "philly_runtime_s.csv"
MAX_GPUS = 8  # of a pod
CORES_PER_GPU = 8.0


def read_philly(file: IO[bytes], path: Path, seed: int, performance_share: float, remarks: Remarks) -> Read:
    """Run times and classes are drawn from the seed."""
    origin = str(path)
    rows = read_csv(file, origin, remarks, ("vc", "arrival_s", "gpus"), text=("vc",))
    line, arrival_s, gpus, cluster = _checked(rows, origin, remarks)
    order = np.argsort(arrival_s, kind="stable")
    line, arrival_s, gpus = line[order], arrival_s[order], gpus[order]
    rng = np.random.default_rng([seed, 4])
    run_s = rng.choice(_runtimes(path.parent / RUNTIMES, remarks), len(line))
    pods = _pods(gpus)
    remarks.notes.append(
        f"{origin}: run times are drawn from the distribution in {RUNTIMES}: which size of job runs how long is lost"
    )
    each = gpus // pods
    profile = FAMILIES[SINGLE].profile
    jobs = jobs_of_requests(
        RequestColumns(
            submit_s=arrival_s,
            duration_s=run_s,
            pods=pods,
            cores=each.astype(float) * CORES_PER_GPU,
            gpus=each,
            performance=rng.random(len(line)) < performance_share,
            cpu_utilisation=np.full(len(line), profile.cpu_utilisation),
            gpu_utilisation=np.full(len(line), profile.gpu_utilisation),
            ids=[f"{cluster[place]}-{number}" for place, number in zip(order.tolist(), line.tolist(), strict=True)],
        ),
        "philly",
        profile,
    )
    return Read(jobs, np.repeat(line, pods))


def _checked(
    rows: Columns, origin: str, remarks: Remarks
) -> tuple[NDArray[np.int64], Numbers, NDArray[np.int64], list[str]]:
    arrival_s, gpus = rows.values[:, 0], rows.values[:, 1]
    good = refuse(arrival_s < 0, rows.lines, origin, "arrival_s", "is negative", remarks)
    good &= refuse(arrival_s > MAX_TIME_S, rows.lines, origin, "arrival_s", TOO_LONG, remarks)
    no_count = (gpus < 1) | (gpus > 4096) | (gpus != np.floor(gpus))
    good &= refuse(no_count & good, rows.lines, origin, "gpus", "is not a number of GPUs", remarks)
    names = rows.texts[0]

    def reason(row: int) -> str:
        return f"time goes backwards within {names[row]!a}"

    good &= refuse(_late(names, arrival_s, good), rows.lines, origin, "arrival_s", reason, remarks)
    places = np.flatnonzero(good)
    places = places[refuse_many(_pods(gpus[places].astype(np.int64)), rows.lines[places], origin, "gpus", remarks)]
    clusters = [names[place] for place in places.tolist()]
    return rows.lines[places], arrival_s[places], gpus[places].astype(np.int64), clusters


def _late(names: list[str], arrival_s: Numbers, good: Flags) -> Flags:
    """Which good rows come before an earlier one of the same virtual cluster."""
    code: dict[str, int] = {}
    cluster = np.asarray([code.setdefault(name, len(code)) for name in names], np.int64)
    _, rank = np.unique(arrival_s, return_inverse=True)
    places = np.flatnonzero(good)
    places = places[np.argsort(cluster[places], kind="stable")]
    late = np.zeros(len(good), bool)
    late[places] = backwards(cluster[places] * len(good) + rank[places])  # a later cluster's are all above
    return late


def _pods(gpus: NDArray[np.int64]) -> NDArray[np.int64]:
    """As few equal pods as have no more than 8 GPUs each: 16 GPUs are 2 × 8, 20 are 4 × 5."""
    pods = np.ones_like(gpus)
    for count in np.unique(gpus).tolist():
        pods[gpus == count] = next(n for n in range(-(-count // MAX_GPUS), count + 1) if count % n == 0)
    return pods


def _runtimes(path: Path, remarks: Remarks) -> Numbers:
    try:
        with path.open("rb") as file:
            rows = read_csv(file, str(path), remarks, ("runtime",))
    except OSError as error:
        raise InputError(f"{path}: the run times cannot be read: {error.strerror}") from None
    run_s = rows.values[:, 0]
    good = refuse(run_s < 0, rows.lines, str(path), "runtime", "is negative", remarks)
    run_s = run_s[good & refuse(run_s > MAX_TIME_S, rows.lines, str(path), "runtime", TOO_LONG, remarks)]
    if not len(run_s):
        raise InputError(f"{path}: holds no run time")
    return np.maximum(run_s, 1.0)

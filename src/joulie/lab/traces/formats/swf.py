"""Standard Workload Format: 18 numbers a line, -1 where something is not known, comments after `;`.

A job becomes one pod of as many cores as it had processors, or, above 64, a gang of equal pods. What never ran
(cancelled before it started) and lines that repeat parts of a checkpointed job are left out. A run of 0 s lasted less
than the log's second and counts as 1 s. Time begins with the first job.
"""

from __future__ import annotations

from array import array
from typing import IO

import numpy as np
from numpy.typing import NDArray

from joulie.lab.model.jobs import Flags, Numbers
from joulie.lab.traces.families import Profile
from joulie.lab.traces.formats.columns import (
    LATEST_S,
    RequestColumns,
    jobs_of_requests,
    numbers,
    refuse,
    refuse_many,
    refuse_times,
    text_lines,
)
from joulie.lab.traces.formats.jsonl import Read
from joulie.lab.traces.formats.records import MAX_TIME_S, TOO_LONG
from joulie.lab.traces.remarks import Remarks

FIELDS = (
    *("job number", "submit time", "wait time", "run time", "allocated processors", "average CPU time", "used memory"),
    *("requested processors", "requested time", "requested memory", "status", "user", "group", "application", "queue"),
    *("partition", "preceding job", "think time"),
)
PLACE = {name: place for place, name in enumerate(FIELDS)}
MAX_CORES = 64.0  # of a pod
MAX_PROCESSORS = 10_000_000  # of a job; the largest computers have 8 million
CANCELLED, PARTS = 5, (2, 3, 4)
PROFILE = Profile(0.9, 0.0, 0.4, 0.2, 0.0)
UNKNOWN = -1


def read_swf(file: IO[bytes], origin: str, seed: int, performance_share: float, remarks: Remarks) -> Read:
    """Which jobs are of class performance is drawn, for the format does not know."""
    lines, rows = array("q"), array("d")  # a million lines of Python numbers would fill the memory
    every = [(name, place) for place, name in enumerate(FIELDS)]
    for number, text in text_lines(file, origin, remarks):
        cells = text.partition(";")[0].split()
        if not cells:
            continue
        if len(cells) != len(FIELDS):
            remarks.bad(f"{origin}:{number}", "", f"{len(cells)} fields, but the format has {len(FIELDS)}")
            continue
        row = numbers(cells, every, f"{origin}:{number}", remarks)
        if row is not None:
            lines.append(number)
            rows.extend(row)
    line, table = np.array(lines, np.int64), np.array(rows, float).reshape(len(lines), len(FIELDS))

    status, run_s = table[:, PLACE["status"]], table[:, PLACE["run time"]]
    never = (status == CANCELLED) & (run_s <= 0)
    parts = np.isin(status, PARTS)
    line, table = line[~never & ~parts], table[~never & ~parts]
    if never.any() or parts.any():
        remarks.notes.append(
            f"{origin}: left out {never.sum():,} jobs that were cancelled before they ran, and {parts.sum():,} lines "
            "that repeat parts of jobs"
        )
    good = _good(line, table, origin, remarks)
    line, table = line[good], table[good]
    in_order = refuse_times(table[:, PLACE["submit time"]], line, origin, "submit time", remarks)
    line, table = line[in_order], table[in_order]
    once = _once(line, table[:, PLACE["job number"]], origin, remarks)
    line, table = line[once], table[once]
    few = refuse_many(_pods(_processors(table)), line, origin, "allocated processors", remarks)
    return _jobs(line[few], table[few], seed, performance_share)


def _good(line: NDArray[np.int64], table: Numbers, origin: str, remarks: Remarks) -> Flags:
    """Lines each of which is good by itself."""
    number, submit_s, run_s = (table[:, PLACE[name]] for name in ("job number", "submit time", "run time"))
    many = _processors(table) > MAX_PROCESSORS
    allocated = table[:, PLACE["allocated processors"]] > 0
    above = f"are above {MAX_PROCESSORS:,}"
    checks = (
        ((number < 0) | (number > 2**53) | (number != np.floor(number)), "job number", "is not a whole number"),
        (submit_s < 0, "submit time", "is before the start of the log"),
        (submit_s > LATEST_S, "submit time", f"is above {LATEST_S:,.0f} s"),
        (run_s < 0, "run time", "is not known"),
        (run_s > MAX_TIME_S, "run time", TOO_LONG),
        (_processors(table) <= 0, "allocated processors", "are not known, nor requested ones"),
        (many & allocated, "allocated processors", above),
        (many & ~allocated, "requested processors", above),
    )
    good = np.ones(len(line), bool)
    for bad, what, reason in checks:
        good &= refuse(bad & good, line, origin, what, reason, remarks)
    return good


def _once(line: NDArray[np.int64], number: Numbers, origin: str, remarks: Remarks) -> Flags:
    """Lines whose job is in no line before them."""
    _, first, place = np.unique(number, return_index=True, return_inverse=True)
    earlier = first[place]

    def twice(row: int) -> str:
        return f"{number[row]:.0f} is in line {line[earlier[row]]} already"

    return refuse(earlier < np.arange(len(line)), line, origin, "job number", twice, remarks)


def _processors(table: Numbers) -> Numbers:
    allocated, requested = table[:, PLACE["allocated processors"]], table[:, PLACE["requested processors"]]
    return np.where(allocated > 0, allocated, requested)


def _pods(processors: Numbers) -> NDArray[np.int64]:
    return np.ceil(processors / MAX_CORES).astype(np.int64)


def _jobs(line: NDArray[np.int64], table: Numbers, seed: int, performance_share: float) -> Read:
    processors = _processors(table)
    pods = _pods(processors)
    run_s = np.maximum(table[:, PLACE["run time"]], 1.0)
    used_s = table[:, PLACE["average CPU time"]]
    busy = np.where(used_s > 0, np.clip(used_s / run_s, 0.0, 1.0), PROFILE.cpu_utilisation)
    rng = np.random.default_rng([seed, 3])
    jobs = jobs_of_requests(
        RequestColumns(
            submit_s=table[:, PLACE["submit time"]] - table[:1, PLACE["submit time"]],
            duration_s=run_s,
            pods=pods,
            cores=processors / pods,
            gpus=np.zeros(len(table), np.int64),
            performance=rng.random(len(table)) < performance_share,
            cpu_utilisation=busy,
            gpu_utilisation=np.zeros(len(table)),
            ids=[f"swf-{number:.0f}" for number in table[:, PLACE["job number"]].tolist()],
        ),
        "swf",
        PROFILE,
    )
    return Read(jobs, np.repeat(line, pods))

"""Real traces hold numbers in columns: text to arrays, each bad cell with its line, and arrays to jobs."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from joulie.errors import InputError
from joulie.lab.model.jobs import ANY_MODEL, Flags, JobTable, Numbers
from joulie.lab.traces.families import Profile
from joulie.lab.traces.formats.records import MAX_TIME_S
from joulie.lab.traces.remarks import Remarks

LATEST_S = 1e10  # since 1970: the year 2286
MAX_PODS = 20_000_000  # that the lines of a file may become


class Columns(NamedTuple):
    """Rows of a file that hold what they should."""

    lines: NDArray[np.int64]
    values: NDArray[np.float64]  # rows × columns
    texts: list[list[str]]  # of columns that are no numbers


def text_lines(file: IO[bytes], origin: str, remarks: Remarks) -> Iterator[tuple[int, str]]:
    """Lines that hold something, with their numbers."""
    for number, raw in enumerate(file, start=1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError:
            remarks.bad(f"{origin}:{number}", "", "is no UTF-8 text")
            continue
        if line:
            yield number, line


def read_csv(file: IO[bytes], origin: str, remarks: Remarks, names: Sequence[str], text: Sequence[str] = ()) -> Columns:
    """The columns of these names, in this order; those in `text` are kept as they are, all others are numbers."""
    rows = text_lines(file, origin, remarks)
    _, heading = next(rows, (0, ""))
    header = cells_of(heading)
    for name in names:
        if name not in header:
            raise InputError(f"{origin}:1: {name}: missing in the header, which is {heading[:80]!r}")
    lines, values = [], []
    texts: list[list[str]] = [[] for _ in text]
    numeric = [(name, header.index(name)) for name in names if name not in text]
    for number, line in rows:
        cells = line.split(",") if '"' not in line else cells_of(line)
        if len(cells) != len(header):
            remarks.bad(f"{origin}:{number}", "", f"{len(cells)} fields, but the header names {len(header)}")
            continue
        row = numbers(cells, numeric, f"{origin}:{number}", remarks)
        if row is None:
            continue
        lines.append(number)
        values.append(row)
        for place, name in enumerate(text):
            texts[place].append(cells[header.index(name)].strip())
    return Columns(np.asarray(lines, np.int64), np.asarray(values, float).reshape(len(lines), len(numeric)), texts)


def cells_of(line: str) -> list[str]:
    """Of comma-separated values, in quotes or not."""
    try:
        cells = next(csv.reader([line], skipinitialspace=True), [])
    except csv.Error:
        cells = line.split(",")
    return [cell.strip() for cell in cells]


def numbers(
    cells: Sequence[str], wanted: Sequence[tuple[str, int]], place: str, remarks: Remarks
) -> list[float] | None:
    """The numbers of a row, or None where one is none."""
    try:
        row = [float(cells[index]) for _, index in wanted]
        if math.isfinite(sum(row)):  # then each of them is
            return row
    except ValueError:
        pass
    row = []
    for name, index in wanted:
        cell = cells[index].strip()
        try:
            row.append(float(cell))
        except ValueError:
            row.append(math.nan)
        if not math.isfinite(row[-1]):
            remarks.bad(place, name, f"{cell[:40]!a} is not a number" if cell else "is empty")
            return None
    return row


def refuse(
    bad: Flags,
    lines: NDArray[np.int64],
    origin: str,
    what: str,
    reason: str | Callable[[int], str],
    remarks: Remarks,
) -> Flags:
    """Notes bad rows; what is left. The reason may depend on the row."""
    for row in np.flatnonzero(bad).tolist():
        remarks.bad(f"{origin}:{lines[row]}", what, reason if isinstance(reason, str) else reason(row))
    return ~bad


def backwards(times_s: NDArray[np.float64 | np.int64]) -> Flags:
    """Which times are before an earlier one."""
    return np.concatenate([[False], times_s[1:] < np.maximum.accumulate(times_s)[:-1]]) if len(times_s) else times_s > 0


def refuse_times(times_s: Numbers, lines: NDArray[np.int64], origin: str, what: str, remarks: Remarks) -> Flags:
    """Which times are good: none is before an earlier one, nor ten years after the first."""
    far = times_s - times_s[:1] > MAX_TIME_S
    good = refuse(far, lines, origin, what, f"is more than ten years after line {lines[:1].sum()}", remarks)
    late = np.zeros(len(good), bool)
    late[good] = backwards(times_s[good])
    return good & refuse(late, lines, origin, what, "time goes backwards", remarks)


def refuse_many(pods: NDArray[np.int64], lines: NDArray[np.int64], origin: str, what: str, remarks: Remarks) -> Flags:
    """Which rows are good: with all before them they become no more pods than a computer can hold."""
    many = f"makes more than {MAX_PODS:,} pods with the lines before it"
    return refuse(np.cumsum(pods) > MAX_PODS, lines, origin, what, many, remarks)


class RequestColumns(NamedTuple):
    """What jobs of a real trace ask for, one element a job; their pods are alike."""

    submit_s: Numbers
    duration_s: Numbers
    pods: NDArray[np.int64]
    cores: Numbers  # of one pod
    gpus: NDArray[np.int64]
    performance: Flags
    cpu_utilisation: Numbers
    gpu_utilisation: Numbers
    ids: Sequence[str]


def jobs_of_requests(asked: RequestColumns, family: str, profile: Profile) -> JobTable:
    """A table of jobs whose devices count as reference devices: a real trace does not say how fast its were."""
    job = np.repeat(np.arange(len(asked.submit_s)), asked.pods)
    duration_s, cores, gpus = asked.duration_s[job], asked.cores[job], asked.gpus[job].astype(np.int32)
    whole = np.ones(len(job))
    return JobTable(
        submit_s=asked.submit_s,
        deadline_s=np.full(len(asked.submit_s), np.nan),
        family=np.zeros(len(asked.submit_s), np.int32),
        first_pod=np.concatenate([[0], np.cumsum(asked.pods)]).astype(np.int32),
        cores=cores,
        gpus=gpus,
        gpu_model=np.full(len(job), ANY_MODEL, np.int32),
        performance=asked.performance[job],
        cpu_units=np.where(gpus > 0, 0.0, cores * duration_s),
        gpu_units=gpus * duration_s,
        cpu_utilisation=asked.cpu_utilisation[job],
        gpu_utilisation=asked.gpu_utilisation[job],
        memory_intensity=whole * profile.memory_intensity,
        io_intensity=whole * profile.io_intensity,
        feed_intensity=whole * profile.feed_intensity,
        cpu_sensitivity=whole,
        gpu_sensitivity=whole,
        families=(family,),
        gpu_models=(),
        ids=asked.ids,
    )

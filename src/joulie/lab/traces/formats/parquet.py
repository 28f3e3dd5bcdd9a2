"""The records of Joulie's own format as a Parquet file: one row a line, one column a field, nested as in JSON Lines.

For traces of millions of jobs and for tools that read tables. What is wrong is found and said as in JSON Lines, with
the number of the row instead of the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from joulie.errors import InputError, JoulieError
from joulie.lab.model.jobs import JobTable
from joulie.lab.traces.formats.jsonl import Read, gang_of, read_records
from joulie.lab.traces.formats.jsonl_writer import JOBS_AT_ONCE, records
from joulie.lab.traces.formats.records import JobRecord, Record, WorkloadRecord, complaint
from joulie.lab.traces.remarks import Remarks
from joulie.model.names import AMD_GPU, GPU_MODEL_LABEL, NVIDIA_GPU, WORKLOAD_CLASS_ANNOTATION

ROWS_AT_ONCE = 65_536
TYPE = "type"

Progress = Callable[[float], None]


def read_parquet(path: Path, remarks: Remarks) -> Read:
    """InputError names file, row and field, unless bad rows are to be skipped."""
    spoiled: set[str] = set()
    return read_records(_decoded(path, remarks, spoiled), spoiled, str(path), remarks)


def write_parquet(jobs: JobTable, file: IO[bytes], progress: Progress | None = None) -> None:
    """One row a workload and one a pod, as in JSON Lines; what a record leaves out is null."""
    arrow = _pyarrow()
    with arrow.parquet.ParquetWriter(file, _schema(arrow), compression="zstd") as writer:
        for begin in range(0, len(jobs), JOBS_AT_ONCE):
            end = min(begin + JOBS_AT_ONCE, len(jobs))
            rows = [msgspec.to_builtins(record) for record in records(jobs, begin, end)]
            writer.write_table(arrow.Table.from_pylist(rows, schema=_schema(arrow)))
            if progress is not None:
                progress(end / len(jobs))


def _decoded(path: Path, remarks: Remarks, spoiled: set[str]) -> Iterator[tuple[NDArray[np.int64], list[Record]]]:
    """Blocks of records with the numbers of their rows."""
    arrow = _pyarrow()
    known = {TYPE, *(field.encode_name for kind in (JobRecord, WorkloadRecord) for field in _fields(kind))}
    first = 1
    try:
        with arrow.parquet.ParquetFile(path) as file:
            columns = [name for name in file.schema_arrow.names if name in known]
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=columns):
                rows = batch.to_pylist()
                yield _records(rows, first, str(path), remarks, spoiled)
                first += len(rows)
    except (arrow.ArrowException, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: cannot be read as Parquet: {reason}") from None


def _records(
    rows: list[dict[str, Any]], first: int, origin: str, remarks: Remarks, spoiled: set[str]
) -> tuple[NDArray[np.int64], list[Record]]:
    numbers, found = [], []
    for number, row in enumerate(rows, start=first):
        there = {TYPE: "job", **_without_nulls(row)}
        try:
            found.append(msgspec.convert(there, Record))
            numbers.append(number)
        except msgspec.ValidationError as error:
            remarks.bad(f"{origin}:{number}", *complaint(error))
            spoiled |= gang_of(there)
    return np.asarray(numbers, np.int64), found


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    """Fields that a row has no value for are left out, as in JSON Lines."""
    return {
        name: _without_nulls(value) if isinstance(value, dict) else value
        for name, value in row.items()
        if value is not None
    }


def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def _schema(arrow: Any) -> Any:
    text, number = arrow.string(), arrow.float64()

    def struct(kind: Any, *names: str) -> Any:
        return arrow.struct([(name, kind) for name in names])

    template = arrow.struct(
        [
            ("requests", struct(text, "cpu", NVIDIA_GPU, AMD_GPU)),
            ("annotations", struct(text, WORKLOAD_CLASS_ANNOTATION)),
            ("nodeSelector", struct(text, GPU_MODEL_LABEL)),
        ]
    )
    profile = ("cpuUtilization", "gpuUtilization", "memoryIntensity", "ioIntensity", "cpuFeedIntensityGpu")
    return arrow.schema(
        [
            (TYPE, text),
            ("jobId", text),
            ("workloadId", text),
            ("workloadType", text),
            ("podRole", text),
            ("gang", arrow.bool_()),
            ("namespace", text),
            ("submitTimeOffsetSec", number),
            ("deadlineOffsetSec", number),
            ("podTemplate", template),
            ("work", struct(number, "cpuUnits", "gpuUnits")),
            ("sensitivity", struct(number, "cpu", "gpu")),
            ("workloadClass", struct(text, "cpu", "gpu")),
            ("workloadProfile", struct(number, *profile)),
            ("pods", arrow.int64()),
        ]
    )


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise JoulieError("traces in Parquet need pyarrow: pip install 'joulie[lab]'") from None
    return pyarrow

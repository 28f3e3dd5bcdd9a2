"""Results on disk: one folder an experiment, in it one folder a run, written whole or not at all.

A run's folder holds Parquet files: `run.parquet` (one row: measures, and everything needed to run it again),
`jobs.parquet` (one row a job) and `series.parquet` (one row a recorded interval). `experiment.json` holds the
experiment's file and the runs that belong to it: a run is found by the digest of all that decides its result.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from joulie.errors import InputError
from joulie.lab.analysis.measures import Measures
from joulie.lab.model.jobs import Numbers

INDEX, RUNS = "experiment.json", "runs"
RUN, JOBS, SERIES = "run.parquet", "jobs.parquet", "series.parquet"


class Provenance(Struct, frozen=True, kw_only=True):
    """Where a run comes from."""

    facet: str
    variant: str
    seed: int
    key: str  # digest of all that decides the result
    digest: str  # of the result, but for how long the computer took
    jobs_digest: str
    joulie: str  # versions
    code: str  # digest of the sources that compute results
    git_commit: str  # empty: not a repository
    python: str
    numpy: str
    numba: str
    platform: str
    setup: str  # JSON
    trace: str
    remarks: str = ""  # what reading the trace brought up, a line each
    held: str = ""  # caps below what the hardware can hold, a line each


class Planned(Struct, frozen=True):
    """A run that belongs to an experiment."""

    facet: str
    variant: str
    seed: int
    key: str
    tuning: bool = False

    @property
    def folder(self) -> str:
        readable = "".join(char if char.isalnum() and char.isascii() else "-" for char in self.variant)[:40]
        return f"{readable}.{self.seed}.{self.key[:16]}"


class Index(Struct, frozen=True):
    """What `experiment.json` holds."""

    filename: str
    text: str
    planned: tuple[Planned, ...]
    chosen: str = ""  # by tuning
    failed: dict[str, str] = msgspec.field(default_factory=dict)  # reasons, by place


class StoredRun:
    """One run on disk; tables are read when they are looked at."""

    def __init__(self, folder: Path, measures: Measures, provenance: Provenance) -> None:
        self.folder = folder
        self.measures = measures
        self.provenance = provenance

    @cached_property
    def jobs(self) -> dict[str, np.ndarray]:
        """By column: submit_s, start_s, end_s, family, performance, pods, cores, gpus, node (of the first pod),
        backfilled, slowdown, late, and id where the trace names its jobs.
        """
        return _columns(self.folder / JOBS)

    @cached_property
    def series(self) -> dict[str, Numbers]:
        """By column, as `outcome.SERIES` names them."""
        return _columns(self.folder / SERIES)


class Results(Struct, frozen=True):
    """All finished runs of an experiment."""

    index: Index
    runs: dict[str, dict[str, dict[int, StoredRun]]]  # by facet, variant and seed; without those that only tuned
    tuning: dict[str, dict[str, dict[int, StoredRun]]]
    missing: tuple[Planned, ...]


def parquet_bytes(columns: Mapping[str, Any]) -> bytes:
    """A table as the content of a Parquet file."""
    import pyarrow
    import pyarrow.parquet

    sink = BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(dict(columns)), sink, compression="zstd")
    return sink.getvalue()


def run_bytes(measures: Measures, provenance: Provenance) -> bytes:
    """`run.parquet`: one row."""
    row = {**msgspec.to_builtins(provenance), **msgspec.to_builtins(measures)}
    return parquet_bytes({name: [value] for name, value in row.items()})


def write_run(folder: Path, planned: Planned, files: Mapping[str, bytes]) -> None:
    """All files of a run appear at once; a run that is there already is left as it is, unless half of it is gone."""
    runs = folder / RUNS
    runs.mkdir(parents=True, exist_ok=True)
    target = runs / planned.folder
    unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=runs))
    try:
        for name, content in files.items():
            with (unfinished / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        unfinished.chmod(0o755)
        if not finished(folder, planned):
            shutil.rmtree(target, ignore_errors=True)
            unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def write_index(folder: Path, index: Index) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".unfinished-", delete=False) as file:
        file.write(msgspec.json.format(msgspec.json.encode(index), indent=1))
    Path(file.name).chmod(0o644)
    Path(file.name).replace(folder / INDEX)


def read_index(folder: Path) -> Index:
    """InputError where there are no results, or none that can be read."""
    try:
        return msgspec.json.decode((folder / INDEX).read_bytes(), type=Index)
    except FileNotFoundError:
        raise InputError(f"{folder}: holds no results; joulie lab sweep writes some") from None
    except (OSError, msgspec.DecodeError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise InputError(f"{folder / INDEX}: cannot be read: {reason}") from None


def finished(folder: Path, planned: Planned) -> bool:
    return (folder / RUNS / planned.folder / RUN).is_file()


def read_run(folder: Path, planned: Planned) -> StoredRun:
    """Its measures and provenance; the tables later."""
    place = folder / RUNS / planned.folder
    columns = {name: values[0] for name, values in _columns(place / RUN).items()}
    row = {name: value.item() if isinstance(value, np.generic) else value for name, value in columns.items()}
    try:
        return StoredRun(place, msgspec.convert(_part(row, Measures), Measures), _provenance(row))
    except msgspec.ValidationError as error:
        raise InputError(f"{place / RUN}: {error}; it was written by another version: sweep again") from None


def load_results(folder: Path) -> Results:
    """Everything that belongs to the experiment's latest plan; leftovers of other plans are not looked at."""
    index = read_index(folder)
    runs: dict[str, dict[str, dict[int, StoredRun]]] = {}
    tuning: dict[str, dict[str, dict[int, StoredRun]]] = {}
    missing = []
    for planned in index.planned:
        if not finished(folder, planned):
            missing.append(planned)
            continue
        into = tuning if planned.tuning else runs
        into.setdefault(planned.facet, {}).setdefault(planned.variant, {})[planned.seed] = read_run(folder, planned)
    return Results(index, runs, tuning, tuple(missing))


def _provenance(row: Mapping[str, Any]) -> Provenance:
    return msgspec.convert(_part(row, Provenance), Provenance)


def _part(row: Mapping[str, Any], kind: type[Struct]) -> dict[str, Any]:
    return {name: row[name] for name in kind.__struct_fields__ if name in row}


def _columns(path: Path) -> dict[str, Any]:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        reason = f"{error}; remove {path.parent} and sweep again"
        raise InputError(f"{path}: cannot be read: {reason}") from None
    return {name: _values(table.column(name)) for name in table.column_names}


def _values(column: Any) -> Any:
    """Numbers as an array, and Python values where some are missing."""
    return column.to_pylist() if column.null_count else column.to_numpy()


def names(runs: Iterable[Planned]) -> str:
    """`eco on seed 3, none on seed 4`."""
    return ", ".join(f"{run.variant} on seed {run.seed}" for run in runs)

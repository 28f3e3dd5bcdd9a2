"""Traces from files: the format by name, compressed or not, and only jobs that a cluster can start."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np

from joulie.catalogue.lookup import Catalogue
from joulie.errors import InputError
from joulie.lab.model.jobs import ANY_MODEL, JobTable
from joulie.lab.model.setup import ClusterSetup, Format, TraceSetup
from joulie.lab.traces.blocks import Blocks
from joulie.lab.traces.feasibility import misfits
from joulie.lab.traces.formats.alibaba import read_alibaba
from joulie.lab.traces.formats.azure import read_azure
from joulie.lab.traces.formats.columns import cells_of
from joulie.lab.traces.formats.jsonl import Read, read_jsonl
from joulie.lab.traces.formats.parquet import read_parquet
from joulie.lab.traces.formats.philly import read_philly
from joulie.lab.traces.formats.swf import read_swf
from joulie.lab.traces.generator import generate
from joulie.lab.traces.remarks import Remarks
from joulie.lab.traces.slicing import chosen, cut, of_blocks

FORMATS: tuple[Format, ...] = ("jsonl", "parquet", "swf", "philly", "azure", "alibaba")
_HEADERS: dict[frozenset[str], Format] = {
    frozenset(("vc", "arrival_s")): "philly",
    frozenset(("TIMESTAMP", "ContextTokens")): "azure",
    frozenset(("cpu_milli", "num_gpu", "creation_time")): "alibaba",
}


def jobs_of(
    trace: TraceSetup,
    seed: int,
    cluster: ClusterSetup,
    catalogue: Catalogue | None = None,
    remarks: Remarks | None = None,
    progress: Callable[[float], None] | None = None,
    *,
    check: bool = True,
) -> JobTable:
    """The work of a run: read where the setup names a file, else generated; with `check` it fits the cluster."""
    if not trace.file:
        return generate(trace, seed, cluster, catalogue)
    said = remarks if remarks is not None else Remarks(skip_bad=trace.skip_bad)
    jobs = read_trace(
        trace.file,
        trace.format,
        seed,
        trace.performance_share,
        cluster=cluster if check else None,
        catalogue=catalogue,
        remarks=said,
        progress=progress,
        blocks=Blocks(seed, trace.block_hours, trace.hours) if trace.block_hours else None,
    )
    return cut(jobs, trace, cluster, catalogue)


def read_trace(  # noqa: PLR0913 - each has a default, and callers name what they give
    path: str,
    format: Format = "",
    seed: int = 0,
    performance_share: float = 0.2,
    *,
    cluster: ClusterSetup | None = None,
    catalogue: Catalogue | None = None,
    remarks: Remarks | None = None,
    progress: Callable[[float], None] | None = None,
    blocks: Blocks | None = None,
) -> JobTable:
    """InputError names file, line and field of the first fault; with `Remarks(skip_bad=True)` these are left out.

    With a cluster, jobs that it could never start are faults, too. `blocks` are drawn from what is left.
    """
    said = remarks if remarks is not None else Remarks()
    place = Path(path)
    try:
        size = place.stat().st_size
        with place.open("rb") as raw:
            followed = raw if progress is None else _Followed(raw, size, progress)
            file = gzip.GzipFile(fileobj=followed, mode="rb") if place.suffix.lower() == ".gz" else followed  # type: ignore[arg-type]
            read = _read(file, place, format, seed, performance_share, said, blocks)  # type: ignore[arg-type]
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{path}: cannot be read: {reason}") from None
    read = Read(_named_as_in(catalogue or Catalogue(), read.jobs), read.lines)
    if cluster is not None:
        keep = np.ones(len(read.jobs), bool)
        for misfit in misfits(read.jobs, cluster, catalogue):
            said.bad(f"{path}:{read.lines[misfit.pod]}", misfit.what, misfit.reason)
            keep[misfit.job] = False
        read = Read(read.jobs if keep.all() else chosen(read.jobs, keep), read.lines)
    if not len(read.jobs):
        raise said.no_job(str(path))
    if blocks is None or format_of(place, format) == "azure":
        return read.jobs
    drawn = blocks.draw(read.jobs.submit_s, path, said)
    return read.jobs if drawn is None else of_blocks(read.jobs, drawn)


def _named_as_in(catalogue: Catalogue, jobs: JobTable) -> JobTable:
    """GPU models by the catalogue's names, which nodes have: a file may call a board as its driver does."""
    known = [catalogue.gpu(name) for name in jobs.gpu_models]
    names = [model.name if model else name for model, name in zip(known, jobs.gpu_models, strict=True)]
    if names == list(jobs.gpu_models):
        return jobs
    models = tuple(dict.fromkeys(names))
    code = np.asarray([models.index(name) for name in names], np.int32)
    gpu_model = np.where(jobs.gpu_model == ANY_MODEL, np.int32(ANY_MODEL), code[jobs.gpu_model])
    return replace(jobs, gpu_models=models, gpu_model=gpu_model)


def _read(
    file: IO[bytes], path: Path, format: Format, seed: int, share: float, said: Remarks, blocks: Blocks | None
) -> Read:
    kind = format_of(path, format)
    if kind == "swf":
        return read_swf(file, str(path), seed, share, said)
    if kind == "philly":
        return read_philly(file, path, seed, share, said)
    if kind == "azure":
        return read_azure(file, str(path), said, blocks)
    if kind == "alibaba":
        return read_alibaba(file, str(path), said)
    if kind == "parquet":
        return read_parquet(path, said)
    return read_jsonl(file, str(path), said)


def format_of(path: Path, format: Format = "") -> Format:
    """As it is said, else by the file's name, else by the names of its columns."""
    return format or _by_name(path) or _by_header(path)


def readable_format(trace: TraceSetup) -> Format:
    """Of the file of a trace; empty where there is none, or it cannot be told: reading the trace reports that."""
    try:
        return format_of(Path(trace.file), trace.format) if trace.file else ""
    except (OSError, EOFError, InputError):
        return ""


def _by_name(path: Path) -> Format:
    endings: dict[str, Format] = {".swf": "swf", ".csv": "", ".parquet": "parquet"}
    return endings.get(Path(path.name.lower().removesuffix(".gz")).suffix, "jsonl")


def _by_header(path: Path) -> Format:
    """Of comma-separated values by the names of their columns."""
    with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
        header = file.readline(4096).decode("utf-8-sig", "replace")
    for names, kind in _HEADERS.items():
        if names <= {*cells_of(header.strip())}:
            return kind
    raise InputError(f"{path}:1: its columns are of no known trace; say which: --format {', '.join(FORMATS)}")


class _Followed:
    """A file that tells how much of it has been read."""

    def __init__(self, file: IO[bytes], size: int, progress: Callable[[float], None]) -> None:
        self._file, self._size, self._progress, self._done = file, max(size, 1), progress, 0

    def read(self, count: int = -1) -> bytes:
        return self._told(self._file.read(count))

    def readline(self) -> bytes:
        return self._told(self._file.readline())

    def _told(self, part: bytes) -> bytes:
        self._done += len(part)
        self._progress(min(1.0, self._done / self._size))
        return part

    def __iter__(self) -> _Followed:
        return self

    def __next__(self) -> bytes:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

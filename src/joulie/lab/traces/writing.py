"""Jobs to a trace file in Joulie's own format; the file is there whole or not at all."""

from __future__ import annotations

import gzip
from pathlib import Path

from joulie.lab.model.jobs import JobTable
from joulie.lab.traces.atomic_file import whole_file
from joulie.lab.traces.formats.jsonl_writer import Progress, write_lines
from joulie.lab.traces.formats.parquet import write_parquet


def write_trace(jobs: JobTable, path: Path, progress: Progress | None = None) -> None:
    """As Parquet where the name ends so, else as JSON Lines; .gz is compressed, unless it is a device's or a pipe's."""
    compress = path.suffix.lower() == ".gz" and (path.is_file() or not path.exists())
    with whole_file(path) as file:
        if path.suffix.lower() == ".parquet":
            write_parquet(jobs, file, progress)
        elif compress:
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=3, mtime=0) as compressed:
                write_lines(jobs, compressed, progress)
        else:
            write_lines(jobs, file, progress)

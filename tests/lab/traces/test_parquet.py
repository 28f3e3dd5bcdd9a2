"""Traces in Parquet: the records of JSON Lines, a row each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from joulie.errors import InputError
from joulie.lab.experiment.digests import jobs_digest
from joulie.lab.model.setup import ClusterSetup, NodeGroup, TraceSetup
from joulie.lab.traces.generator import generate
from joulie.lab.traces.reading import read_trace
from joulie.lab.traces.remarks import Remarks
from joulie.lab.traces.writing import write_trace
from tests.lab.traces.trace_lines import record

CLUSTER = ClusterSetup(nodes=[NodeGroup(8), NodeGroup(4, gpu="H100 SXM", gpus=8)])


def put(path: Path, *rows: dict[str, Any]) -> str:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)
    return str(path)


def test_a_trace_in_parquet_is_the_same_as_in_json_lines(tmp_path: Path) -> None:
    jobs = generate(TraceSetup(jobs=5000, deadlines=True), 3, CLUSTER)
    for name in ("t.parquet", "t.jsonl"):
        write_trace(jobs, tmp_path / name)

    table, lines = (read_trace(str(tmp_path / name), cluster=CLUSTER) for name in ("t.parquet", "t.jsonl"))

    assert jobs_digest(table) == jobs_digest(lines)
    assert list(table.ids) == list(lines.ids) == list(jobs.ids)
    np.testing.assert_array_equal(table.deadline_s, jobs.deadline_s)
    shared = pyarrow.parquet.read_table(tmp_path / "t.parquet", columns=["jobId", "work"]).to_pylist()
    assert sum(row["jobId"] is not None for row in shared) == jobs.pods


def test_columns_that_are_not_known_and_a_missing_type_are_passed_over(tmp_path: Path) -> None:
    rows = [{**record(number), "owner": "team"} for number in range(3)]
    for row in rows:
        del row["type"]

    assert list(read_trace(put(tmp_path / "t.parquet", *rows)).ids) == ["job-0", "job-1", "job-2"]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({"jobId": None}, "jobId: missing"),
    "negative work": ({"work": {"cpuUnits": -5.0}}, "work.cpuUnits: expected `float` >= 0.0"),
    "no number": ({"work": {"cpuUnits": float("nan")}}, "work.cpuUnits: expected `float` >= 0.0"),
    "odd quantity": (
        {"podTemplate": {"requests": {"cpu": "many"}}},
        "podTemplate.requests.cpu: is not a quantity such as 8 or 500m",
    ),
    "backwards": ({"submitTimeOffsetSec": 0.5}, "submitTimeOffsetSec: time goes backwards, from 1 to 0.5"),
    "again": ({"jobId": "job-0"}, "jobId: 'job-0' is in line 1 already"),
}


@pytest.mark.parametrize(("more", "said"), BAD.values(), ids=BAD)
def test_a_bad_row_is_named_with_file_row_and_field(tmp_path: Path, more: dict[str, Any], said: str) -> None:
    path = put(tmp_path / "t.parquet", record(0), record(1), {**record(2), **more}, record(3))

    with pytest.raises(InputError) as error:
        read_trace(path)

    assert str(error.value) == f"{path}:3: {said}"
    remarks = Remarks(skip_bad=True)
    assert list(read_trace(path, remarks=remarks).ids) == ["job-0", "job-1", "job-3"]
    assert remarks.bad_lines == 1


def test_a_column_of_another_type_is_said_in_one_line(tmp_path: Path) -> None:
    path = put(tmp_path / "t.parquet", record(0, submitTimeOffsetSec="soon"))

    with pytest.raises(InputError, match=r"t\.parquet:1: submitTimeOffsetSec: expected `float`, got `str`$"):
        read_trace(path)


@pytest.mark.parametrize("content", [b"", b"PAR1 and no more", b'{"type":"job"}\n'])
def test_what_is_no_parquet_is_said_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(content)

    with pytest.raises(InputError, match=r"t\.parquet: cannot be read as Parquet: ") as error:
        read_trace(str(path))
    assert "\n" not in str(error.value)


def test_an_empty_table_holds_no_job(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"jobId": pyarrow.array([], pyarrow.string())}), tmp_path / "t.parquet")

    with pytest.raises(InputError, match="holds no job"):
        read_trace(str(tmp_path / "t.parquet"))

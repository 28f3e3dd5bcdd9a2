"""One absurd number in a real trace is one bad line: it neither fills the memory nor makes a run last for ever."""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joulie.errors import InputError
from joulie.lab.traces.arrivals import rates
from joulie.lab.traces.formats import azure as trace_azure
from joulie.lab.traces.formats import columns as trace_columns
from joulie.lab.traces.reading import read_trace
from joulie.lab.traces.remarks import Remarks
from joulie.lab.traces.writing import write_trace
from tests.lab.traces.test_bad_traces import asking
from tests.lab.traces.trace_lines import record
from tests.support.cli_runner import joulie


def swf(number: object = 1, submit: object = 0, run: object = 9, allocated: object = 4, requested: object = 4) -> str:
    return f"{number} {submit} 0 {run} {allocated} -1 -1 {requested} -1 -1 1 1 1 1 1 1 -1 -1"


def log(folder: Path, bad: str) -> Path:
    path = folder / "log.swf"
    path.write_text("\n".join([swf(1), swf(2, 5), bad, swf(4, 60)]))
    return path


def philly(folder: Path, bad: str) -> Path:
    path = folder / "arrivals.csv"
    path.write_text(f"vc,arrival_s,gpus\na,0,1\n{bad}\na,60,2\n")
    (folder / "philly_runtime_s.csv").write_text("runtime\n60\n")
    return path


def requests(folder: Path, bad: str) -> Path:
    path, rest = folder / "requests.csv", "ContextTokens,GeneratedTokens"
    path.write_text(f"TIMESTAMP,{rest}\n2023-11-16 18:00:00,100,10\n{bad}\n2023-11-16 18:03:00,100,10\n")
    return path


BAD = {
    "processors": (log, swf(3, 9, 9, 10**15), "allocated processors: are above 10,000,000"),
    "asked processors": (log, swf(3, 9, 9, -1, 1e300), "requested processors: are above 10,000,000"),
    "submit time": (log, swf(3, 1e300), "submit time: is above 10,000,000,000 s"),
    "span": (log, swf(3, 4e8), "submit time: is more than ten years after line 1"),
    "run time": (log, swf(3, 9, 1e15), "run time: is above ten years"),
    "twice": (log, swf(2, 9), "job number: 2 is in line 2 already"),
    "half a number": (log, swf(2.5, 9), "job number: is not a whole number"),
    "long number": (log, swf(1e300, 9), "job number: is not a whole number"),
    "arrival": (philly, "a,1e300,1", "arrival_s: is above ten years"),
    "boards": (philly, "a,5,1e15", "gpus: is not a number of GPUs"),
    "prompt": (requests, "2023-11-16 18:01:00,1e15,1", "ContextTokens: is above 10,000,000 tokens"),
    "answer": (requests, "2023-11-16 18:01:00,1,1e300", "GeneratedTokens: is above 10,000,000 tokens"),
    "year": (requests, "9999-11-16 18:01:00,1,1", "TIMESTAMP: is not between 1970 and 2286"),
    "later year": (requests, "2123-11-16 18:01:00,1,1", "TIMESTAMP: is more than ten years after line 2"),
}


@pytest.mark.parametrize(("file", "bad", "said"), BAD.values(), ids=BAD)
def test_a_number_beyond_reason_is_one_bad_line(
    tmp_path: Path, file: Callable[[Path, str], Path], bad: str, said: str
) -> None:
    path = file(tmp_path, bad)
    with pytest.raises(InputError) as error:
        read_trace(str(path))
    assert str(error.value) == f"{path}:3: {said}"
    remarks = Remarks(skip_bad=True)
    jobs = read_trace(str(path), remarks=remarks)
    assert jobs.submit_s.tolist() == [0, 5, 60] if file is log else [0, 60] if file is philly else [0, 180]
    assert remarks.listed == [f"{path}:3: {said}"]


def test_a_run_time_beyond_reason_is_named_in_its_own_file(tmp_path: Path) -> None:
    path = philly(tmp_path, "a,5,1")
    (tmp_path / "philly_runtime_s.csv").write_text("runtime\n60\n1e15\n")
    with pytest.raises(InputError, match=r"philly_runtime_s\.csv:3: runtime: is above ten years"):
        read_trace(str(path))
    jobs = read_trace(str(path), remarks=Remarks(skip_bad=True))
    assert jobs.reference_s.tolist() == [60, 60, 60]


def test_work_of_more_than_ten_years_is_a_bad_line_of_our_format(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    long = [
        record(1, work={"cpuUnits": 1e12}),
        record(2, **asking(cpu=1, gpu=8), work={"gpuUnits": 1e13}),
    ]
    path.write_text("\n".join(json.dumps(line) for line in [record(0), *long, record(3, work={"cpuUnits": 4 * 3e8})]))
    remarks = Remarks(skip_bad=True)
    assert list(read_trace(str(path), remarks=remarks).ids) == ["job-0", "job-3"]
    assert remarks.listed == [
        f"{path}:2: work.cpuUnits: is above ten years of what the pod asks for",
        f"{path}:3: work.gpuUnits: is above ten years of what the pod asks for",
    ]


@pytest.mark.parametrize("format", ["swf", "philly"])
def test_lines_that_together_make_more_pods_than_memory_holds_are_bad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    monkeypatch.setattr(trace_columns, "MAX_PODS", 5)
    path = log(tmp_path, swf(3, 5, 9, 300)) if format == "swf" else philly(tmp_path, "a,5,64")
    what = "allocated processors" if format == "swf" else "gpus"
    remarks = Remarks(skip_bad=True)
    jobs = read_trace(str(path), remarks=remarks)
    assert len(jobs) == (2 if format == "swf" else 1)
    assert remarks.listed[0] == f"{path}:3: {what}: makes more than 5 pods with the lines before it"


def test_a_minute_that_needs_too_many_replicas_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_azure, "MAX_PODS", 500)
    path = requests(tmp_path, "2023-11-16 18:01:00,0,1e7")
    with pytest.raises(InputError, match=r"requests\.csv:3: GeneratedTokens: in its minute more than 500 replicas"):
        read_trace(str(path))


def test_replicas_come_and_go_like_a_stack(tmp_path: Path) -> None:
    needed = [2, 3, 0, 1, 3, 2, 2]  # 42 busy seconds of a board each, at 400 tokens a second
    rows = [f"2023-11-16 18:0{minute}:00,0,{42 * 400 * count}" for minute, count in enumerate(needed)]
    path = tmp_path / "requests.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "\n".join(rows))
    jobs = read_trace(str(path))
    assert list(jobs.ids) == [
        *("replica-0-0", "replica-1-0", "replica-2-1", "replica-0-3", "replica-1-4", "replica-2-4"),
    ]
    assert (jobs.reference_s / 60).tolist() == [2, 2, 1, 4, 3, 1]


def test_a_log_that_was_read_can_be_written_and_read_again(tmp_path: Path) -> None:
    path = log(tmp_path, swf(2, 9))
    done = joulie("lab", "trace", str(path), "--skip-bad", "-o", str(tmp_path / "again.jsonl"))
    assert done.code == 0
    assert list(read_trace(str(tmp_path / "again.jsonl")).ids) == ["swf-1", "swf-2", "swf-4"]


def test_many_virtual_clusters_are_read_and_their_times_told_apart(tmp_path: Path) -> None:
    count = 100_000
    rows = [f"v{place},{count - place},1" for place in range(count)]
    path = philly(tmp_path, "\n".join([*rows, f"v{count - 1},0,1"]))
    said = rf"arrivals\.csv:{count + 3}: arrival_s: time goes backwards within 'v{count - 1}'"
    with pytest.raises(InputError, match=said):
        read_trace(str(path))


def test_how_a_name_is_written_does_not_matter(tmp_path: Path) -> None:
    for name in ("LOG.SWF", "Log.Swf"):
        (tmp_path / name).write_text(swf(7))
        assert list(read_trace(str(tmp_path / name)).ids) == ["swf-7"]
    (tmp_path / "LOG.SWF.GZ").write_bytes(gzip.compress(swf(8).encode()))
    jobs = read_trace(str(tmp_path / "LOG.SWF.GZ"))
    assert list(jobs.ids) == ["swf-8"]
    write_trace(jobs, tmp_path / "OUT.JSONL.GZ")
    assert np.array_equal(read_trace(str(tmp_path / "OUT.JSONL.GZ")).cores, jobs.cores)


def test_a_mark_of_byte_order_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps(record(number)) for number in range(3)), encoding="utf-8-sig")
    assert list(read_trace(str(path)).ids) == ["job-0", "job-1", "job-2"]


def test_columns_may_be_quoted_and_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "requests.CSV"
    path.write_text('"GeneratedTokens", "TIMESTAMP","ContextTokens"\n"10","2023-11-16 18:00:00",100\n')
    assert list(read_trace(str(path)).ids) == ["replica-0-0"]
    (tmp_path / "philly_runtime_s.csv").write_text('"runtime"\n"60"\n')
    path = tmp_path / "arrivals.csv"
    path.write_text('gpus,"vc",arrival_s\n1,"a, or b",0\n2,"c""d",5\n')
    assert list(read_trace(str(path)).ids) == ["a, or b-2", 'c"d-3']
    path.write_text('gpus,vc,arrival_s\n1,a,0\n2,"b,5\n')
    with pytest.raises(InputError, match=r"arrivals\.csv:3: 2 fields, but the header names 3"):
        read_trace(str(path))


NUMBERS = ("-1", "0", "1", "0.5", "7", "64", "65", "1e5", "1e7", "1e10", "1e15", "9e18", "1e19", "1e300", "-1e308")
TEXTS = ("nan", "inf", "", "x", '"3"', '"', ";", "2023-11-16 18:00:00", "0001-01-01 00:00:00", "é")
replaced = st.dictionaries(st.integers(0, 17), st.sampled_from([*NUMBERS, *TEXTS]), min_size=1, max_size=3)
GOOD = {
    "swf": (log, swf(9, 90), " "),
    "philly": (philly, "a,90,3", ","),
    "azure": (requests, "2023-11-16 18:04:00,9,9", ","),
}


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(GOOD)), st.lists(replaced, max_size=4))
def test_whatever_stands_in_the_cells_it_is_read_or_named(
    tmp_path: Path, format: str, odd: list[dict[int, str]]
) -> None:
    file, good, between = GOOD[format]
    path = file(tmp_path, "")
    cells = good.split(between if between == "," else None)
    rows = [between.join(other.get(place, cell) for place, cell in enumerate(cells)) for other in odd]
    path.write_text("\n".join([path.read_text(), *rows]))
    said = f"{path}:1: nothing"
    try:
        read_trace(str(path))
    except InputError as error:
        said = str(error)
    assert re.fullmatch(rf"{path}:\d+: .*", said)
    jobs = read_trace(str(path), remarks=Remarks(skip_bad=True))
    assert jobs.pods < 1_000_000
    assert np.all(np.diff(jobs.submit_s) >= 0)
    assert np.all((jobs.reference_s > 0) & (jobs.reference_s < 3.2e8))
    assert len(set(jobs.ids)) == len(jobs)


def test_a_year_full_of_bursts_is_drawn_at_once() -> None:
    began = time.perf_counter()
    few = rates(np.random.default_rng(1), np.arange(1441, dtype=np.float64) * 60, 8.0, 0.0)
    between = time.perf_counter()
    intensity = rates(np.random.default_rng(1), np.arange(366 * 1440 + 1, dtype=np.float64) * 60, 8.0, 0.0)
    # 366 times as much work; looking at the whole year for each burst would be 366 times that again.
    assert time.perf_counter() - between < 366 * 20 * max(between - began, 1e-3)
    assert len(intensity) == 366 * 1440
    assert intensity.mean() == pytest.approx(1 + 64 * 2 * 1200 / 86_400, rel=0.05)
    assert few.mean() > 1

"""Real traces: Standard Workload Format, Philly, Azure LLM inference; by hand, and the files themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from joulie.errors import InputError
from joulie.lab.model.setup import ClusterSetup
from joulie.lab.traces.reading import read_trace
from joulie.lab.traces.remarks import Remarks

REAL = Path(__file__).resolve().parents[3].parent / "shared" / "data"

SWF = """\
; Computer: a cluster
; UnixStartTime: 0
  1   0  5  100   4  80 -1   4  -1 -1 1 1 1 1 1 1 -1 -1
  2  10 -1  200  -1  -1 -1 128  -1 -1 1 1 1 1 1 1 -1 -1   ; asked for, but not said what it got
  3  10  0   -1  -1  -1 -1   4  -1 -1 5 1 1 1 1 1 -1 -1
  4  20  0    0 100  -1 -1  -1  -1 -1 0 1 1 1 1 1 -1 -1
  5  20  0   50   4  -1 -1  -1  -1 -1 2 1 1 1 1 1 -1 -1
"""


def put(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def real(*names: str) -> str:
    path = REAL.joinpath(*names)
    if not path.is_file():
        pytest.skip(f"SKIPPED LOUDLY: the real traces are not beside this checkout ({path.name})")
    return str(path)


def test_a_standard_workload_becomes_pods_and_gangs(tmp_path: Path) -> None:
    remarks = Remarks()
    jobs = read_trace(put(tmp_path / "log.swf", SWF), seed=1, remarks=remarks)
    assert list(jobs.ids) == ["swf-1", "swf-2", "swf-4"]
    assert jobs.submit_s.tolist() == [0, 10, 20]
    assert jobs.reference_s.tolist() == [100, 200, 1]
    assert jobs.first_pod.tolist() == [0, 1, 3, 5]
    assert jobs.cores.tolist() == [4, 64, 64, 50, 50]
    assert jobs.cpu_utilisation[:2].tolist() == [0.8, 0.9]
    assert not jobs.gpus.any()
    assert "1 jobs that were cancelled before they ran, and 1 lines that repeat parts" in remarks.notes[0]


def test_the_time_of_a_standard_workload_begins_with_its_first_job(tmp_path: Path) -> None:
    line = "{} {} 0 9 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n"
    jobs = read_trace(put(tmp_path / "log.swf", line.format(1, 1_700_000_000) + line.format(2, 1_700_000_060)))
    assert jobs.submit_s.tolist() == [0, 60]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("6 30 0 1 1", "5 fields, but the format has 18"),
        ("6 30 0 x 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1", "run time: 'x' is not a number"),
        ("6 30 0 nan 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1", "run time: 'nan' is not a number"),
        ("6 30 0 1e400 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1", "run time: '1e400' is not a number"),
        ("6 30 0 -1 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1", "run time: is not known"),
        ("6 30 0 9 -1 -1 -1 -1 -1 -1 1 1 1 1 1 1 -1 -1", "allocated processors: are not known, nor requested ones"),
        ("6 19 0 9 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1", "submit time: time goes backwards"),
        ("6 -5 0 9 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1", "submit time: is before the start of the log"),
    ],
)
def test_a_bad_line_of_a_standard_workload_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = put(tmp_path / "log.swf", f"{SWF}{line}\n")
    with pytest.raises(InputError) as error:
        read_trace(path)
    assert str(error.value) == f"{path}:8: {said}"
    remarks = Remarks(skip_bad=True)
    assert len(read_trace(path, remarks=remarks)) == 3
    assert remarks.listed == [f"{path}:8: {said}"]


def philly(folder: Path, arrivals: str, runtimes: str = "runtime\n60\n60\n") -> str:
    put(folder / "philly_runtime_s.csv", runtimes)
    return put(folder / "arrivals.csv", f"vc,arrival_s,gpus\n{arrivals}")


def test_philly_clusters_begin_together_and_large_jobs_are_gangs_of_the_same_size(tmp_path: Path) -> None:
    path = philly(tmp_path, "a,0,1\na,50,20\nb,0,16\nb,7,7\n")
    remarks = Remarks()
    jobs = read_trace(path, seed=1, remarks=remarks)
    assert jobs.submit_s.tolist() == [0, 0, 7, 50]
    assert list(jobs.ids) == ["a-2", "b-4", "b-5", "a-3"]
    assert np.diff(jobs.first_pod).tolist() == [1, 2, 1, 4]
    assert jobs.gpus.tolist() == [1, 8, 8, 7, 5, 5, 5, 5]
    assert jobs.reference_s.tolist() == [60, 60, 60, 60]
    assert "which size of job runs how long is lost" in remarks.notes[0]


@pytest.mark.parametrize(
    ("arrivals", "said"),
    [
        ("a,0,1\na,5\n", ":3: 2 fields, but the header names 3"),
        ("a,0,1\na,,1\n", ":3: arrival_s: is empty"),
        ("a,0,1\na,-3,1\n", ":3: arrival_s: is negative"),
        ("a,9,1\na,8,1\n", ":3: arrival_s: time goes backwards within 'a'"),
        ("a,0,1\na,5,1.5\n", ":3: gpus: is not a number of GPUs"),
        ("a,0,1\na,5,0\n", ":3: gpus: is not a number of GPUs"),
    ],
)
def test_a_bad_line_of_philly_is_named(tmp_path: Path, arrivals: str, said: str) -> None:
    path = philly(tmp_path, arrivals)
    with pytest.raises(InputError) as error:
        read_trace(path)
    assert str(error.value) == f"{path}{said}"
    assert len(read_trace(path, remarks=Remarks(skip_bad=True))) == 1


def test_philly_needs_run_times_beside_it(tmp_path: Path) -> None:
    path = put(tmp_path / "arrivals.csv", "vc,arrival_s,gpus\na,0,1\n")
    with pytest.raises(InputError, match=r"philly_runtime_s\.csv: the run times cannot be read: No such file"):
        read_trace(path)
    with pytest.raises(InputError, match=r"philly_runtime_s\.csv:2: runtime: 'soon' is not a number"):
        read_trace(philly(tmp_path, "a,0,1\n", "runtime\nsoon\n"))


AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def test_requests_become_the_replicas_that_serve_them(tmp_path: Path) -> None:
    rows = [
        "2023-11-16 18:00:00.0000000,240000,0",  # 30 GPU-seconds: one replica, half busy
        "2023-11-16 18:01:30.5000000,0,24000",  # 60: two, each half busy
        "2023-11-16 18:03:00,8000,0",  # a minute without any, then one again, hardly busy
    ]
    jobs = read_trace(put(tmp_path / "requests.csv", AZURE + "\n".join(rows)))
    assert list(jobs.ids) == ["replica-0-0", "replica-1-1", "replica-0-3"]
    assert jobs.submit_s.tolist() == [0, 60, 180]
    assert jobs.reference_s.tolist() == [120, 60, 60]
    assert jobs.gpus.tolist() == [1, 1, 1]
    np.testing.assert_allclose(jobs.gpu_utilisation, [0.5, 0.5, 1 / 60])
    assert jobs.performance.all()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("yesterday,1,1", "TIMESTAMP: is not a time"),
        ("2023-11-16 18:20:03.9e5,1,1", "TIMESTAMP: is not a time"),
        ("2023-11-16 18:20:03.1_0,1,1", "TIMESTAMP: is not a time"),
        ("2023-11-16 17:00:00,1,1", "TIMESTAMP: time goes backwards"),
        ("2023-11-16 18:00:01,-1,1", "ContextTokens: is negative"),
        ("2023-11-16 18:00:01,1,", "GeneratedTokens: is empty"),
    ],
)
def test_a_bad_request_is_named(tmp_path: Path, row: str, said: str) -> None:
    path = put(tmp_path / "requests.csv", f"{AZURE}2023-11-16 18:00:00,100,10\n{row}\n")
    with pytest.raises(InputError) as error:
        read_trace(path)
    assert str(error.value) == f"{path}:3: {said}"
    assert len(read_trace(path, remarks=Remarks(skip_bad=True))) == 1


def test_unknown_columns_are_named(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "a,b\n1,2\n")
    with pytest.raises(InputError, match=r"t\.csv:1: its columns are of no known trace; say which"):
        read_trace(path)
    with pytest.raises(InputError, match=r"t\.csv:1: vc: missing in the header, which is 'a,b'"):
        read_trace(path, "philly")


@pytest.mark.parametrize("format", ["swf", "philly", "azure"])
def test_a_file_with_nothing_but_its_header_is_refused(tmp_path: Path, format: str) -> None:
    texts = {"swf": "; nothing\n", "philly": "vc,arrival_s,gpus\n", "azure": AZURE}
    put(tmp_path / "philly_runtime_s.csv", "runtime\n5\n")
    path = put(tmp_path / "file", texts[format])
    with pytest.raises(InputError, match="file: holds no job"):
        read_trace(path, format)  # type: ignore[arg-type]


def test_the_same_seed_draws_the_same_from_a_real_trace(tmp_path: Path) -> None:
    path = philly(tmp_path, "".join(f"a,{second},1\n" for second in range(200)), "runtime\n1\n20\n300\n")
    one, again, other = (read_trace(path, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.gpu_units, again.gpu_units)
    assert np.array_equal(one.performance, again.performance)
    assert not np.array_equal(one.gpu_units, other.gpu_units)
    assert 0.1 < one.performance.mean() < 0.3


def test_the_real_philly_trace_is_read_whole() -> None:
    jobs = read_trace(real("philly_partial", "philly_vc_arrivals.csv"), seed=1, cluster=ClusterSetup())
    assert len(jobs) == 15_264
    gpus = np.add.reduceat(jobs.gpus, jobs.first_pod[:-1])
    counted = {count: int(np.count_nonzero(gpus == count)) for count in (1, 2, 4, 8, 16, 64)}
    assert counted == {1: 10_480, 2: 463, 4: 2044, 8: 1916, 16: 255, 64: 1}
    runtimes = np.loadtxt(real("philly_partial", "philly_runtime_s.csv"), skiprows=1)
    assert np.median(jobs.reference_s) == pytest.approx(np.median(runtimes), rel=0.1)


@pytest.mark.parametrize(("name", "requests"), [("code", 8_819), ("conv", 19_366)])
def test_the_real_inference_traces_are_served_by_as_many_boards_as_their_tokens_need(name: str, requests: int) -> None:
    path = real("azure_llm_2023", f"AzureLLMInferenceTrace_{name}.csv")
    tokens = np.loadtxt(path, delimiter=",", skiprows=1, usecols=(1, 2))
    assert len(tokens) == requests
    jobs = read_trace(path, cluster=ClusterSetup())
    needed_s = tokens[:, 0].sum() / 8000 + tokens[:, 1].sum() / 400
    np.testing.assert_allclose((jobs.gpu_units * jobs.gpu_utilisation).sum(), needed_s, rtol=1e-9)
    assert jobs.gpu_utilisation.max() <= 0.7
    assert jobs.submit_s[-1] + jobs.reference_s[-1] <= 3660

"""Bad traces: one line that names file, line and field; or, if one wants, left out, counted and listed."""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulie.errors import InputError
from joulie.lab.model.setup import ClusterSetup, NodeGroup, TraceSetup
from joulie.lab.traces.feasibility import misfits
from joulie.lab.traces.formats.jsonl import read_jsonl
from joulie.lab.traces.generator import generate
from joulie.lab.traces.reading import read_trace
from joulie.lab.traces.remarks import Remarks
from tests.lab.traces.trace_lines import record

SMALL = ClusterSetup(
    nodes=[NodeGroup(2, cpu="EPYC 9375F", sockets=1), NodeGroup(2, cpu="EPYC 9654", gpu="L40S", gpus=4)]
)


def without(*names: str) -> dict[str, Any]:
    return {key: value for key, value in record(1).items() if key not in names}


def asking(**requests: Any) -> dict[str, Any]:
    names = {"gpu": "nvidia.com/gpu"}
    return {"podTemplate": {"requests": {names.get(key, key): value for key, value in requests.items()}}}


GPU = {"work": {"gpuUnits": 9.0}}
GANG = {"gang": True, "workloadId": "g"}

BAD = {
    "no JSON": ("{", "Input data was truncated"),
    "no object": ("[1]", "Expected `object`, got `array`"),
    "another type": (record(1, type="pod"), "type: invalid value 'pod'"),
    "no type": (without("type"), "type: missing"),
    "no id": (without("jobId"), "jobId: missing"),
    "no time": (without("submitTimeOffsetSec"), "submitTimeOffsetSec: missing"),
    "no template": (without("podTemplate"), "podTemplate: missing"),
    "no requests": (record(1, podTemplate={}), "podTemplate.requests: missing"),
    "no work at all": (without("work"), "work: missing"),
    "a hole": (record(1, work=None), "work: expected `object`, got `null`"),
    "a hole within": (record(1, work={"cpuUnits": None}), "work.cpuUnits: expected `float`, got `null`"),
    "empty id": (record(1, jobId=""), "jobId: expected `str` of length >= 1"),
    "negative time": (record(1, submitTimeOffsetSec=-1), "submitTimeOffsetSec: expected `float` >= 0.0"),
    "time backwards": (
        record(1, submitTimeOffsetSec=-0.0 + 0.5),
        "submitTimeOffsetSec: time goes backwards, from 1 to 0.5",
    ),
    "Unix time": (record(1, submitTimeOffsetSec=1.7e9), "submitTimeOffsetSec: expected `float` <= 316224000.0"),
    "text as time": (record(1, submitTimeOffsetSec="soon"), "submitTimeOffsetSec: expected `float`, got `str`"),
    "negative work": (record(1, work={"cpuUnits": -5}), "work.cpuUnits: expected `float` >= 0.0"),
    "infinite work": ('{"type":"job","work":{"cpuUnits":1e999}}', "work.cpuUnits: number out of range"),
    "NaN": ('{"type":"job","work":{"cpuUnits":NaN}}', "work.cpuUnits: expected `float` >= 0.0"),
    "no work": (record(1, work={}), "work: is nothing: no cpuUnits, no gpuUnits"),
    "odd quantity": (record(1, **asking(cpu="many")), "podTemplate.requests.cpu: is not a quantity such as 8 or 500m"),
    "negative request": (record(1, **asking(cpu=-2)), "podTemplate.requests.cpu: is not a quantity such as 8 or 500m"),
    "odd GPUs": (
        record(1, **asking(cpu=1, gpu="x"), **GPU),
        "podTemplate.requests.nvidia.com/gpu: is not a number of GPUs",
    ),
    "half a GPU": (record(1, **asking(cpu=1, gpu=0.5), **GPU), "podTemplate.requests: asks for a part of a GPU"),
    "far too large": (record(1, **asking(cpu=1e6)), "podTemplate.requests.cpu: is above 65,536 cores"),
    "asks for nothing": (record(1, **asking()), "podTemplate.requests: asks for neither CPU nor GPU"),
    "GPU work without GPU": (record(1, **GPU), "work.gpuUnits: is GPU work, but the pod asks for no GPU"),
    "CPU work without CPU": (
        record(1, **asking(gpu=1), work={"cpuUnits": 3}),
        "work.cpuUnits: is CPU work, but the pod asks for no CPU",
    ),
    "too busy": (
        record(1, workloadProfile={"cpuUtilization": 1.5}),
        "workloadProfile.cpuUtilization: expected `float` <= 1.0",
    ),
    "late before it comes": (record(1, deadlineOffsetSec=0.5), "deadlineOffsetSec: is before submitTimeOffsetSec"),
    "an id again": (record(1, jobId="job-0"), "jobId: 'job-0' is in line 1 already"),
    "no text": (b'{"type": "job", "jobId": "\xff"}', "is no UTF-8 text"),
}


def put(path: Path, *lines: dict[str, Any] | str | bytes) -> str:
    raw = [
        line if isinstance(line, bytes) else (line if isinstance(line, str) else json.dumps(line)).encode()
        for line in lines
    ]
    path.write_bytes(b"".join(line + b"\n" for line in raw))
    return str(path)


@pytest.mark.parametrize(("line", "said"), BAD.values(), ids=BAD)
def test_a_bad_line_is_named_with_file_line_and_field(
    tmp_path: Path, line: dict[str, Any] | str | bytes, said: str
) -> None:
    path = put(tmp_path / "t.jsonl", record(0), record(1, jobId="one"), line, record(3))
    with pytest.raises(InputError) as error:
        read_trace(path)
    expected = f"{path}:3: {said}"
    assert str(error.value).startswith(expected)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("line", "said"), BAD.values(), ids=BAD)
def test_a_bad_line_can_be_left_out_and_is_counted_and_listed(
    tmp_path: Path, line: dict[str, Any] | str | bytes, said: str
) -> None:
    path = put(tmp_path / "t.jsonl", record(0), record(1, jobId="one"), line, record(3))
    remarks = Remarks(skip_bad=True)
    jobs = read_trace(path, remarks=remarks)
    assert list(jobs.ids) == ["job-0", "one", "job-3"]
    assert remarks.bad_lines == 1
    assert remarks.listed[0].startswith(f"{path}:3: {said}")
    assert remarks.lines()[0] == "1 bad line left out:"


def test_only_the_first_bad_lines_are_listed_but_all_are_counted(tmp_path: Path) -> None:
    path = put(tmp_path / "t.jsonl", record(0), *["{}"] * 500)
    remarks = Remarks(skip_bad=True)
    assert len(read_trace(path, remarks=remarks)) == 1
    assert remarks.bad_lines == 500
    assert len(remarks.listed) == 20
    assert remarks.lines()[-1] == "  … and 480 more"


def test_bad_lines_are_listed_in_their_order_whatever_is_wrong_with_them(tmp_path: Path) -> None:
    odd = [record(9, jobId="b", **asking(cpu="zz")), record(1, jobId="c")]
    remarks = Remarks(skip_bad=True)
    read_trace(put(tmp_path / "t.jsonl", record(9), record(3), "{", *odd, *["{}"] * 30), remarks=remarks)
    assert [line.split(":")[1] for line in remarks.listed] == [str(number) for number in range(2, 22)]


def test_a_file_without_a_job_is_refused(tmp_path: Path) -> None:
    empty = put(tmp_path / "empty.jsonl")
    with pytest.raises(InputError, match=r"empty\.jsonl: holds no job"):
        read_trace(empty)
    bad = put(tmp_path / "bad.jsonl", "{}", "{}")
    said = r"bad\.jsonl: holds no job that is good: 2 bad lines left out, the first is .*bad\.jsonl:1: "
    with pytest.raises(InputError, match=said):
        read_trace(bad, remarks=Remarks(skip_bad=True))
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_trace(str(tmp_path))


def test_a_gang_comes_whole_and_at_once(tmp_path: Path) -> None:
    apart = put(tmp_path / "t.jsonl", record(0, **GANG), record(1), record(2, **GANG))
    with pytest.raises(InputError, match=r"t\.jsonl:3: submitTimeOffsetSec: 2, but gang 'g' comes at 0"):
        read_trace(apart)
    remarks = Remarks(skip_bad=True)
    assert list(read_trace(apart, remarks=remarks).ids) == ["job-1"]  # what is left of it is no gang

    head = {"type": "workload", "workloadId": "g", "gang": True, "pods": 3}
    missing = put(tmp_path / "m.jsonl", head, record(0, **GANG), record(0, jobId="b", **GANG), record(1))
    with pytest.raises(InputError, match=r"m\.jsonl:1: pods: gang 'g' has 3, but 2 are there"):
        read_trace(missing)
    assert list(read_trace(missing, remarks=Remarks(skip_bad=True)).ids) == ["job-1"]

    idle = put(tmp_path / "i.jsonl", record(0, **GANG, work={}), record(0, jobId="b", **GANG, work={}), record(1))
    with pytest.raises(InputError, match=r"i\.jsonl:1: work: gang 'g' has none in any of its pods"):
        read_trace(idle)


def test_one_bad_pod_takes_its_gang_with_it(tmp_path: Path) -> None:
    path = put(tmp_path / "t.jsonl", record(0, **GANG), record(0, jobId="b", **GANG, **asking()), record(1))
    remarks = Remarks(skip_bad=True)
    jobs = read_trace(path, remarks=remarks)
    assert list(jobs.ids) == ["job-1"]
    assert jobs.pods == 1
    assert remarks.bad_lines == 1


def test_so_does_one_that_cannot_be_read(tmp_path: Path) -> None:
    for bad in ({"work": {"cpuUnits": -10}}, {"submitTimeOffsetSec": "now"}, {"podTemplate": 7}):
        path = put(tmp_path / "t.jsonl", record(0, **GANG), record(0, jobId="b", **{**GANG, **bad}), record(1))
        remarks = Remarks(skip_bad=True)
        assert list(read_trace(path, remarks=remarks).ids) == ["job-1"]
        assert remarks.bad_lines == 1


MISFITS = {
    "too many GPUs": (
        [record(0, **asking(cpu=8, gpu=8), **GPU)],
        1,
        "podTemplate.requests.nvidia.com/gpu: no node has 8",
    ),
    "too many cores": (
        [record(0, **asking(cpu=33))],
        1,
        "podTemplate.requests.cpu: no node that it may use has 33 cores",
    ),
    "cores beside GPUs": (
        [record(0, **asking(cpu=193, gpu=4), **GPU)],
        1,
        "podTemplate.requests.cpu: no node that it may use has 193 cores beside 4 GPUs",
    ),
    "another model": (
        [
            record(0),
            record(
                1,
                podTemplate={
                    "requests": {"cpu": "1", "nvidia.com/gpu": 1},
                    "nodeSelector": {"joulie.io/hw.gpu-model": "H100 SXM"},
                },
                **GPU,
            ),
        ],
        2,
        "podTemplate.nodeSelector.joulie.io/hw.gpu-model: no node has 1 GPUs of model 'H100 SXM'",
    ),
    "a gang larger than the cluster": (
        [record(0, jobId=f"g-{place}", **GANG, **asking(cpu=8, gpu=4), **GPU) for place in range(3)],
        1,
        "podTemplate.requests.nvidia.com/gpu: gang 'g' has 3 such pods (8 cores, 4 GPUs), more than the 2 that the",
    ),
    "a gang of unlike pods": (
        [
            record(0, jobId="a", **GANG, **asking(cpu=192, gpu=4), **GPU),
            record(0, jobId="b", **GANG, **asking(cpu=191, gpu=4), **GPU),
            record(0, jobId="c", **GANG, **asking(cpu=32)),
            record(0, jobId="d", **GANG, **asking(cpu=31)),
            record(0, jobId="e", **GANG, **asking(cpu=30)),
        ],
        3,
        "podTemplate.requests.cpu: gang 'g' asks for 93 cores, more than the 64 that these pods may use",
    ),
    "a gang of more boards than there are": (
        [
            record(0, jobId="a", **GANG, **asking(cpu=4, gpu=3), **GPU),
            record(0, jobId="b", **GANG, **asking(cpu=8, gpu=3), **GPU),
            record(0, jobId="c", **GANG, **asking(cpu=8, gpu=4), **GPU),
        ],
        1,
        "podTemplate.requests.nvidia.com/gpu: gang 'g' asks for 10 GPUs, more than the 8 that these pods may use",
    ),
    "a gang with too many large pods": (
        [
            record(0, jobId="s", **GANG, **asking(cpu=2)),
            record(0, jobId="a", **GANG, **asking(cpu=100, gpu=1), **GPU),
            record(0, jobId="b", **GANG, **asking(cpu=101, gpu=1), **GPU),
            record(0, jobId="c", **GANG, **asking(cpu=102, gpu=1), **GPU),
        ],
        2,
        "podTemplate.requests.cpu: gang 'g' has 3 pods of at least 100 cores, 1 GPU, more than the 2 that the empty",
    ),
    "a gang that cannot be packed": (
        [
            record(0, jobId="a", **GANG, **asking(cpu=8, gpu=2), **GPU),
            record(0, jobId="b", **GANG, **asking(cpu=150, gpu=1), **GPU),
            record(0, jobId="c", **GANG, **asking(cpu=150, gpu=1), **GPU),
            record(0, jobId="d", **GANG, **asking(cpu=50, gpu=1), **GPU),
        ],
        1,
        "podTemplate.requests.nvidia.com/gpu: gang 'g' has 4 pods that find no place all at once",
    ),
}


@pytest.mark.parametrize(("lines", "line", "said"), MISFITS.values(), ids=MISFITS)
def test_a_job_that_fits_nowhere_is_named_with_its_line(
    tmp_path: Path, lines: list[dict[str, Any]], line: int, said: str
) -> None:
    path = put(tmp_path / "t.jsonl", *lines, record(9))
    with pytest.raises(InputError) as error:
        read_trace(path, cluster=SMALL)
    assert str(error.value).startswith(f"{path}:{line}: {said}")
    remarks = Remarks(skip_bad=True)
    jobs = read_trace(path, cluster=SMALL, remarks=remarks)
    assert jobs.id_of(len(jobs) - 1) == "job-9"
    assert remarks.bad_lines == 1
    assert misfits(jobs, SMALL) == []


def test_jobs_that_were_not_read_are_checked_alike() -> None:
    jobs = generate(TraceSetup(jobs=2000), seed=1, cluster=ClusterSetup())
    first = misfits(jobs, SMALL)[0]
    assert first.what == "podTemplate.requests.cpu"
    assert re.search(r"no node .* has 64 cores", first.reason)
    nowhere = ClusterSetup(nodes=[NodeGroup(4, gpu="H100 SXM", gpus=8)])
    assert misfits(jobs, nowhere)[0].reason == "no node takes pods without GPUs (cluster.cpu_work_on_gpu_nodes)"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["cpu", "gpuUnits", "requests"]), inner)
    ),
    max_leaves=4,
)
parts = st.sampled_from([*record(), "workloadProfile", "sensitivity", "deadlineOffsetSec", "gang", "workloadId"])


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(parts, json_values, max_size=3) | st.binary(max_size=60))
def test_whatever_stands_in_a_line_it_is_read_or_named(odd: dict[str, Any] | bytes) -> None:
    line = odd if isinstance(odd, bytes) else json.dumps(record(1) | odd).encode()
    text = b"\n".join([json.dumps(record(0)).encode(), line.replace(b"\n", b" "), json.dumps(record(2)).encode()])
    said = "odd:2: nothing"
    try:
        read_jsonl(BytesIO(text), "odd", Remarks())
    except InputError as error:
        said = str(error)
    assert said.startswith(("odd:2: ", "odd:3: submitTimeOffsetSec: time goes backwards"))
    skipped = Remarks(skip_bad=True)
    jobs = read_jsonl(BytesIO(text), "odd", skipped).jobs
    assert len(jobs) + skipped.bad_lines >= 2
    assert np.all(np.diff(jobs.submit_s) >= 0)
    assert np.all(jobs.reference_s > 0)


@pytest.mark.slow
def test_one_bad_line_among_a_million_is_found(tmp_path: Path) -> None:
    path = tmp_path / "million.jsonl"
    good = json.dumps(record(7)).replace('"job-7"', '"job-%d"') + "\n"
    bad_line = 654_321
    with path.open("w") as file:
        for begin in range(0, 1_000_000, 100_000):
            file.write("".join(good % place for place in range(begin, begin + 100_000)))
    text = path.read_text().replace(f'"job-{bad_line - 1}"', "null", 1)
    path.write_text(text)
    with pytest.raises(InputError, match=rf"million\.jsonl:{bad_line}: jobId: expected `str`, got `null`"):
        read_trace(str(path))
    remarks = Remarks(skip_bad=True)
    jobs = read_trace(str(path), remarks=remarks)
    assert len(jobs) == 999_999
    assert np.all(jobs.cpu_units == 400.0)
    assert remarks.listed == [f"{path}:{bad_line}: jobId: expected `str`, got `null`"]

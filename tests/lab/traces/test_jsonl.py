"""Traces to files and back: exactly the same jobs; and gangs, quantities and defaults as the format has them."""

from __future__ import annotations

import gzip
import json
from dataclasses import fields, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulie.errors import InputError
from joulie.lab.model.jobs import ANY_MODEL, JobTable
from joulie.lab.model.setup import ClusterSetup, TraceSetup
from joulie.lab.traces.families import NAMES
from joulie.lab.traces.formats.jsonl import read_jsonl
from joulie.lab.traces.formats.jsonl_writer import write_lines
from joulie.lab.traces.generator import generate
from joulie.lab.traces.reading import jobs_of, read_trace
from joulie.lab.traces.remarks import Remarks
from joulie.lab.traces.room import offered_load
from joulie.lab.traces.slicing import PER_POD
from joulie.lab.traces.writing import write_trace
from tests.lab.traces.trace_lines import record

CLUSTER = ClusterSetup()


def written(path: Path, *records: dict[str, Any] | str) -> str:
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records))
    return str(path)


def read_again(jobs: JobTable) -> JobTable:
    file = BytesIO()
    write_lines(jobs, file)
    file.seek(0)
    return read_jsonl(file, "trace", Remarks()).jobs


def assert_same(one: JobTable, other: JobTable) -> None:
    for part in fields(JobTable):
        a, b = getattr(one, part.name), getattr(other, part.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype, part.name
            np.testing.assert_array_equal(a, b, err_msg=part.name)
        else:
            assert list(a) == list(b), part.name


shares = st.floats(0, 1)
amounts = st.floats(0.001, 1e9)


@st.composite
def tables(draw: st.DrawFn) -> JobTable:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=8))
    pods, count = sum(sizes), len(sizes)

    def each(values: st.SearchStrategy[Any], length: int, kind: Any = np.float64) -> Any:
        return np.asarray(draw(st.lists(values, min_size=length, max_size=length)), kind)

    models = ("H100 SXM", "MI300X")
    submit_s = np.cumsum(each(st.floats(0, 1e5), count))
    gpus = each(st.integers(0, 16), pods, np.int32)
    cores = each(st.floats(0.001, 4096), pods)
    named = each(st.sampled_from([ANY_MODEL, 0, 1]), pods, np.int32)
    model = np.where(gpus > 0, named, ANY_MODEL)
    used = [code for code in dict.fromkeys(model.tolist()) if code != ANY_MODEL]  # the file numbers them as they come
    renumbered = np.asarray([used.index(code) if code in used else ANY_MODEL for code in model.tolist()], np.int32)
    late = each(st.booleans(), count, bool)
    return JobTable(
        submit_s=submit_s,
        deadline_s=np.where(late, np.nan, submit_s + each(st.floats(0.001, 1e8), count)),
        family=each(st.integers(0, len(NAMES) - 1), count, np.int32),
        first_pod=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        cores=cores,
        gpus=gpus,
        gpu_model=renumbered,
        performance=each(st.booleans(), pods, bool),
        cpu_units=np.minimum(each(amounts, pods), cores * 3e8),  # within ten years
        gpu_units=np.minimum(each(st.floats(0, 1e9), pods), gpus * 3e8),
        cpu_utilisation=each(shares, pods),
        gpu_utilisation=each(shares, pods),
        memory_intensity=each(shares, pods),
        io_intensity=each(shares, pods),
        feed_intensity=each(shares, pods),
        cpu_sensitivity=each(shares, pods),
        gpu_sensitivity=each(shares, pods),
        families=NAMES,
        gpu_models=tuple(models[code] for code in used),
        ids=[f"id-{place}" for place in range(count)],
    )


@settings(max_examples=60, deadline=None)
@given(tables())
def test_what_is_written_is_read_again_bit_by_bit(jobs: JobTable) -> None:
    assert_same(jobs, read_again(jobs))


def test_a_generated_trace_is_read_again_bit_by_bit(tmp_path: Path) -> None:
    jobs = generate(TraceSetup(jobs=6000, deadlines=True), seed=3, cluster=CLUSTER)
    for name in ("trace.jsonl", "trace.jsonl.gz"):
        write_trace(jobs, tmp_path / name)
        assert_same(jobs, read_trace(str(tmp_path / name), cluster=CLUSTER))
    assert (tmp_path / "trace.jsonl.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trace.jsonl", "trace.jsonl.gz"]


def test_every_workload_has_a_line_of_its_own_before_its_pods() -> None:
    jobs = generate(TraceSetup(jobs=500), seed=3, cluster=CLUSTER)
    file = BytesIO()
    write_lines(jobs, file)
    known: dict[str, dict[str, Any]] = {}
    pods = 0
    for line in map(json.loads, file.getvalue().splitlines()):
        if line["type"] == "workload":
            assert line["workloadId"] not in known
            known[line["workloadId"]] = line
        else:
            workload = known[line["workloadId"]]
            assert workload["workloadType"] == line["workloadType"]
            assert workload["gang"] == line["gang"]
            pods += 1
    assert pods == jobs.pods
    assert len(known) < len(jobs)  # trials of one experiment share theirs
    roles = {json.loads(line).get("podRole") for line in file.getvalue().splitlines()}
    assert roles == {None, "worker", "ps", "trial"}


def test_pods_of_a_gang_are_one_job_even_if_others_stand_between_them(tmp_path: Path) -> None:
    gang = {"workloadId": "g", "gang": True, "submitTimeOffsetSec": 1.0}
    path = written(
        tmp_path / "t.jsonl",
        record(0, jobId="g-0", **gang),
        record(1),
        record(2, jobId="g-1", **gang | {"podTemplate": {"requests": {"cpu": "2"}}}),
    )
    jobs = read_trace(path)
    assert list(jobs.ids) == ["g", "job-1"]
    assert jobs.first_pod.tolist() == [0, 2, 3]
    assert jobs.cores.tolist() == [4, 2, 4]


def test_what_may_be_left_out_has_defaults_and_what_is_not_known_is_passed_over(tmp_path: Path) -> None:
    more = {"colour": "red", "podTemplate": {"requests": {"cpu": "500m", "memory": "2Gi"}, "labels": {"a": "b"}}}
    jobs = read_trace(written(tmp_path / "t.jsonl", record(0), "", record(1, **more)))
    assert jobs.cores.tolist() == [4, 0.5]
    assert jobs.families[jobs.family[0]] == "unknown"
    assert jobs.cpu_utilisation.tolist() == [1, 1]
    assert jobs.cpu_sensitivity.tolist() == [1, 1]
    assert jobs.memory_intensity.tolist() == [0, 0]
    assert not jobs.performance.any()
    assert np.isnan(jobs.deadline_s).all()


def test_class_model_and_deadline_are_taken_from_the_template(tmp_path: Path) -> None:
    template = {
        "requests": {"cpu": 8, "nvidia.com/gpu": "2", "amd.com/gpu": 1},
        "annotations": {"joulie.io/workload-class": "performance"},
        "nodeSelector": {"joulie.io/hw.gpu-model": "L40S"},
    }
    line = record(0, podTemplate=template, work={"gpuUnits": 60}, deadlineOffsetSec=90)
    jobs = read_trace(written(tmp_path / "t.jsonl", line))
    assert jobs.performance.tolist() == [True]
    assert jobs.gpus.tolist() == [3]
    assert jobs.gpu_models == ("L40S",)
    assert jobs.gpu_model.tolist() == [0]
    assert jobs.deadline_s.tolist() == [90]


def _affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    listed = [{"matchExpressions": term} for term in terms]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}}


def _on(operator: str, *values: str, key: str = "joulie.io/power-profile") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("template", "more", "performance"),
    [
        ({"affinity": _affinity([_on("NotIn", "eco")])}, {}, True),
        ({"affinity": _affinity([_on("In", "performance")])}, {}, True),
        ({"affinity": _affinity([_on("NotIn", "eco")], [_on("In", "true", key="joulie.io/draining")])}, {}, True),
        ({"affinity": _affinity([_on("NotIn", "eco")], [_on("In", "a", key="zone")])}, {}, False),
        ({"affinity": _affinity([_on("In", "eco")])}, {}, False),
        ({"affinity": {"podAntiAffinity": {}}}, {}, False),
        ({"affinity": None}, {}, False),
        ({"nodeSelector": {"joulie.io/power-profile": "performance"}}, {}, True),
        ({"nodeSelector": {"joulie.io/power-profile": "eco"}}, {}, False),
        ({"intentClass": "performance"}, {}, True),
        ({}, {"intentClass": "performance"}, True),
        ({}, {"intentClass": "general"}, False),
        ({}, {"intentClass": "eco"}, False),
    ],
)
def test_a_pod_is_of_class_performance_by_whatever_a_cluster_would_know_it(
    tmp_path: Path, template: dict[str, Any], more: dict[str, Any], performance: bool
) -> None:
    line = record(0, podTemplate={"requests": {"cpu": "4"}, **template}, **more)
    assert read_trace(written(tmp_path / "t.jsonl", line)).performance.tolist() == [performance]


def test_pods_of_a_gang_may_be_listed_by_role(tmp_path: Path) -> None:
    gang = {"workloadId": "g", "gang": True, "submitTimeOffsetSec": 1.0}
    pods = [{"role": "launcher", "requests": {"cpu": "2"}}, {"role": "worker", "replicas": 2, "requests": {"cpu": "4"}}]
    workload = {"type": "workload", "schemaVersion": "v2", "durationSec": 60, "tags": ["ai"], "pods": pods, **gang}
    lines = [workload, *(record(0, jobId=f"g-{i}", **gang) for i in range(3))]
    jobs = read_trace(written(tmp_path / "t.jsonl", *lines))
    assert jobs.first_pod.tolist() == [0, 3]
    with pytest.raises(InputError, match=r"t.jsonl:1: pods: gang 'g' has 3, but 2 are there"):
        read_trace(written(tmp_path / "t.jsonl", *lines[:-1]))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"pods": []}, "pods: expected `array` of length >= 1"),
        ({"pods": [{"replicas": -1}]}, "pods[0].replicas: expected `int` >= 0"),
        ({"pods": "three"}, "pods: expected `int | array`, got `str`"),
    ],
)
def test_pods_that_are_no_number_and_no_list_are_named(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    workload = {"type": "workload", "workloadId": "g", "gang": True, **change}
    with pytest.raises(InputError) as caught:
        read_trace(written(tmp_path / "t.jsonl", json.dumps(workload), record(0)))
    assert complaint in str(caught.value)


def test_an_affinity_that_cannot_be_read_is_a_bad_line(tmp_path: Path) -> None:
    template = {"requests": {"cpu": "4"}, "affinity": _affinity([_on("Unlike", "eco")])}
    with pytest.raises(InputError, match=r"t.jsonl:1: podTemplate.affinity: has an operator"):
        read_trace(written(tmp_path / "t.jsonl", record(0, podTemplate=template)))


def test_pods_that_ask_for_eco_alone_are_told_because_the_lab_does_not_hold_them_back(tmp_path: Path) -> None:
    template = {"requests": {"cpu": "4"}, "affinity": _affinity([_on("In", "eco")])}
    remarks = Remarks()
    read_trace(written(tmp_path / "t.jsonl", record(0, podTemplate=template), record(1)), remarks=remarks)
    assert [line for line in remarks.lines() if "eco nodes alone" in line]


def test_amd_boards_are_asked_for_by_their_own_name() -> None:
    jobs = generate(TraceSetup(jobs=40, gpu_share=1), seed=1, cluster=CLUSTER)
    jobs = replace(jobs, gpu_model=np.where(jobs.gpus > 0, 0, ANY_MODEL).astype(np.int32), gpu_models=("MI300X",))
    file = BytesIO()
    write_lines(jobs, file)
    assert b'"amd.com/gpu"' in file.getvalue()
    assert b'"nvidia.com/gpu"' not in file.getvalue()
    assert_same(jobs, read_again(jobs))


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    jobs = generate(TraceSetup(jobs=10), seed=1, cluster=CLUSTER)
    with pytest.raises(InputError, match=r"nowhere/t\.jsonl: cannot be written: No such file or directory"):
        write_trace(jobs, tmp_path / "nowhere" / "t.jsonl")
    (tmp_path / "t.jsonl").write_text("as it was")

    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_trace(jobs, tmp_path / "t.jsonl", stop)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["as it was"]


def test_a_setup_takes_the_beginning_of_a_file_and_sets_its_load(tmp_path: Path) -> None:
    jobs = generate(TraceSetup(jobs=4000, hours=20, deadlines=True), seed=3, cluster=CLUSTER)
    path = tmp_path / "t.jsonl.gz"
    write_trace(jobs, path)
    whole = jobs_of(TraceSetup(file=str(path)), 0, CLUSTER)
    assert_same(whole, jobs)
    hour = jobs_of(TraceSetup(file=str(path), hours=1), 0, CLUSTER)
    assert len(hour) == np.count_nonzero(jobs.submit_s < 3600) > 0
    assert len(jobs_of(TraceSetup(file=str(path), jobs=17), 0, CLUSTER)) == 17
    longer = jobs_of(TraceSetup(file=str(path), duration_scale=2), 0, CLUSTER)
    np.testing.assert_allclose(longer.reference_s, 2 * jobs.reference_s)
    light = jobs_of(TraceSetup(file=str(path), load=0.25), 0, CLUSTER)
    assert max(offered_load(light, CLUSTER).values()) == pytest.approx(0.25)
    np.testing.assert_allclose(light.deadline_s - light.submit_s, jobs.deadline_s - jobs.submit_s)
    for name in PER_POD:
        np.testing.assert_array_equal(getattr(light, name), getattr(jobs, name))


def test_progress_goes_from_nothing_to_all(tmp_path: Path) -> None:
    jobs = generate(TraceSetup(jobs=9000), seed=3, cluster=CLUSTER)
    for name in ("t.jsonl", "t.jsonl.gz"):
        writing: list[float] = []
        reading: list[float] = []
        write_trace(jobs, tmp_path / name, writing.append)
        read_trace(str(tmp_path / name), progress=reading.append)
        for seen in (writing, reading):
            assert seen == sorted(seen)
            assert seen[-1] == 1.0
            assert len(seen) > 1


def test_a_compressed_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"type": "workload", "workloadId": "a"}\n' * 1000)[:-20])
    with pytest.raises(InputError, match=r"t\.jsonl\.gz: cannot be read: "):
        read_trace(str(path))

"""`joulie lab trace`: generate, look, convert; and the documented example."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from joulie.lab.model.setup import ClusterSetup, TraceSetup
from joulie.lab.traces.generator import generate
from joulie.lab.traces.reading import read_trace
from tests.support.cli_runner import joulie

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "traces.md"


def test_a_generated_trace_is_summarised_for_people() -> None:
    done = joulie("lab", "trace", "--jobs", "3000", "--seed", "1")
    assert done.code == 0
    assert done.err == ""
    assert done.out.startswith("3,000 jobs in ")
    assert "offered load: CPUs" in done.out
    rows = {line.split()[0]: line for line in done.out.splitlines() if line.strip()}
    for family, share in (("debug_eval", "45 %"), ("hpo_experiment", "9 %"), ("cpu_analytics", "25 %")):
        assert rows[family].endswith(share)
    assert len(re.findall(r"^ +\d+ h ", done.out, re.MULTILINE)) == 24


def test_a_program_gets_the_summary_as_json() -> None:
    document = joulie("lab", "trace", "--load", "0.5", "--json").document
    assert max(document["offeredLoad"].values()) == pytest.approx(0.5, abs=0.02)
    assert sum(document["arrivals"]) == document["jobs"] == sum(row["jobs"] for row in document["families"])
    assert sum(row["sharePct"] for row in document["families"]) == pytest.approx(200)


def test_a_trace_is_written_and_looked_at(tmp_path: Path) -> None:
    for name in ("t.jsonl", "t.jsonl.gz"):
        path = tmp_path / name
        done = joulie("lab", "trace", "--jobs", "200", "--seed", "5", "-o", str(path))
        assert done.code == 0
        assert done.out.endswith(f"wrote {path}\n")
        assert list(read_trace(str(path)).ids) == list(generate(TraceSetup(jobs=200), 5, ClusterSetup()).ids)
        assert joulie("lab", "trace", str(path)).out.startswith("200 jobs in ")
    assert gzip.decompress((tmp_path / "t.jsonl.gz").read_bytes()) == (tmp_path / "t.jsonl").read_bytes()


def test_a_trace_can_go_to_standard_output_and_nothing_else_with_it() -> None:
    done = joulie("lab", "trace", "--jobs", "20", "-o", "-")
    assert {json.loads(line)["type"] for line in done.out.splitlines()} == {"workload", "job"}


def test_a_log_is_turned_into_our_format(tmp_path: Path) -> None:
    log, path = tmp_path / "log.swf", tmp_path / "log.jsonl"
    good = "1 {} 0 100 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n"
    log.write_text(good.format(0).replace("1 0", "1 0", 1) + "2 broken\n" + good.replace("1 {}", "3 {}", 1).format(60))
    done = joulie("lab", "trace", str(log), "-o", str(path))
    assert done.code == 2
    assert done.complaint == f"{log}:2: 2 fields, but the format has 18"
    assert not path.exists()
    done = joulie("lab", "trace", str(log), "--skip-bad", "-o", str(path))
    assert done.code == 0
    assert done.err.splitlines() == [
        "joulie: 1 bad line left out:",
        f"joulie:   {log}:2: 2 fields, but the format has 18",
    ]
    assert list(read_trace(str(path)).ids) == ["swf-1", "swf-3"]


def test_cluster_and_trace_of_an_experiment_are_taken_and_overridden(tmp_path: Path) -> None:
    file = tmp_path / "e.toml"
    file.write_text("[trace]\njobs = 50\nhours = 2\n[cluster]\nnodes = [{ count = 3 }]\n")
    document = joulie("lab", "trace", "-e", str(file), "--json").document
    assert document["jobs"] == 50
    assert {row["family"] for row in document["families"]} == {"cpu_preprocess", "cpu_analytics"}
    loaded = joulie("lab", "trace", "-e", str(file), "--load", "0.4", "--json").document
    assert loaded["offeredLoad"]["CPUs"] == pytest.approx(0.4, rel=0.3)  # few jobs in two hours


def test_a_trace_for_another_cluster_can_be_looked_at_but_not_run(tmp_path: Path) -> None:
    line = {"type": "job", "jobId": "large", "submitTimeOffsetSec": 0, "work": {"cpuUnits": 9}}
    path, file = tmp_path / "t.jsonl", tmp_path / "e.toml"
    path.write_text(json.dumps(line | {"podTemplate": {"requests": {"cpu": "500"}}}) + "\n")
    file.write_text("[trace]\ndeadlines = true\n[cluster]\nnodes = [{ count = 3 }]\n")
    looked = joulie("lab", "trace", str(path))
    assert looked.code == 0
    assert looked.err.startswith("joulie: 1 of 1 jobs would never start on the default cluster (set another with -e)")
    checked = joulie("lab", "trace", str(path), "-e", str(file))
    assert checked.code == 2
    said = "podTemplate.requests.cpu: no node that it may use has 500 cores"
    assert checked.complaint == f"{path}:1: {said}"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--jobs", "5", "--load", "0.5"), "trace: jobs and load exclude each other"),
        (("--load", "nan"), "trace.load: expected `float` > 0.0"),
        (("--hours", "-1"), "trace.hours: expected `float` > 0.0"),
        (("--gpu-share", "2"), "trace.gpu_share: expected `float` <= 1.0"),
        (("--skip-bad",), "trace: format, skip_bad and block_hours belong to a file"),
        (("missing.jsonl",), "missing.jsonl: cannot be read: No such file or directory"),
        (("-e", "missing.toml"), "missing.toml: cannot be read: No such file or directory"),
    ],
)
def test_wrong_usage_is_one_line(arguments: tuple[str, ...], said: str) -> None:
    done = joulie("lab", "trace", *arguments)
    assert done.code == 2
    assert done.complaint.startswith(said)


def test_the_documented_example_is_a_trace(tmp_path: Path) -> None:
    text = PAGE.read_text()
    block = re.search(r"```text title=\"trace\.jsonl\"\n(.*?)```", text, re.DOTALL)
    assert block
    path = tmp_path / "trace.jsonl"
    path.write_text(block[1])
    jobs = read_trace(str(path), cluster=ClusterSetup())
    assert list(jobs.ids) == ["prepare", "train"]
    assert jobs.first_pod.tolist() == [0, 1, 4]
    assert jobs.gpus.tolist() == [0, 2, 2, 0]
    assert jobs.deadline_s[1] == 9000
    for record in map(json.loads, block[1].splitlines()):
        for field in (*record, *record.get("workloadProfile", ()), *record.get("podTemplate", ())):
            assert f"`{field}`" in text or f".{field}`" in text, field


def test_every_field_that_is_read_is_documented() -> None:
    from joulie.lab.traces.formats import records as trace_records

    text = PAGE.read_text()
    for struct in (trace_records.JobRecord, trace_records.WorkloadRecord, trace_records.WorkloadProfile):
        for field in struct.__struct_encode_fields__:
            assert re.search(rf"`(\w+\.)?{field}`", text), field


def test_a_trace_goes_to_parquet_and_back(tmp_path: Path) -> None:
    assert joulie("lab", "trace", "--jobs", "50", "-o", str(tmp_path / "t.parquet")).code == 0
    done = joulie("lab", "trace", str(tmp_path / "t.parquet"), "-o", str(tmp_path / "t.jsonl"))

    assert (done.code, done.err) == (0, "")
    assert list(read_trace(str(tmp_path / "t.jsonl")).ids) == list(read_trace(str(tmp_path / "t.parquet")).ids)


def test_a_node_list_is_printed_as_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\na,64000,1,4,L40S\n")
    done = joulie("lab", "trace", "--nodes", str(tmp_path / "nodes.csv"))

    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[:2] == ["[[cluster.nodes]]", "count = 1"]
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\na,64000,1,4,\n")
    bad = joulie("lab", "trace", "--nodes", str(tmp_path / "nodes.csv"))
    assert bad.code == 2
    assert bad.err.endswith("nodes.csv:2: model: is empty, but the node has GPUs\n")


def test_inference_and_constant_arrivals_are_options() -> None:
    done = joulie("lab", "trace", "--work", "inference", "--arrivals", "periodic", "--period-hours", "6", "--json")
    assert done.document["families"][0]["family"] == "inference"
    bad = joulie("lab", "trace", "--period-hours", "6")
    assert bad.code == 2
    assert 'period_hours belongs to arrivals = "periodic"' in bad.err

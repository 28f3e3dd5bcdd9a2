"""What the documents show besides commands can be used as it stands: objects, files, programs, queries."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from joulie.settings import OperatorSettings
from tests.docs_pages.blocks import Block, all_blocks
from tests.monitoring.expressions import Asked

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

BLOCKS = all_blocks()
# Configuration of processes, in the form of objects that no API server knows.
NOT_SERVED = ("kubescheduler.config.k8s.io/v1", "kwok.x-k8s.io/v1alpha1", "kubelet.config.k8s.io/v1beta1")


def of(*languages: str) -> list[Block]:
    return [block for block in BLOCKS if block.language in languages]


def each(*languages: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("block", of(*languages), ids=lambda block: block.where)


def objects(block: Block) -> list[dict[str, Any]]:
    """The Kubernetes objects in it, those of a List one by one."""
    found = [item for item in yaml.safe_load_all(block.text) if isinstance(item, dict) and "kind" in item]
    return [item for one in found for item in (one["items"] if one["kind"] == "List" else [one])]


READERS: dict[str, Callable[[str], object]] = {
    "yaml": lambda text: [item for item in yaml.safe_load_all(text) if item],
    "toml": tomllib.loads,
    "json": json.loads,
}


@each(*READERS)
def test_a_file_can_be_read(block: Block) -> None:
    assert READERS[block.language](block.text)


@each("python")
def test_python_is_python(block: Block) -> None:
    """tests/plugins/test_howto_packages.py and tests/sources/test_fmu_cooling.py install and use these packages."""
    text = block.text.replace(", …", "").replace("…", "...")
    if text.lstrip().startswith("async with"):
        text = "async def main():\n" + "".join(f"    {line}\n" for line in text.splitlines())
    assert ast.parse(text).body


@pytest.mark.parametrize("block", [block for block in of("yaml") if objects(block)], ids=lambda block: block.where)
def test_an_api_server_takes_every_object(fresh_cluster: ControlPlane, block: Block) -> None:
    for item in objects(block):
        if item["apiVersion"] in NOT_SERVED:
            continue
        if "namespace" in item["metadata"]:
            name = item["metadata"]["namespace"]
            fresh_cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
        path = fresh_cluster.api.resource_path(item["apiVersion"], item["kind"]).of(item)
        fresh_cluster.api.post(f"{path}?dryRun=All&fieldValidation=Strict", item)


# --- queries -------------------------------------------------------------------------------------------------------

KEPLER = "docs/how-to/kepler.md"
SERIES = {
    'kepler_node_cpu_watts{node_name="a",zone="package",path="0"}': 200,
    'kepler_node_cpu_watts{node_name="a",zone="package",path="1"}': 210,
    'kepler_node_cpu_watts{node_name="a",zone="core",path="2"}': 150,
    'kepler_node_gpu_watts{node_name="a",gpu="0",vendor="nvidia"}': 300,
    'kepler_node_cpu_watts{node_name="b",zone="package",path="0"}': 90,
    'kepler_node_cpu_usage_ratio{node_name="a"}': 0.5,
    'DCGM_FI_DEV_POWER_USAGE{Hostname="b",gpu="0"}': 400,
    'DCGM_FI_DEV_POWER_USAGE{Hostname="b",gpu="1"}': 410,
    'DCGM_FI_DEV_GPU_UTIL{Hostname="b",gpu="0"}': 80,
    'DCGM_FI_DEV_GPU_UTIL{Hostname="b",gpu="1"}': 60,
    'joulie_operator_power_source_nodes{source="kepler"}': 2,
}
# The queries of the page, in its order, and what Prometheus answers them with the series above.
ANSWERS: list[dict[str, float]] = [
    {'{node_name="a"}': 710, '{node_name="b"}': 90},
    {'joulie_operator_power_source_nodes{source="kepler"}': 2},
    {'{node_name="a"}': 410, '{node_name="b"}': 900},
    {'{node_name="a"}': 0.5},
    {'{Hostname="b"}': 0.7},
]


def queries(block: Block) -> list[str]:
    """One a line, or one over several lines in brackets."""
    return re.findall(r"(?ms)^\S.*?(?:\($.*?^\)|$)", block.text)


@pytest.mark.slow
def test_prometheus_understands_every_query(promtool: Path, tmp_path: Path) -> None:
    rules = [
        {"record": f"query_{number}", "expr": query}
        for number, query in enumerate(query for block in of("promql") for query in queries(block))
    ]
    assert len(rules) >= len(ANSWERS) + 2
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "documents", "rules": rules}]}))
    _judged(promtool, "check", file)


@pytest.mark.slow
def test_the_queries_for_kepler_answer_watts_and_shares_of_each_node(promtool: Path, tmp_path: Path) -> None:
    asked = [query for block in of("promql") if block.page == KEPLER for query in queries(block)]
    tests = [
        {
            "expr": query,
            "eval_time": "1m",
            "exp_samples": [{"labels": labels, "value": value} for labels, value in answer.items()],
        }
        for query, answer in zip(asked, ANSWERS, strict=True)
    ]
    series = [{"series": name, "values": f"{value}x5"} for name, value in SERIES.items()]
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump({"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": tests}]}))
    _judged(promtool, "test", file)


def test_the_page_about_kepler_shows_the_default_queries() -> None:
    defaults = OperatorSettings()
    asked = [query for block in of("promql") if block.page == KEPLER for query in queries(block)]
    shown = (defaults.power_prometheus_query, defaults.utilization_cpu_query, defaults.utilization_gpu_query)
    assert set(shown) <= set(asked)


def test_every_metric_in_a_query_is_exported() -> None:
    from tools.generate.metrics_reference import metrics_of_processes

    exported = {described[0] for listed in metrics_of_processes().values() for described in listed}
    named = {name for block in of("promql") for name in Asked(block.where, block.text).metrics()}
    assert named
    assert named <= exported


def _judged(promtool: Path, verb: str, file: Path) -> None:
    outcome = subprocess.run([promtool, verb, "rules", str(file)], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr

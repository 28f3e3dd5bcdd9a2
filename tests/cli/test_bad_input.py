"""Bad input, as a person meets it: exit code 2 and one line, or a warning and the plan as if the object were absent."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_runner import joulie, node, pod, write

Object = dict[str, Any]


def api(kind: str, name: str = "x", **more: Any) -> Object:
    return {"apiVersion": "joulie.io/v1alpha1", "kind": kind, "metadata": {"name": name}, **more}


def with_capacity(cpu: Any) -> Object:
    return {**node("n"), "status": {"capacity": {"cpu": cpu}}}


FATAL_OBJECTS: dict[str, tuple[list[Object], str]] = {
    "no name": ([{"apiVersion": "v1", "kind": "Node", "metadata": {}}], "Node #1: metadata.name"),
    "no metadata": ([{"apiVersion": "v1", "kind": "Pod"}], "Pod #1: metadata"),
    "a name that is a number": ([{**node("n"), "metadata": {"name": 7}}], "metadata.name"),
    "labels that are a list": ([{**node("n"), "metadata": {"name": "n", "labels": ["a"]}}], "Node/n: metadata.labels"),
    "a label that is a number": (
        [{**node("n"), "metadata": {"name": "n", "labels": {"a": 1}}}],
        "Node/n: metadata.labels",
    ),
    "a quantity that is none": ([with_capacity("many")], "Node/n: status.capacity.cpu"),
    "negative cores": ([with_capacity("-4")], "Node/n: status.capacity.cpu"),
    "absurdly many cores": ([with_capacity("1e40")], "Node/n: status.capacity.cpu"),
    "a request that is none": (
        [node("n"), pod("p", cpu="lots")],
        "Pod/team/p: spec.containers[0].resources.requests.cpu",
    ),
    "the same node twice": ([node("n"), node("n")], "Node/n: metadata.name: appears twice"),
    "the same pod twice": ([node("n"), pod("p"), pod("p")], "Pod/team/p: metadata.name: appears twice"),
}


@pytest.mark.parametrize(("objects", "said"), FATAL_OBJECTS.values(), ids=FATAL_OBJECTS)
def test_a_broken_node_or_pod_is_one_line_with_file_object_and_field(
    objects: list[Object], said: str, tmp_path: Path
) -> None:
    file = write(tmp_path, *objects)
    for command in (["plan"], ["twin", "-o", "json"], ["score", "--pod", "team/p", "-o", "yaml"]):
        outcome = joulie(*command, "-f", file)
        assert outcome.code == 2
        assert outcome.complaint.startswith(f"{file}: ")
        assert said in outcome.complaint


TWIN_WITH = "apiVersion: joulie.io/v1alpha1\nkind: NodeTwin\nmetadata: {name: a}\nstatus: {%s}\n"
TOLERATED: dict[str, tuple[Object | str, str]] = {
    "an unknown kind": ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, "kind"),
    "an unknown version": ({**api("NodeTwin"), "apiVersion": "joulie.io/v9"}, "NodeTwin"),
    "a twin with watts below nothing": (
        api("NodeTwin", "a", status={"powerMeasurement": {"measuredNodePowerW": -5}}),
        "NodeTwin/a: status.powerMeasurement.measuredNodePowerW",
    ),
    "a pin without a profile": (api("NodePowerProfile", spec={"nodeName": "a"}), "NodePowerProfile/x: spec.profile"),
    "a pin that caps below nothing": (
        api("NodePowerProfile", spec={"nodeName": "a", "profile": "eco", "cpu": {"packagePowerCapWatts": -1}}),
        "NodePowerProfile/x: spec.cpu.packagePowerCapWatts",
    ),
    "hardware of a million watts and more": (
        api("NodeHardware", "a", status={"cpu": {"capRange": {"maxWattsPerSocket": 1e12}}}),
        "NodeHardware/a: status.cpu.capRange.maxWattsPerSocket",
    ),
    "hardware with a mistyped count": (
        api("NodeHardware", "a", status={"gpu": {"count": "eight"}}),
        "NodeHardware/a: status.gpu.count",
    ),
    "watts that are no number": (TWIN_WITH % "predictedCoolingStressScore: .nan", "NodeTwin/a: status"),
    "infinite watts": (TWIN_WITH % "powerMeasurement: {nodeCappedPowerW: .inf}", "NodeTwin/a: status.powerMeasurement"),
}


@pytest.mark.parametrize(("tolerated", "said"), TOLERATED.values(), ids=TOLERATED)
def test_what_a_cluster_tolerates_is_left_out_with_a_warning(
    tolerated: Object | str, said: str, tmp_path: Path
) -> None:
    good = write(tmp_path, node("a"), node("b"), name="good.json")
    bad = tmp_path / "bad.yaml"
    bad.write_text(tolerated if isinstance(tolerated, str) else json.dumps(tolerated))
    expected = joulie("plan", "-f", good, "-o", "json")
    outcome = joulie("plan", "-f", good, "-f", str(bad), "-o", "json")
    assert (outcome.code, outcome.out) == (0, expected.out)
    assert outcome.err.startswith(f"joulie: warning: {bad}: ")
    assert said in outcome.err
    assert len(outcome.err.splitlines()) == 1


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + level)}: &{chr(98 + level)} [{', '.join([f'*{chr(97 + level)}'] * 9)}]\n" for level in range(12)
)
FATAL_FILES: dict[str, bytes] = {
    "empty": b"",
    "blank": b" \n\t\n",
    "binary": bytes(range(256)),
    "an image": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "UTF-16": "kind: Node".encode("utf-16"),
    "broken UTF-8": b"kind: Node\nmetadata: {name: \xff\xfe}\n",
    "cut-off YAML": b"apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n  labels: {joulie.io/managed: 'tr",
    "cut-off JSON": b'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"',
    "YAML with a tab": b"apiVersion: v1\nkind: Node\nmetadata:\n\tname: a\n",
    "aliases that explode": BOMB.encode(),
    "an alias of itself": b"apiVersion: v1\nkind: Node\nmetadata: &m\n  name: a\n  labels: *m\n",
    "a Python object": b"!!python/object/apply:os.system ['true']\n",
    "nested without end": b"[" * 100_000,
    "nested YAML without end": b"- " * 50_000,
    "a text": b"just words\n",
    "a number": b"42\n",
    "no kind": b"metadata: {name: a}\n",
    "NaN in a Node": b"apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {capacity: {cpu: .nan}}\n",
    "infinity in a Node": b"apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {capacity: {cpu: .inf}}\n",
    "the same key twice": b"apiVersion: v1\nkind: Node\nmetadata: {name: a}\nmetadata: {name: b}\n",
}


@pytest.mark.parametrize("content", FATAL_FILES.values(), ids=FATAL_FILES)
def test_a_file_that_cannot_be_read_is_one_line_that_names_it(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_bytes(content)
    outcome = joulie("plan", "-f", str(file), "-o", "json")
    assert outcome.code == 2
    assert outcome.complaint.startswith(f"{file}: ")
    assert len(outcome.complaint) < 500
    from_pipe = joulie("plan", "-f", "-", stdin=content)
    assert from_pipe.code == 2
    assert from_pipe.complaint.startswith("standard input: ")


def _missing(folder: Path) -> Path:
    return folder / "missing.yaml"


def _empty_folder(folder: Path) -> Path:
    (folder / "notes.txt").write_text("nothing for us")
    return folder


def _dangling(folder: Path) -> Path:
    link = folder / "link.yaml"
    link.symlink_to(folder / "nowhere")
    return link


@pytest.mark.parametrize("make", [_missing, _empty_folder, _dangling])
def test_a_path_that_leads_to_nothing_is_named(make: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make(tmp_path)
    outcome = joulie("plan", "-f", str(path))
    assert outcome.code == 2
    assert outcome.complaint.startswith(f"{path}: ")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    file = tmp_path / "secret.yaml"
    file.write_text("kind: Node")
    file.chmod(0)
    assert joulie("plan", "-f", str(file)).complaint == f"{file}: cannot be read: Permission denied"


def test_one_bad_file_in_a_folder_is_named(tmp_path: Path) -> None:
    write(tmp_path, node("a"), name="a.json")
    (tmp_path / "b.yaml").write_text("kind: [")
    outcome = joulie("plan", "-f", str(tmp_path))
    assert outcome.code == 2
    assert outcome.complaint.startswith(f"{tmp_path / 'b.yaml'}: ")


def test_standard_input_can_be_read_only_once() -> None:
    outcome = joulie("plan", "-f", "-", "-f", "-", stdin=json.dumps(node("a")))
    assert outcome.code == 2
    assert outcome.complaint.startswith("standard input: ")


def test_a_broken_pod_file_is_named(tmp_path: Path) -> None:
    cluster = write(tmp_path, node("a"))
    broken = tmp_path / "pod.yaml"
    broken.write_text("kind: Pod\napiVersion: v1\nmetadata: {name: 5}\n")
    outcome = joulie("score", "-f", cluster, "--pod-file", str(broken))
    assert outcome.code == 2
    assert outcome.complaint.startswith(f"{broken}: ")

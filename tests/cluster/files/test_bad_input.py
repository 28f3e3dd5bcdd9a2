"""Bad input: one line that names file, object and field, or a warning where a cluster would tolerate it."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from joulie.cluster.files import manifests
from joulie.cluster.files.manifests import Loaded
from joulie.errors import InputError

Object = dict[str, Any]


def node(name: Any = "n1", **more: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, **more}


def pod(**more: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "team"}, **more}


def joulie(kind: str, **more: Any) -> Object:
    return {"apiVersion": "joulie.io/v1alpha1", "kind": kind, "metadata": {"name": "x"}, **more}


def pin(**spec: Any) -> Object:
    return joulie("NodePowerProfile", spec={"nodeName": "n1", "profile": "eco", **spec})


def with_cpu(cpu: Any) -> Object:
    return pod(spec={"containers": [{"name": "a"}, {"resources": {"requests": {"cpu": cpu}}}]})


def read(data: bytes | str) -> Loaded:
    return manifests.read(["-"], io.BytesIO(data.encode() if isinstance(data, str) else data))


def complaint(data: bytes | str) -> str:
    """The error's one line, without the file that it must begin with."""
    with pytest.raises(InputError) as caught:
        read(data)
    line = str(caught.value)
    assert line.startswith("standard input: ")
    assert line.isprintable()
    assert len(line) < 800
    assert caught.value.exit_code == 2
    return line.removeprefix("standard input: ")


_TERMS_PATH = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
_BAD_NODES_AND_PODS: list[tuple[Object, str]] = [
    ({"apiVersion": "v1", "kind": "Node"}, "Node #2: metadata: missing"),
    ({"apiVersion": "v1", "kind": "Pod", "metadata": {}}, "Pod #2: metadata.name: missing"),
    (node(""), "Node #2: metadata.name: missing"),
    (node(7), "Node #2: metadata.name: expected a string, got a number"),
    (node(None), "Node #2: metadata.name: expected a string, got nothing"),
    (node("n" * 300), "Node #2: metadata.name: longer than 253 characters"),
    (node("a\n\x1b[31mb"), "Node #2: metadata.name: 'a\\n\\x1b[31mb' is not a name"),
    (node(metadata="n1"), "Node #2: metadata: expected an object, got a string"),
    (
        node(metadata={"name": "n1", "labels": {"a": "b", "c": 3}}),
        "Node/n1: metadata.labels.c: expected a string, got a n",
    ),
    (node(metadata={"name": "n1", "labels": []}), "Node/n1: metadata.labels: expected an object, got a list"),
    (node(spec={"unschedulable": "no"}), "Node/n1: spec.unschedulable: expected true or false, got a string"),
    (node(status={"capacity": {"cpu": "-1"}}), "Node/n1: status.capacity.cpu: '-1' is negative"),
    (node(status={"capacity": {"cpu": True}}), "Node/n1: status.capacity.cpu: expected a number or a string, got true"),
    (node(status={"capacity": {"cpu": "99E"}}), "Node/n1: status.capacity.cpu: '99E' is out of range"),
    (node(status={"capacity": {"amd.com/gpu": 1e30}}), "Node/n1: status.capacity.amd.com/gpu: '1e+30' is out of range"),
    (node(status={"capacity": {"cpu": 10**400}}), "Node/n1: status.capacity.cpu: "),
    (node(status={"capacity": ["cpu"]}), "Node/n1: status.capacity: expected an object, got a list"),
    (with_cpu("abc"), "Pod/team/p: spec.containers[1].resources.requests.cpu: 'abc' is not a quantity"),
    (with_cpu("NaN"), "Pod/team/p: spec.containers[1].resources.requests.cpu: 'NaN' is not a quantity"),
    (with_cpu(-0.5), "Pod/team/p: spec.containers[1].resources.requests.cpu: '-0.5' is negative"),
    (with_cpu(float("nan")), "Pod/team/p: spec.containers[1].resources.requests.cpu: "),
    (with_cpu(float("-inf")), "Pod/team/p: spec.containers[1].resources.requests.cpu: "),
    (with_cpu([1]), "Pod/team/p: spec.containers[1].resources.requests.cpu: expected a number or a string, got a list"),
    (pod(spec=3), "Pod/team/p: spec: expected an object, got a number"),
    (pod(spec={"nodeName": 3}), "Pod/team/p: spec.nodeName: expected a string, got a number"),
    (pod(spec={"containers": {"name": "a"}}), "Pod/team/p: spec.containers: expected a list, got an object"),
    (pod(spec={"containers": [None]}), "Pod/team/p: spec.containers[0]: expected an object, got nothing"),
    (pod(spec={"nodeSelector": {"a": None}}), "Pod/team/p: spec.nodeSelector.a: expected a string, got nothing"),
    (pod(status={"conditions": [{"status": "True"}]}), "Pod/team/p: status.conditions[0].type: missing"),
    (
        pod(
            spec={
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Like"}]}]
                        }
                    }
                }
            }
        ),
        f"Pod/team/p: {_TERMS_PATH}[0].matchExpressions[0].operator: 'Like' is none of",
    ),
    ({"kind": "Node", "metadata": {"name": "n1"}}, "Node/n1: apiVersion: missing"),
    ({"apiVersion": "v1", "metadata": {"name": "n1"}}, "object/n1: has no kind"),
    ({"apiVersion": "v1", "kind": 3}, "object #2: kind: expected a string, got a number"),
    ({"apiVersion": "v1", "kind": "NodeList", "items": {}}, "object #2: items: expected a list, got an object"),
    ({"apiVersion": "v1", "kind": "List", "items": ["x"]}, "object #2: expected an object, got a string"),
]


@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump], ids=["json", "yaml"])
@pytest.mark.parametrize(("bad", "expected"), _BAD_NODES_AND_PODS, ids=[text for _, text in _BAD_NODES_AND_PODS])
def test_an_invalid_node_or_pod_is_an_error_that_names_the_field(bad: Object, expected: str, write: Any) -> None:
    assert complaint(write([node("good"), bad])).startswith(expected)


_BAD_JOULIE_OBJECTS: list[tuple[Object, str]] = [
    (pin(cpu={"packagePowerCapWatts": -3}), "spec.cpu.packagePowerCapWatts: expected at least 0, got -3"),
    (pin(cpu={"packagePowerCapWatts": 1e12}), "spec.cpu.packagePowerCapWatts: expected at most 13107200000, got 10000"),
    (pin(cpu={"packagePowerCapWatts": "300"}), "spec.cpu.packagePowerCapWatts: expected a number, got a string"),
    (pin(cpu={"packagePowerCapWatts": float("nan")}), "spec.cpu.packagePowerCapWatts: "),
    (pin(cpu={"packagePowerCapPctOfMax": 101}), "spec.cpu.packagePowerCapPctOfMax: expected at most 100, got 101"),
    (pin(gpu={"powerCap": {"capPctOfMax": float("inf")}}), "spec.gpu.powerCap.capPctOfMax: "),
    (pin(profile="turbo"), "spec.profile: 'turbo' is not one of the allowed values: eco, performance"),
    (pin(profile=None), "spec.profile: "),
    (pin(nodeName=""), "spec.nodeName: expected at least 1 characters"),
    (pin(nodeName="a b"), "spec.nodeName: 'a b' is not a name"),
    (pin(expiresAt="tomorrow"), "spec.expiresAt: 'tomorrow' is not an RFC 3339 time"),
    (joulie("NodePowerProfile"), "spec: missing"),
    (joulie("NodePowerProfile", spec={"profile": "eco"}), "spec.nodeName: missing"),
    (joulie("NodeHardware", status={"cpu": {"sockets": 1.5}}), "status.cpu.sockets: expected a whole number, got 1.5"),
    (joulie("NodeHardware", status={"cpu": {"sockets": -1}}), "status.cpu.sockets: expected at least 0, got -1"),
    (joulie("NodeHardware", status={"memory": {"totalBytes": 10**400}}), "status.memory.totalBytes: "),
    (
        joulie("NodeHardware", status={"cpu": {"quality": "great"}}),
        "status.cpu.quality: 'great' is not one of the allowed v",
    ),
    (joulie("NodeTwin", spec={"nodeName": "a/b"}), "spec.nodeName: 'a/b' is not a name"),
    (joulie("NodeTwin", status={"lastUpdated": 5}), "status.lastUpdated: expected a string, got a number"),
    (
        joulie("NodeTwin", status={"powerMeasurement": {"powerTrendWPerMin": float("inf")}}),
        "status.powerMeasurement.powerTrendWPerMin: ",
    ),
    (
        joulie("TelemetryProfile", spec={"target": {"scope": "moon"}}),
        "spec.target.scope: 'moon' is not one of the allowed",
    ),
]


@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump], ids=["json", "yaml"])
@pytest.mark.parametrize(("bad", "expected"), _BAD_JOULIE_OBJECTS, ids=[text for _, text in _BAD_JOULIE_OBJECTS])
def test_an_invalid_joulie_object_is_left_out_with_a_warning(bad: Object, expected: str, write: Any) -> None:
    loaded = read(write([node(), bad, joulie("NodeTwin", metadata={"name": "good"})]))
    (warning,) = loaded.warnings
    assert warning.startswith(f"standard input: {bad['kind']}/x: {expected}")
    assert warning.endswith("; ignored")
    snapshot = loaded.snapshot
    assert (list(snapshot.nodes), list(snapshot.hardware), list(snapshot.twins)) == (["n1"], [], ["good"])
    assert not snapshot.pins


def test_a_joulie_object_without_a_name_is_known_by_its_place() -> None:
    loaded = read(json.dumps([node(), joulie("NodeHardware", metadata={})]))
    assert loaded.warnings == ["standard input: NodeHardware #2: metadata.name: missing; ignored"]


@pytest.mark.parametrize(
    ("literal", "shown"),
    [("NaN", "NaN"), ("Infinity", "Infinity"), ("-Infinity", "-Infinity"), ("1e999", "1e999"), ("9" * 5000, "9" * 37)],
)
def test_numbers_that_strict_json_does_not_know_are_named_where_they_matter(literal: str, shown: str) -> None:
    good = json.dumps(node("good"))
    bad_node = (
        f'{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"n"}},"status":{{"capacity":{{"cpu":{literal}}}}}}}'
    )
    assert complaint(f"[{good},{bad_node}]").startswith(f"Node/n: status.capacity.cpu: {shown}")
    bad_twin = (
        '{"apiVersion":"joulie.io/v1alpha1","kind":"NodeTwin","metadata":{"name":"n"},'
        f'"status":{{"predictedPowerHeadroomScore":{literal}}}}}'
    )
    loaded = read(f"[{good},{bad_twin}]")
    assert list(loaded.snapshot.nodes) == ["good"]
    assert not loaded.snapshot.twins
    assert loaded.warnings[0].startswith("standard input: NodeTwin/n: status.predictedPowerHeadroomScore: ")


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "1e999"])
def test_such_numbers_do_no_harm_where_they_are_not_read(literal: str) -> None:
    text = f'{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"n"}},"extra":{literal}}}'
    assert list(read(text).snapshot.nodes) == ["n"]


_LIST = json.dumps({"apiVersion": "v1", "kind": "List", "items": [node()]}, indent=2)
_YAML_LIST = yaml.safe_dump({"apiVersion": "v1", "items": [node()], "kind": "List"})


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "is empty"),
        (b" \n\t\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"# only a comment\n", "contains no objects"),
        (b"---\n---\n", "contains no objects"),
        (b"null\n", "contains no objects"),
        (b"[]", "contains no objects"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "is binary, not text (zero byte at offset 7)"),
        (b"\x1f\x8b\x08\x08abc", "is not UTF-8 text (offset 1)"),
        ("name: café".encode("latin-1"), "is not UTF-8 text (offset 9)"),
        ("kind: Node".encode("utf-16"), "is UTF-16, not UTF-8: save it as UTF-8"),
        (b'{"kind": "Node", "x": "caf\xe9"}', "is not UTF-8 text (offset 26)"),
        (b"Error from server (Forbidden): nodes is forbidden", "object #1: has no kind"),
        (b"hello", "object #1: expected an object, got a string"),
        (b"12", "object #1: expected an object, got a number"),
        (b"[1, 2]", "object #1: expected an object, got a number"),
        (b'{"kind": "Node",, }', "line 1, column 17: "),
        (b'{"a": 1}\n{"a": }', "line 2, column 1: extra data"),
        (b'{"kind": "N\\ud800", "x": NaN}', "an escaped character is half of a surrogate pair"),
        (_LIST[:-20].encode(), "line 9: the JSON ends too early: is the file truncated?"),
        (_LIST[:40].encode(), "line 3: the JSON ends too early: is the file truncated?"),
        (_YAML_LIST.removesuffix("kind: List\n").encode(), "object #1: has no kind: is the file truncated?"),
        (_YAML_LIST[:48].encode(), "object #1: has no kind: is the file truncated?"),
        (_YAML_LIST[:45].encode(), "line 5: could not find expected ':'"),
        (b"kind: Node\nkind: Pod\n", "line 2: the key 'kind' appears twice in one mapping"),
        (b"a: b\n c: d\n", "line 2: mapping values are not allowed"),
        (b"a: &a [*a]", "line 1: the alias *a contains itself"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b"a:\n" + b"- " * 100_000, "line 2: nested more than 100 levels deep"),
    ],
)
def test_a_file_that_makes_no_sense_is_one_line(data: bytes, expected: str) -> None:
    assert complaint(data).startswith(expected)


def test_exploding_aliases_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    assert complaint("\n".join(lines)) == "line 6: aliases expand to more than 1,000,000 values"


def test_what_is_quoted_from_a_file_is_short_and_harmless() -> None:
    odd_label = {"name": "n", "labels": {"\x1b[2J\n" * 10_000: 1}}
    assert complaint(json.dumps(node(metadata=odd_label))).startswith("Node/n: metadata.labels.�[2J �[2J")
    warnings = read(json.dumps({"apiVersion": "v1", "kind": "\x1b[2J" * 10_000})).warnings
    assert [len(warning) < 3000 and warning.isprintable() for warning in warnings] == [True]


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    def one_line(*paths: str) -> str:
        with pytest.raises(InputError) as caught:
            manifests.read(paths, io.BytesIO())
        return str(caught.value)

    missing = tmp_path / "missing.yaml"
    assert one_line(str(missing)) == f"{missing}: cannot be read: No such file or directory"
    assert one_line(str(tmp_path)) == f"{tmp_path}: the folder contains no .json, .yaml, .yml file"
    assert one_line("a\0b").startswith("a\0b: cannot be read: ")
    assert one_line("-", "-") == "standard input: given twice"
    (tmp_path / "a.yaml").write_text(json.dumps(node()))
    (tmp_path / "b.json").touch()
    assert one_line(str(tmp_path)) == f"{tmp_path / 'b.json'}: is empty"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    file = tmp_path / "secret.yaml"
    file.touch(mode=0o000)
    with pytest.raises(InputError, match=r"secret\.yaml: cannot be read: Permission denied"):
        manifests.read([str(file)], io.BytesIO())


def test_a_closed_standard_input_is_one_line() -> None:
    closed = io.BytesIO()
    closed.close()
    with pytest.raises(InputError, match=r"^standard input: cannot be read: "):
        manifests.read(["-"], closed)


_GOOD_FILES = [_LIST.encode(), _YAML_LIST.encode(), json.dumps([with_cpu("1"), pin(), node()]).encode()]


@given(st.sampled_from(_GOOD_FILES), st.integers(0, 400), st.integers(0, 3), st.binary(max_size=4))
def test_no_damage_to_a_file_ever_ends_in_a_traceback(good: bytes, place: int, cut: int, inserted: bytes) -> None:
    damaged = good[:place] + inserted + good[place + cut :]
    try:
        loaded = read(damaged)
    except InputError:
        complaint(damaged)
    else:
        assert loaded.snapshot.nodes or loaded.snapshot.pods or loaded.warnings or b"List" in damaged


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "labels", "spec", "status", "cpu", "containers", "x"]), inner)
    ),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {
            "apiVersion": st.sampled_from(["v1", "joulie.io/v1alpha1"]) | _ANYTHING,
            "kind": st.sampled_from(["Node", "Pod", "NodeTwin", "NodeHardware", "NodePowerProfile", "List"])
            | _ANYTHING,
            "metadata": st.just({"name": "x"}) | _ANYTHING,
            "spec": _ANYTHING,
            "status": _ANYTHING,
        },
        optional={"items": _ANYTHING},
    )
)
def test_no_object_ever_ends_in_a_traceback_and_json_and_yaml_agree(odd: Object) -> None:
    def outcome(text: str) -> object:
        try:
            return read(text).snapshot
        except InputError:
            return "refused"

    assert outcome(json.dumps(odd)) == outcome(yaml.safe_dump(odd))

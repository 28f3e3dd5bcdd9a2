"""Which files can be read, and what becomes of the objects in them."""

from __future__ import annotations

import gc
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from joulie.cluster.files import manifests
from joulie.cluster.files.manifests import Loaded
from joulie.errors import InputError

Object = dict[str, Any]


def node(name: str, **more: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, **more}


def pod(name: str, namespace: str = "default") -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}}


def joulie(kind: str, name: str, **more: Any) -> Object:
    return {"apiVersion": "joulie.io/v1alpha1", "kind": kind, "metadata": {"name": name}, **more}


def pin(name: str, node_name: str = "a") -> Object:
    return joulie("NodePowerProfile", name, spec={"nodeName": node_name, "profile": "eco"})


def read_text(text: str | bytes) -> Loaded:
    data = text.encode() if isinstance(text, str) else text
    return manifests.read(["-"], io.BytesIO(data))


def read_objects(*objects: Object) -> Loaded:
    return read_text(json.dumps(objects))


def found(loaded: Loaded) -> tuple[list[str], list[str]]:
    return sorted(loaded.snapshot.nodes), sorted(pod.name for pod in loaded.snapshot.pods)


A_LIST = {"apiVersion": "v1", "kind": "List", "items": [node("a"), pod("p")]}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(A_LIST),
        json.dumps(A_LIST, indent=4),
        json.dumps(A_LIST, sort_keys=True),
        json.dumps({"items": A_LIST["items"], "kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": ""}}),
        json.dumps(A_LIST["items"]),
        json.dumps(node("a")) + "\n" + json.dumps(pod("p")) + "\n",
        json.dumps(node("a")) + json.dumps({**A_LIST, "items": [pod("p")]}),
        json.dumps({**A_LIST, "items": [A_LIST]}),
        "\ufeff" + json.dumps(A_LIST),
        "\n\t " + json.dumps(A_LIST) + "\n\n",
        yaml.safe_dump(A_LIST),
        yaml.safe_dump(A_LIST["items"]),
        yaml.safe_dump(A_LIST, default_flow_style=True),
        yaml.safe_dump_all([node("a"), pod("p")]),
        "\ufeff" + yaml.safe_dump(A_LIST),
        f"# a comment\n---\n---\n{yaml.safe_dump(node('a'))}---\n# nothing\n---\n{yaml.safe_dump(pod('p'))}...\n",
        f"{json.dumps(node('a'))}\n---\n{json.dumps(pod('p'))}",
        "[{apiVersion: v1, kind: Node, metadata: {name: a}}, {apiVersion: v1, kind: Pod, metadata: {name: p}},]",
    ],
)
def test_every_usual_form_gives_the_same_objects(text: str) -> None:
    loaded = read_text(text)
    assert found(loaded) == (["a"], ["p"])
    assert loaded.warnings == []


@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump])
def test_items_of_a_typed_list_need_not_repeat_their_kind(write: Any) -> None:
    nodes = {"kind": "NodeList", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}}]}
    pods = {"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "p"}}]}
    pins = {"kind": "NodePowerProfileList", "apiVersion": "joulie.io/v1alpha1"}
    items = [{key: value for key, value in pin("x").items() if key in ("metadata", "spec")}]
    loaded = read_text(write([nodes, pods, {**pins, "items": items}]))
    assert found(loaded) == (["a"], ["p"])
    assert [p.name for p in loaded.snapshot.pins] == ["x"]


@pytest.mark.parametrize(
    "empty",
    [
        {"kind": "List", "items": None},
        {"kind": "List", "items": []},
        {"kind": "List"},
        {"kind": "NodeList", "items": None},
        {"kind": "NodeList", "items": []},
    ],
)
@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump])
def test_an_empty_list_is_no_error(empty: Object, write: Any) -> None:
    loaded = read_text(write({"apiVersion": "v1", **empty}))
    assert (found(loaded), loaded.warnings) == (([], []), [])


def test_a_kind_that_only_sounds_like_a_list_is_an_object() -> None:
    assert read_objects({"apiVersion": "net.example/v1", "kind": "AccessList"}).warnings == [
        "standard input: skipped 1 object of kind net.example/v1/AccessList"
    ]


@pytest.mark.parametrize("items", [[], [1], {}, None, 3])
def test_a_field_called_items_does_not_make_a_node_a_list(items: object) -> None:
    for write in (json.dumps, yaml.safe_dump):
        assert found(read_text(write(node("a", items=items)))) == (["a"], [])


def test_an_unknown_object_with_a_field_called_items_is_skipped() -> None:
    assert read_objects({"apiVersion": "v1", "kind": "Menu", "items": {"a": 1}}, node("a")).warnings == [
        "standard input: skipped 1 object of kind v1/Menu"
    ]


def test_unknown_kinds_and_versions_are_skipped_with_one_warning_each() -> None:
    service = {"apiVersion": "v1", "kind": "Service"}
    services = {"kind": "ServiceList", "apiVersion": "v1", "items": [{"metadata": 7}]}
    future = {"apiVersion": "joulie.io/v9", "kind": "NodeTwin", "spec": 3}
    loaded = read_objects(service, node("a"), service, services, future, {"apiVersion": "v2", "kind": "Node"})
    assert found(loaded) == (["a"], [])
    assert loaded.warnings == [
        "standard input: skipped 1 object of kind joulie.io/v9/NodeTwin",
        "standard input: skipped 3 objects of kind v1/Service",
        "standard input: skipped 1 object of kind v2/Node",
    ]


def test_files_folders_and_standard_input_are_read_together(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "deeper.yaml").mkdir(parents=True)
    (folder / "deeper.yaml" / "x.yaml").write_text(json.dumps(node("too-deep")))
    (folder / "b.yml").write_text(yaml.safe_dump(node("b")))
    (folder / "a.yaml").write_text(yaml.safe_dump(node("a")))
    (folder / "c.json").write_text(json.dumps(node("c")))
    (folder / "notes.txt").write_text("not a manifest")
    single = tmp_path / "single"  # a file that is named may be called anything
    single.write_text(json.dumps(node("d")))
    loaded = manifests.read([str(folder), "-", str(single)], io.BytesIO(json.dumps(pod("p")).encode()))
    assert list(loaded.snapshot.nodes) == ["a", "b", "c", "d"]
    assert found(loaded)[1] == ["p"]


def test_warnings_name_the_file_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"apiVersion":"v1","kind":"Service"}')
    loaded = manifests.read([str(tmp_path)], io.BytesIO())
    assert loaded.warnings == [f"{tmp_path / 'a.json'}: skipped 1 object of kind v1/Service"]


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        (node("a"), node("a"), "Node/a"),
        (pod("p", "x"), pod("p", "x"), "Pod/x/p"),
        (pod("p"), {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}, "Pod/default/p"),
        (pin("x"), pin("x", "b"), "NodePowerProfile/x"),
        (joulie("NodeTwin", "a"), joulie("NodeTwin", "a"), "NodeTwin/a"),
        (joulie("NodeHardware", "a"), joulie("NodeHardware", "a"), "NodeHardware/a"),
        (pin("x"), joulie("NodePowerProfile", "x", spec=3), "NodePowerProfile/x"),
        (joulie("NodePowerProfile", "x", spec=3), pin("x"), "NodePowerProfile/x"),
    ],
)
def test_two_objects_of_one_name_are_refused_within_and_across_files(
    tmp_path: Path, first: Object, second: Object, name: str
) -> None:
    with pytest.raises(InputError) as within:
        read_objects(first, second)
    assert str(within.value) == f"standard input: {name}: metadata.name: appears twice"
    one, two = tmp_path / "1.json", tmp_path / "2.yaml"
    one.write_text(json.dumps(first))
    two.write_text(yaml.safe_dump(second))
    with pytest.raises(InputError) as across:
        manifests.read([str(one), str(two)], io.BytesIO())
    assert str(across.value) == f"{two}: {name}: metadata.name: appears here and in {one}"


def test_the_same_name_in_two_namespaces_or_of_two_kinds_is_fine() -> None:
    loaded = read_objects(node("a"), pod("a"), pod("a", "x"), joulie("NodeTwin", "a"), joulie("NodeHardware", "a"))
    assert found(loaded) == (["a"], ["a", "a"])


def test_a_twin_that_bears_another_name_than_its_node_is_left_out_as_in_a_cluster() -> None:
    named = joulie("NodeTwin", "n", spec={"profile": "eco"})
    others = [joulie("NodeTwin", name, spec={"nodeName": "n", "profile": "performance"}) for name in ("a", "z")]
    for objects in ([named, *others], [*others, named], others):
        loaded = read_objects(*objects)
        assert [twin.metadata.name for twin in loaded.snapshot.twins.values()] == ["n"] * (named in objects)
        assert loaded.warnings == [
            f"standard input: NodeTwin/{name}: spec.nodeName: n is not the name of the object; ignored"
            for name in ("a", "z")
        ]


def test_whole_numbers_and_decimals_read_the_same() -> None:
    twins = [
        read_text(
            '{"apiVersion":"joulie.io/v1alpha1","kind":"NodeTwin","metadata":{"name":"a"},'
            f'"status":{{"predictedPowerHeadroomScore":{number}}}}}'
        ).snapshot.twins
        for number in ("60", "60.0", "6e1")
    ]
    assert twins[0] == twins[1] == twins[2]


def test_a_pod_is_found_by_namespace_and_name() -> None:
    loaded = read_objects(pod("p"), pod("p", "x"))
    wanted = loaded.find_pod("x", "p")
    assert wanted is not None
    assert wanted.namespace == "x"
    assert loaded.find_pod("y", "p") is None


def test_the_one_pod_of_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(yaml.safe_dump_all([{"apiVersion": "v1", "kind": "Service"}, pod("p", "x")]))
    assert manifests.read_pod(str(file), io.BytesIO()).name == "p"
    assert manifests.read_pod("-", io.BytesIO(file.read_bytes())).namespace == "x"


@pytest.mark.parametrize(("objects", "count"), [([node("a")], "no Pod"), ([pod("p"), pod("q")], "2 Pods")])
def test_a_pod_file_with_another_number_of_pods_is_refused(tmp_path: Path, objects: list[Object], count: str) -> None:
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(objects))
    with pytest.raises(InputError) as caught:
        manifests.read_pod(str(file), io.BytesIO())
    assert str(caught.value) == f"{file}: contains {count}, but exactly one is needed"


@pytest.mark.parametrize("was_on", [True, False])
@pytest.mark.parametrize("text", ["{}", json.dumps(node("a"))])
def test_garbage_collection_is_left_as_it_was(text: str, was_on: bool) -> None:
    try:
        (gc.enable if was_on else gc.disable)()
        try:
            read_text(text)
        except InputError:
            assert text == "{}"
        assert gc.isenabled() is was_on
    finally:
        gc.enable()

"""However objects are written down and in whatever order, the snapshot is the same."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from joulie.cluster.files import manifests
from joulie.cluster.files.manifests import Loaded

Object = dict[str, Any]

_NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
_VALUES = st.sampled_from(
    ["", "eco", "performance", "true", "1", "0x1", "on", "null", "1.0e+3", "2026-11-01", "~", "é"]
)
_LABELS = st.none() | st.dictionaries(st.sampled_from(["zone", "joulie.io/power-profile", "yes", "1"]), _VALUES)
_QUANTITIES = st.sampled_from(["100m", "1.5", "2", "1e3", 4, 0.5, "0"])
_RESOURCES = st.none() | st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "amd.com/gpu"]), _QUANTITIES
)
_WATTS = st.none() | st.integers(0, 1000) | st.floats(0, 1000)
_TIMES = st.none() | st.sampled_from(["2026-11-01T12:00:00Z", "2026-11-01T14:00:00.5+02:00"])


def _object(kind: str, version: str = "v1", **parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Object]:
    metadata = st.fixed_dictionaries(
        {"name": _NAMES, "labels": _LABELS, "annotations": _LABELS, "creationTimestamp": _TIMES}
    )
    return st.fixed_dictionaries({"apiVersion": st.just(version), "kind": st.just(kind), "metadata": metadata, **parts})


_CONTAINERS = st.lists(
    st.fixed_dictionaries({"resources": st.fixed_dictionaries({"requests": _RESOURCES, "limits": _RESOURCES})}),
    max_size=3,
)
_NODES = _object(
    "Node",
    spec=st.fixed_dictionaries({"unschedulable": st.none() | st.booleans()}),
    status=st.fixed_dictionaries({"capacity": _RESOURCES, "allocatable": _RESOURCES}),
)
_PODS = _object(
    "Pod",
    spec=st.fixed_dictionaries({"nodeName": _NAMES, "nodeSelector": _LABELS, "containers": _CONTAINERS}),
    status=st.none() | st.fixed_dictionaries({"phase": st.sampled_from(["Running", "Failed"])}),
)
_PINS = _object(
    "NodePowerProfile",
    "joulie.io/v1alpha1",
    spec=st.fixed_dictionaries(
        {
            "nodeName": _NAMES,
            "profile": st.sampled_from(["eco", "performance"]),
            "cpu": st.none() | st.fixed_dictionaries({"packagePowerCapWatts": _WATTS}),
            "expiresAt": _TIMES,
        }
    ),
)
_TWINS = _object(
    "NodeTwin",
    "joulie.io/v1alpha1",
    status=st.fixed_dictionaries({"powerMeasurement": st.fixed_dictionaries({"measuredNodePowerW": _WATTS})}),
)
_CLUSTERS = st.lists(
    _NODES | _PODS | _PINS | _TWINS, min_size=1, max_size=8, unique_by=lambda o: (o["kind"], o["metadata"]["name"])
)


def read(text: str) -> Loaded:
    return manifests.read(["-"], io.BytesIO(text.encode()))


def in_one_order(loaded: Loaded) -> Any:
    snapshot = loaded.snapshot
    return (
        snapshot.nodes,
        sorted(snapshot.pods, key=lambda pod: (pod.namespace, pod.name)),
        snapshot.twins,
        snapshot.hardware,
        sorted(snapshot.pins, key=lambda pin: pin.name),
    )


@given(_CLUSTERS)
def test_json_and_yaml_give_equal_snapshots(objects: list[Object]) -> None:
    as_json = read(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    assert len(as_json.snapshot.nodes) + len(as_json.snapshot.pods) + len(as_json.snapshot.twins) + len(
        as_json.snapshot.pins
    ) == len(objects)
    assert as_json.warnings == []
    for text in (
        yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": objects}),
        yaml.safe_dump_all(objects),
        yaml.safe_dump(objects, default_style='"'),  # every number then has a tag
        json.dumps(objects, ensure_ascii=False, indent=1),
        # One number that strict JSON does not know sends the whole file down the lenient path.
        json.dumps([*objects, {"apiVersion": "v1", "kind": "Odd", "x": float("nan")}]),
    ):
        assert read(text).snapshot == as_json.snapshot


@given(_CLUSTERS, st.randoms(use_true_random=False))
def test_the_order_of_objects_and_of_fields_never_matters(objects: list[Object], chance: random.Random) -> None:
    shuffled = chance.sample(objects, len(objects))
    reordered = [dict(chance.sample(list(o.items()), len(o))) for o in shuffled]
    assert in_one_order(read(json.dumps(reordered))) == in_one_order(read(json.dumps(objects)))


@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump])
def test_fields_that_are_not_read_may_hold_anything(write: Any) -> None:
    plain: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    odd = {**plain, "status": {"images": [{"sizeBytes": 1e308}, None, 3], "capacity": {"pods": "?"}}, "extra": {"": []}}
    odd["metadata"] = {"name": "a", "managedFields": "x", "ownerReferences": {"not": "a list"}}
    assert read(write(odd)).snapshot == read(write(plain)).snapshot

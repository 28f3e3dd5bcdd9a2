"""Before kube-scheduler displaces pods for a performance pod: not on nodes where it will be refused afterwards."""

from __future__ import annotations

import json
from typing import Any

import pytest

from joulie.extender.process import Extender
from tests.extender.api_objects import node, pod, twin
from tests.extender.harness import load_objects, made, scenario, serving

METAS: dict[str, dict[str, Any]] = {
    "perf": {"Pods": [{"UID": "u-1"}, {"UID": "u-2"}], "NumPDBViolations": 1},
    "eco": {"Pods": [{"UID": "u-3"}], "NumPDBViolations": 0},
    "drains": {"Pods": [], "NumPDBViolations": 0},
    "unknown": {"Pods": [{"UID": "u-4"}], "NumPDBViolations": 2},
    "labelled": {"Pods": None, "NumPDBViolations": 0},
}
WHOLES = {
    name: {
        "Pods": [{"metadata": {"name": f"p-{each['UID']}", "uid": each["UID"]}, "spec": {}} for each in meta["Pods"]]
        if meta["Pods"] is not None
        else None,
        "NumPDBViolations": meta["NumPDBViolations"],
    }
    for name, meta in METAS.items()
}


def _extender() -> Extender:
    extender = made()
    load_objects(
        extender,
        nodes=[node("perf"), node("eco"), node("drains"), node("labelled", "eco")],
        twins=[twin("perf"), twin("eco", "eco", at_s=0), twin("drains", "draining")],
    )
    return extender


async def _asked(body: dict[str, Any]) -> Any:
    async with serving(_extender()) as asker:
        document = (await asker.post("/preempt", body)).document
    assert list(document) == ["NodeNameToMetaVictims"]
    return document["NodeNameToMetaVictims"]


def _spelled(lower: bool, body: dict[str, Any]) -> dict[str, Any]:
    return {key[0].lower() + key[1:] if lower else key: value for key, value in body.items()}


def _wholes(lower: bool) -> dict[str, dict[str, Any]]:
    return {name: _spelled(lower, victims) for name, victims in WHOLES.items()}


@pytest.mark.parametrize("lower", [False, True], ids=["capitalised", "lower case"])
@pytest.mark.parametrize("whole", [False, True], ids=["metas", "whole victims"])
class TestVictims:
    def body(self, whole: bool, lower: bool, performance: bool) -> dict[str, Any]:
        victims = {
            "NodeNameToVictims": _wholes(lower) if whole else None,
            "NodeNameToMetaVictims": None if whole else METAS,
        }
        return _spelled(lower, {"Pod": pod(performance=performance), **victims})

    def test_a_performance_pod_keeps_only_nodes_that_it_may_use(self, whole: bool, lower: bool) -> None:
        async def story() -> None:
            kept = await _asked(self.body(whole, lower, performance=True))
            assert kept == {name: METAS[name] for name in ("perf", "unknown")}

        scenario(story())

    def test_any_other_pod_keeps_all(self, whole: bool, lower: bool) -> None:
        async def story() -> None:
            kept = await _asked(self.body(whole, lower, performance=False))
            expected = {
                name: meta if meta["Pods"] or not whole else {**meta, "Pods": []} for name, meta in METAS.items()
            }
            assert kept == expected

        scenario(story())


def test_victims_that_came_as_metas_go_back_byte_by_byte() -> None:
    async def story() -> None:
        meta = b'{ "Pods":[ {"UID":"\\u0061", "later":1e2} ] ,"NumPDBViolations":0}'
        asking = json.dumps(pod(performance=True)).encode()
        async with serving(_extender()) as asker:
            answer = await asker.post("/preempt", b'{"Pod":%b,"NodeNameToMetaVictims":{"perf":%b}}' % (asking, meta))
        assert answer.body == b'{"NodeNameToMetaVictims":{"perf":%b}}' % meta

    scenario(story())


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ({"Pod": pod()}, "NodeNameToMetaVictims and NodeNameToVictims are both missing"),
        ({"NodeNameToMetaVictims": {}}, "Pod: missing"),
        ({"Pod": None, "NodeNameToMetaVictims": {}}, "Pod: missing"),
        ({"Pod": pod(), "NodeNameToMetaVictims": []}, "the request: Expected `object | null`, got `array`"),
        ({"Pod": pod(), "NodeNameToVictims": {"a": {"Pods": [{}]}}}, "the request: Object missing required field"),
        ({"Pod": pod(), "NodeNameToVictims": {"a": {"NumPDBViolations": "1"}}}, "the request: Expected `int`"),
    ],
)
def test_what_cannot_be_read_is_refused_with_one_line(body: dict[str, Any], line: str) -> None:
    async def story() -> None:
        async with serving(_extender()) as asker:
            answer = await asker.post("/preempt", body)
            assert answer.status == 400
            assert answer.line.startswith(line)

    scenario(story())

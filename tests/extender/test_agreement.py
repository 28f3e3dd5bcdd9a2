"""Over HTTP the extender says what `joulie score` says and what the independent reading of the specification says."""

from __future__ import annotations

import json
import math
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import pytest

from joulie.cluster.files import manifests
from joulie.extender.process import Extender
from joulie.model.rfc3339 import parse_time_s
from joulie.settings import ExtenderSettings, load
from tests.extender.api_objects import PROFILE, as_objects, node, pod, twin
from tests.extender.harness import Asker, load_objects, made, scenario, serving
from tests.oracle.answers import Question, differences, score_json
from tests.oracle.random_cases.clusters import Case, random_case
from tests.oracle.rules.score import class_of
from tests.oracle.rules.score import score as expected_score
from tests.oracle.rules.settings import read_settings
from tests.oracle.rules.snapshot import read_snapshot
from tests.support.cli_runner import DEMO, NOW, joulie
from tests.support.small_clusters import CATALOGUE
from tests.support.small_clusters import NOW as STARTED_S

BLOCK = 50
FAST = range(0, 200, BLOCK)
SLOW = range(200, 1500, BLOCK)
SCORE_MAXIMA = (100, 100, 10, 1, 7, 99)
STRANGER = "nobody-knows"


def rounded(score: float, score_max: int) -> int:
    return math.floor(score * score_max / 100 + 0.5)


def nearly_between(score: float, score_max: int) -> bool:
    """So near to the half that the last digit of a float decides."""
    return abs((score * score_max / 100 + 0.5) % 1.0 - 0.5) > 0.5 - 1e-7


def spelled(rng: Random, **parts: Any) -> bytes:
    """The keys as kube-scheduler writes them, or as people do; the objects inside stay as they are."""
    lower = rng.random() < 0.5
    spelled_ = {(key[0].lower() + key[1:]) if lower else key: value for key, value in parts.items()}
    return json.dumps(spelled_, indent=rng.choice([None, None, 1])).encode()


async def disagreements(seed: int, contested: bool) -> list[str]:
    rng = Random(seed)
    case = random_case(seed, contested)
    score_max = rng.choice(SCORE_MAXIMA)
    question = Question.of(case)
    settings = load(ExtenderSettings, {**case.env, "EXTENDER_SCORE_MAX": str(score_max)})
    extender = Extender(settings, CATALOGUE, lambda: case.now)
    extender.state.load(question.cluster)
    async with serving(extender) as asker:
        found = await _compare(asker, rng, case, score_max, score_json(question))
    return [f"seed {seed}: {line}" for line in found]


async def _compare(asker: Asker, rng: Random, case: Case, score_max: int, ours: Any) -> list[str]:
    theirs = expected_score(case.objects, case.env, case.now, case.pod)
    snapshot, spec = read_snapshot(case.objects), read_settings(case.env)
    profile = rng.choice(["eco", "performance", "x"])
    labelled = {"metadata": {"name": STRANGER, "labels": {spec.profile_key: profile}}}
    wholes = [obj for obj in case.objects if obj["kind"] == "Node"] + [labelled]
    rng.shuffle(wholes)
    names = [whole["metadata"]["name"] for whole in wholes]
    performance = theirs["workloadClass"] == "performance"
    found: list[str] = []

    by_name = await asker.post("/prioritize", spelled(rng, Pod=case.pod, Nodes=None, NodeNames=names))
    by_node = await asker.post("/prioritize", spelled(rng, Pod=case.pod, Nodes={"items": wholes}, NodeNames=None))
    if by_name.document != by_node.document:
        found.append("prioritize: names and whole nodes differ")
    told = by_name.scores
    if sorted(told) != sorted(names) or len(by_name.document) != len(names):
        found.append(f"prioritize: {sorted(told)} for {sorted(names)}")
    expected = {each["node"]: rounded(each["score"], score_max) for each in ours["nodes"]}
    expected[STRANGER] = rounded(50.0, score_max)
    if told != expected:
        found.append(f"prioritize: {told}, joulie score says {expected}")
    found += [
        f"prioritize: {each['node']} {told[each['node']]}, the oracle says {each['score']}"
        for each in theirs["nodes"]
        if told[each["node"]] != rounded(each["score"], score_max) and not nearly_between(each["score"], score_max)
    ]

    classes = {name: class_of(name, snapshot, spec) for name in names}
    classes[STRANGER] = "unknown"
    asked = await asker.post("/filter", spelled(rng, Pod=case.pod, Nodes=None, NodeNames=names))
    found += _filtered(asked.document, names, classes, performance)
    if not all(each["feasible"] is (each["node"] in asked.document["NodeNames"]) for each in theirs["nodes"]):
        found.append("filter: not the nodes that the oracle calls feasible")
    classes[STRANGER] = profile
    asked = await asker.post("/filter", spelled(rng, Pod=case.pod, Nodes={"items": wholes}, NodeNames=None))
    back = asked.document
    if back.pop("NodeNames") is not None or any(item not in wholes for item in back["Nodes"]["items"]):
        found.append("filter: whole nodes changed on their way")
    back["NodeNames"] = [item["metadata"]["name"] for item in back["Nodes"]["items"]]
    back["Nodes"] = None
    found += _filtered(back, names, classes, performance)

    scored = (await asker.post("/debug/scoring", case.pod)).document
    if scored != ours:
        found.append("debug view differs from joulie score")
    return found + [f"debug{line}" for line in differences(scored, theirs)]


def _filtered(answer: Any, names: list[str], classes: dict[str, str], performance: bool) -> list[str]:
    refused = {name for name in names if performance and classes[name] in ("eco", "draining")}
    expected = {
        "Nodes": None,
        "NodeNames": [name for name in names if name not in refused],
        "FailedNodes": {},
        "Error": "",
        "FailedAndUnresolvableNodes": {
            name: f"node is {classes[name]}, and the pod's class is performance" for name in refused
        },
    }
    return [] if answer == expected else [f"filter: {answer}, expected {expected}"]


@pytest.mark.parametrize("contested", [False, True], ids=["settled", "contested"])
@pytest.mark.parametrize("first", [*FAST, *(pytest.param(first, marks=pytest.mark.slow) for first in SLOW)])
def test_answers_agree_with_joulie_score_and_with_the_oracle(first: int, contested: bool) -> None:
    async def story() -> None:
        found = [line for seed in range(first, first + BLOCK) for line in await disagreements(seed, contested)]
        assert found == []

    scenario(story())


@pytest.mark.parametrize("performance", [False, True])
def test_answers_agree_with_the_command_itself(tmp_path: Path, performance: bool) -> None:
    nodes = [node(name, profile) for name, profile in (("a", ""), ("b", "eco"), ("c", ""), ("d", "performance"))]
    twins = [twin("a"), twin("b", "eco", measured_w=100), twin("d", "performance", at_s=0), twin("gone", measured_w=9)]
    objects = as_objects(nodes=nodes, twins=twins, pods=[pod("bound", on="a", cpu="20"), pod(performance=performance)])
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    command = joulie("score", "-f", str(file), "--pod", "default/asking", "-o", "json", "--now", "2026-11-01T12:00:00Z")
    expected = command.document

    async def story() -> None:
        extender = made()
        extender.state.load(manifests.read([str(file)], BytesIO()).snapshot)
        async with serving(extender) as asker:
            assert (await asker.get("/debug/scoring?pod=default/asking")).document == expected
            told = await asker.prioritize(pod(performance=performance), ["a", "b", "c", "d"])
            assert told == {each["node"]: rounded(each["score"], 100) for each in expected["nodes"]}
            kept = (await asker.filter(pod(performance=performance), ["a", "b", "c", "d"]))["NodeNames"]
            assert kept == [each["node"] for each in expected["nodes"] if each["feasible"]]

    scenario(story())
    assert [each["score"] == 50 for each in expected["nodes"]] == [False, False, True, True]


def test_the_bundled_example_scores_the_same_from_the_command_and_over_http() -> None:
    expected = joulie("score", "-f", DEMO, "--pod", "ml/finetune-0", "-o", "json", *NOW).document

    async def story() -> None:
        extender = made(now_s=lambda: parse_time_s(NOW[1]))
        extender.state.load(manifests.read([DEMO], BytesIO()).snapshot)
        async with serving(extender) as asker:
            assert (await asker.get("/debug/scoring?pod=ml/finetune-0")).document == expected

    scenario(story())
    assert len({each["score"] for each in expected["nodes"]}) > 3


class TestOfWholeNodes:
    WHOLES = (
        b'{"metadata":{"name":"a"},"odd" : [1.0e2,\n true, "\\u00e9\xc3\xa9"]}',
        b'{ "status": {}, "metadata": {"labels": {"joulie.io/power-profile": "eco"}, "name": "label-says-eco"} }',
        b'{"metadata":{"name":"b"},"spec":{"podCIDR":"10.0.0.0/24"}}',
        b'{"metadata":{"name":"stranger","labels":{"joulie.io/power-profile":"performance"}}}',
        b'{"metadata":{"name":"n\\u0061med-oddly"},"x":-0}',
    )

    def body(self, performance: bool) -> bytes:
        asking = json.dumps(pod(performance=performance)).encode()
        return b'{"Pod":%b,"Nodes":{"metadata":{},"items":[%b]},"NodeNames":null}' % (asking, b",".join(self.WHOLES))

    @pytest.mark.parametrize(
        ("performance", "kept"), [(False, (0, 1, 2, 3, 4)), (True, (0, 3, 4))], ids=["standard", "performance"]
    )
    def test_survivors_come_back_byte_by_byte(self, performance: bool, kept: tuple[int, ...]) -> None:
        async def story() -> None:
            extender = made()
            load_objects(extender, nodes=[node("a"), node("b")], twins=[twin("a"), twin("b", "draining")])
            async with serving(extender) as asker:
                answer = await asker.post("/filter", self.body(performance))
                assert b'"items":[' + b",".join(self.WHOLES[at] for at in kept) + b"]" in answer.body
                refused = answer.document["FailedAndUnresolvableNodes"]
                assert list(refused) == ([] if not performance else ["b", "label-says-eco"])
                scores = (await asker.post("/prioritize", self.body(performance))).scores
                assert list(scores) == ["a", "b", "label-says-eco", "stranger", "named-oddly"]
                assert [scores[name] for name in ("label-says-eco", "stranger", "named-oddly")] == [50, 50, 50]

        scenario(story())

    @pytest.mark.parametrize("performance", [False, True], ids=["standard", "performance"])
    def test_megabytes_come_back_byte_by_byte_too(self, performance: bool) -> None:
        async def story() -> None:
            names = [f"n{number}" for number in range(1500)]
            extender = made()
            load_objects(extender, twins=[twin(name, "eco") for name in names[::3]])
            wholes = [b'{"metadata":{"name":"%b"},"x":"%b"}' % (name.encode(), b"\xc3\xa9" * 1000) for name in names]
            asking = json.dumps(pod(performance=performance)).encode()
            async with serving(extender) as asker:
                for count in (1500, 2, 1):
                    body = b'{"Pod":%b,"Nodes":{"items":[%b]}}' % (asking, b",".join(wholes[:count]))
                    answer = await asker.post("/filter", body)
                    kept = [whole for at, whole in enumerate(wholes[:count]) if at % 3 or not performance]
                    assert b'"items":[' + b",".join(kept) + b"]}" in answer.body
                    refused = answer.document["FailedAndUnresolvableNodes"]
                    assert len(refused) + len(kept) == count

        scenario(story())


class TestFallback:
    def test_a_node_without_a_twin_speaks_by_its_label_and_scores_neutral(self) -> None:
        async def story() -> None:
            extender = made()
            nodes = [node("e", "eco"), node("p", "performance"), node("n"), node("x", "odd"), node("t", "eco")]
            load_objects(extender, nodes=nodes, twins=[twin("t", "performance", measured_w=0)])
            async with serving(extender) as asker:
                names = ["e", "p", "n", "x", "t", "never-seen"]
                assert (await asker.filter(pod(performance=True), names))["NodeNames"] == [*names[1:]]
                scores = await asker.prioritize(pod(performance=True), names)
                assert scores.pop("t") > 50
                assert set(scores.values()) == {50}

        scenario(story())

    @pytest.mark.parametrize("said", ["", "unknown"])
    def test_a_twin_without_a_class_leaves_the_word_to_the_label(self, said: str) -> None:
        async def story() -> None:
            extender = made({"POWER_PROFILE_LABEL": "own/label"})
            nodes = [node("e", labels={"own/label": "eco"}), node("f", "eco")]
            load_objects(extender, nodes=nodes, twins=[twin("e", said), twin("f", said)])
            async with serving(extender) as asker:
                assert (await asker.filter(pod(performance=True), ["e", "f"]))["NodeNames"] == ["f"]

        scenario(story())

    def test_a_stale_twin_scores_neutral_and_still_filters(self) -> None:
        async def story() -> None:
            now_s = [STARTED_S]
            extender = made(now_s=lambda: now_s[0])
            load_objects(extender, nodes=[node("a"), node("e")], twins=[twin("a", measured_w=0), twin("e", "eco")])
            async with serving(extender) as asker:
                assert (await asker.prioritize(pod(), ["a", "e"]))["a"] != 50
                now_s[0] += 300
                assert (await asker.prioritize(pod(), ["a", "e"]))["a"] != 50
                now_s[0] += 0.001
                assert await asker.prioritize(pod(), ["a", "e"]) == {"a": 50, "e": 50}
                assert (await asker.filter(pod(performance=True), ["a", "e"]))["NodeNames"] == ["a"]
                now_s[0] -= 100  # the clock was set back
                assert (await asker.prioritize(pod(), ["a", "e"]))["a"] != 50

        scenario(story())

    def test_no_candidate_gets_an_empty_answer(self) -> None:
        async def story() -> None:
            async with serving(_loaded()) as asker:
                assert (await asker.filter(pod(performance=True), []))["NodeNames"] == []
                assert await asker.prioritize(pod(), []) == {}
                empty = {"Pod": pod(), "Nodes": {"items": None}, "NodeNames": None}
                assert (await asker.post("/filter", empty)).document["Nodes"]["items"] == []
                assert (await asker.post("/prioritize", empty)).document == []

        scenario(story())

    def test_a_name_asked_twice_is_answered_twice(self) -> None:
        async def story() -> None:
            async with serving(_loaded()) as asker:
                answer = await asker.post("/prioritize", {"Pod": pod(), "NodeNames": ["a", "zz", "a", "zz"]})
                assert sorted(each["Host"] for each in answer.document) == ["a", "a", "zz", "zz"]

        scenario(story())


def _loaded() -> Extender:
    extender = made()
    load_objects(extender, nodes=[node("a"), node("b", "eco")], twins=[twin("a"), twin("b", "eco")])
    return extender


def test_the_label_is_the_one_of_the_specification() -> None:
    assert load(ExtenderSettings, {}).score.power_profile_label == PROFILE

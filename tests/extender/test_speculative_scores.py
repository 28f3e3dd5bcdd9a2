"""Scores are computed ahead for the nodes that passed a filter; they are never other than those computed on demand."""

from __future__ import annotations

import random

import msgspec
import pytest

from joulie.cluster.decoding.decoders import DECODERS
from joulie.cluster.port import NODE_TWINS, NODES, Upserted
from joulie.extender.process import Extender
from joulie.extender.requests import ExtenderArgs, read_args
from tests.extender.api_objects import Body, node, pod, twin
from tests.extender.harness import made
from tests.support.small_clusters import NOW

NAMES = [f"node-{number:02}" for number in range(20)]


def knowing(seed: int) -> Extender:
    extender, chance = made({}), random.Random(seed)
    for name in NAMES:
        put(extender, NODES, node(name))
        put(extender, NODE_TWINS, twin(name, chance.choice(["performance", "eco"]), measured_w=chance.randrange(600)))
    return extender


def put(extender: Extender, resource: object, body: Body) -> None:
    kind = NODES if resource is NODES else NODE_TWINS
    value = DECODERS[kind](msgspec.json.encode(body))
    extender.state.take(kind, [Upserted(body["metadata"]["name"], value, 0)])


def asked(names: list[str], asking: Body) -> ExtenderArgs:
    return read_args(msgspec.json.encode({"Pod": asking, "NodeNames": names}), max_nodes=10_000)


def filtered(extender: Extender, question: ExtenderArgs) -> list[str]:
    answer = extender.answers.filter(question)
    extender.answers.speculate(question, answer.kept, NOW)
    kept: list[str] = msgspec.json.decode(answer.kept)
    return kept


def scores(extender: Extender, names: list[str], asking: Body) -> bytes:
    return extender.answers.prioritize(asked(names, asking), NOW).body


@pytest.mark.parametrize("performance", [False, True])
def test_what_was_foreseen_is_what_would_have_been_computed(performance: bool) -> None:
    ahead, on_demand = knowing(1), knowing(1)
    for number in range(10):
        asking = pod(f"p{number}", performance=performance, cpu=str(number % 3 + 1))
        some = random.Random(number).sample(NAMES, 12)
        kept = filtered(ahead, asked(some, asking))
        foreseen = ahead.answers.speculative.bodies()
        assert bool(foreseen) == (number > 0)  # the first question shows that it is worth it
        answer = scores(ahead, kept, asking)
        assert answer == scores(on_demand, kept, asking)
        assert not foreseen or answer is foreseen[0]


def test_a_twin_that_changes_in_between_is_seen() -> None:
    extender, fresh = knowing(2), knowing(2)
    asking = pod()
    for _ in range(2):
        kept = filtered(extender, asked(NAMES, asking))
        scores(extender, kept, asking)
    kept = filtered(extender, asked(NAMES, asking))
    for one in (extender, fresh):
        put(one, NODE_TWINS, twin(NAMES[3], "eco", measured_w=1))
    assert scores(extender, kept, asking) == scores(fresh, kept, asking)


def test_another_pod_or_other_names_get_their_own_scores() -> None:
    extender, fresh = knowing(3), knowing(3)
    small, large = pod("small", cpu="1"), pod("large", cpu="90")
    for asking, names in ((small, NAMES), (large, NAMES), (small, NAMES[:5]), (large, NAMES[::-1])):
        filtered(extender, asked(NAMES, small))
        assert scores(extender, names, asking) == scores(fresh, names, asking)


def test_nothing_is_computed_for_a_client_that_only_filters() -> None:
    extender = knowing(4)
    for _ in range(2):
        kept = filtered(extender, asked(NAMES, pod()))
        scores(extender, kept, pod())
    computed = []
    for _ in range(3):
        filtered(extender, asked(NAMES, pod()))
        computed.append(bool(extender.answers.speculative.bodies()))
    assert computed == [True, False, False]


@pytest.mark.parametrize(
    "names", [[], ["a"], ["a", "b"], ["a,b", "c"], ['quo"te'], ["back\\slash"], ["ä"], ["a", ""], ["[", "]"]]
)
def test_names_of_any_form_are_read_as_they_are(names: list[str]) -> None:
    assert asked(names, pod()).names == names
    extender = knowing(5)
    assert msgspec.json.decode(extender.answers.filter(asked(names, pod())).body)["NodeNames"] == names


@pytest.mark.parametrize(
    "listed", ['["a",["b"],"c"]', '["a",1]', "[1]", '{"a":"b"}', '"a"', '["a",{"b":"c"}]', '["a",null]']
)
def test_what_is_no_list_of_names_is_refused(listed: str) -> None:
    answers = knowing(5).answers
    body = b'{"Pod":%b,"NodeNames":%b}' % (msgspec.json.encode(pod()), listed.encode())
    with pytest.raises(ValueError, match="NodeNames"):
        answers.filter(read_args(body, max_nodes=10_000))
    with pytest.raises(ValueError, match="NodeNames"):
        answers.prioritize(read_args(body, max_nodes=10_000), 0.0)

"""Plan, twin and score agree with the independent reading of the specification in tests/oracle, on random clusters.

Contested cases are those on which the specification is silent; there both sides made the same choices, which
tests/oracle/DECISIONS.md lists.
"""

from __future__ import annotations

import pytest

from tests.oracle.answers import Question, differences, plan_json, score_json, twin_json
from tests.oracle.random_cases.clusters import random_case
from tests.oracle.rules.plan import plan as expected_plan
from tests.oracle.rules.score import score as expected_score
from tests.oracle.rules.twin import twin as expected_twin

BLOCK = 50
FAST = range(0, 400, BLOCK)
SLOW = range(400, 3000, BLOCK)


def disagreements(seed: int, contested: bool) -> list[str]:
    case = random_case(seed, contested)
    question = Question.of(case)
    decided = question.decide()
    answers = {
        "plan": (plan_json(decided), expected_plan(case.objects, case.env, case.now, case.policy, case.selector)),
        "twin": (
            twin_json(decided),
            expected_twin(case.objects, case.env, case.now, case.ambient, case.policy, case.selector),
        ),
        "score": (score_json(question), expected_score(case.objects, case.env, case.now, case.pod)),
    }
    return [f"seed {seed}: {name}{line}" for name, pair in answers.items() for line in differences(*pair)]


@pytest.mark.parametrize("contested", [False, True], ids=["settled", "contested"])
@pytest.mark.parametrize("first", [*FAST, *(pytest.param(first, marks=pytest.mark.slow) for first in SLOW)])
def test_plan_twin_and_score_agree_with_the_oracle(first: int, contested: bool) -> None:
    assert [line for seed in range(first, first + BLOCK) for line in disagreements(seed, contested)] == []


@pytest.mark.parametrize(
    ("ours", "theirs", "line"),
    [
        ({"a": 1.0}, {"a": 1}, None),
        ({"a": 1.0}, {"a": 1.0 + 1e-12}, None),
        ({"a": 1.0, "reason": "x"}, {"a": 1.0, "reason": "y"}, None),
        ({"a": 1.0}, {"a": 1.00001}, ".a: 1.0 here, 1.00001 there"),
        ({"a": 1.0}, {"a": "1"}, ".a: 1.0 here, '1' there"),
        ({"a": None}, {"a": 0.0}, ".a: None here, 0.0 there"),
        ({"a": 1}, {}, ".a only here"),
        ({}, {"a": 1}, ".a only there"),
        ([1, 2], [1], ": 2 and 1 elements"),
        ([{"a": "x"}], [{"a": "y"}], "[0].a: 'x' here, 'y' there"),
    ],
)
def test_the_comparison_itself_sees_differences(ours: object, theirs: object, line: str | None) -> None:
    assert list(differences(ours, theirs)) == ([line] if line else [])

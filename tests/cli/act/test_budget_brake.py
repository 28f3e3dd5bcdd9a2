"""`joulie pause`, `resume` and `budget forget` on a live cluster: annotations that the operator reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.agent.chain import JOULIE
from tests.cli.installation import Installation, Object

BUDGETS = f"{JOULIE}/powerbudgets"
PAUSED, FORGET = "joulie.io/paused", "joulie.io/forget"


@pytest.fixture(autouse=True)
def no_budget_is_left(there: Installation) -> Iterator[None]:
    there.plane.apply([budget("feed-a", mode="report"), budget("feed-b", mode="report")])
    yield
    there.plane.api.delete(BUDGETS)


def budget(name: str, **spec: Any) -> Object:
    body = {"watts": 100000, **spec}
    metadata = {"name": name, "annotations": {"kept": "yes"}}
    return {"apiVersion": "joulie.io/v1alpha1", "kind": "PowerBudget", "metadata": metadata, "spec": body}


def notes(there: Installation, name: str) -> dict[str, str]:
    return dict(there.plane.api.get(f"{BUDGETS}/{name}")["metadata"]["annotations"])


def test_a_pause_is_an_annotation_that_resume_takes_away(there: Installation) -> None:
    outcome = there.run("pause", "feed-a")
    assert outcome.code == 0, outcome
    assert outcome.out.startswith("PowerBudget/feed-a is paused\n")
    assert notes(there, "feed-a") == {"kept": "yes", PAUSED: "true"}
    assert notes(there, "feed-b") == {"kept": "yes"}
    assert "already" in there.run("pause", "feed-a").out
    assert "feed-a: paused, so nothing is raised" in there.run("budget").out
    outcome = there.run("resume", "--all", "-o", "json")
    assert outcome.document == {"budgets": ["feed-a", "feed-b"], "paused": False, "takesEffect": True}
    assert notes(there, "feed-a") == {"kept": "yes"}


def test_of_several_budgets_one_has_to_be_named(there: Installation) -> None:
    outcome = there.run("pause")
    assert outcome.code == 2
    assert "say which budget to pause, or pass --all; there are feed-a, feed-b" in outcome.complaint
    assert "did you mean feed-" in there.run("pause", "feed-c").complaint
    assert there.run("pause", "--all").code == 0
    assert notes(there, "feed-b")[PAUSED] == "true"


def test_only_a_node_that_is_gone_can_be_forgotten_and_only_on_purpose(there: Installation) -> None:
    there_still = there.names[0]
    outcome = there.run("budget", "forget", there_still, "--yes")
    assert outcome.code == 2
    assert "is in the cluster and counts for as long as it is" in outcome.complaint
    assert "pass --yes if node-99 is switched off" in there.run("budget", "forget", "node-99").complaint
    outcome = there.run("budget", "forget", "node-99", "--yes")
    assert outcome.code == 0, outcome
    assert notes(there, "feed-a")[FORGET] == notes(there, "feed-b")[FORGET] == "node-99"
    there.run("budget", "forget", "node-98", "--yes")
    assert notes(there, "feed-a")[FORGET] == "node-98,node-99"


def test_a_node_that_came_back_is_no_longer_among_the_forgotten(there: Installation) -> None:
    back = there.names[0]
    patch = {"metadata": {"annotations": {FORGET: f"{back},node-99"}}}
    there.plane.api.patch(f"{BUDGETS}/feed-a", patch)
    assert there.run("budget", "forget", "node-98", "--yes").code == 0
    assert notes(there, "feed-a")[FORGET] == "node-98,node-99"

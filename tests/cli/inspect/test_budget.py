"""`joulie budget` from files: the tree that the operator would make of them, and answers to what-if questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cli_runner import DEMO, NOW, Outcome, joulie

WINDOW = {"from": "17:00", "to": "21:00", "timeZone": "Europe/Berlin", "watts": 26000}
RACKS: dict[str, Any] = {"watts": 17000, "groupBy": "joulie.io/rack", "groups": [{"value": "a", "watts": 3000}]}
FEED: dict[str, Any] = {"watts": 38000}


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    return written(tmp_path, racks=RACKS, feed=FEED)


def written(folder: Path, **specs: dict[str, Any]) -> tuple[str, ...]:
    """Options that read the example cluster under these budgets."""
    bodies = [
        {"apiVersion": "joulie.io/v1alpha1", "kind": "PowerBudget", "metadata": {"name": name}, "spec": spec}
        for name, spec in specs.items()
    ]
    path = folder / "budgets.yaml"
    path.write_text(yaml.safe_dump_all(bodies))
    return ("-f", DEMO, "-f", str(path), *NOW)


def tree(*options: str) -> Any:
    outcome = joulie("budget", *options, "-o", "json")
    assert outcome.code == 0, outcome
    return outcome.document


def groups(document: Any) -> dict[str, Any]:
    return {group["name"]: group for budget in document["budgets"] for group in budget["groups"]}


def ask(question: str, files: tuple[str, ...]) -> Any:
    return joulie("budget", *files, "--what-if", question, "-o", "json").document


def test_every_group_is_within_its_limit_and_above_its_floor(files: tuple[str, ...]) -> None:
    document = tree(*files)
    assert document["isComputed"]
    found = groups(document)
    assert list(found) == ["feed", "racks/a", "racks/b", "racks/c"]
    for group in found.values():
        assert group["floorW"] <= group["allocatedW"] <= group["limitW"]
        assert group["state"] == "within"
    assert [group["limitW"] for group in found.values()] == [38000, 3000, 17000, 17000]


def test_the_caps_of_a_racks_nodes_with_what_no_cap_limits_are_what_is_allocated(files: tuple[str, ...]) -> None:
    document = tree(*files, "--group", "racks/a")
    nodes = document["nodes"]
    (group,) = groups(document).values()
    rest_w = 0.15 * sum(node["maxW"] for node in nodes)  # nodes without GPUs
    assert sum(node["capW"] for node in nodes) + rest_w == pytest.approx(group["allocatedW"], abs=0.2)
    assert all(node["isConfirmed"] for node in nodes)
    assert {name for node in nodes for name in node["groups"]} == {"feed", "racks/a"}


def test_people_see_the_tree_with_its_nodes_and_why(files: tuple[str, ...]) -> None:
    out = joulie("budget", *files, "--nodes").out
    lines = [line.split() for line in out.splitlines()]
    assert next(line for line in lines if line[:2] == ["├", "a"])[:5] == ["├", "a", "5", "3,000", "W"]
    assert "racks/a is shared out (3,000 W)" in out
    assert out.splitlines()[-1].startswith("worked out from files for 12 nodes")
    assert "cpu-a1" not in joulie("budget", *files).out


def test_a_window_to_come_is_announced(tmp_path: Path) -> None:
    files = written(tmp_path, feed=FEED | {"windows": [WINDOW]})
    out = joulie("budget", *files).out
    assert "feed: windows daily 17:00–21:00 Europe/Berlin: 26,000 W" in out
    assert "feed: its limit next changes at " in out


def test_a_limit_below_the_floors_is_infeasible_and_says_how_much_is_missing(tmp_path: Path) -> None:
    files = written(tmp_path, feed={"watts": 6000})
    (group,) = groups(tree(*files)).values()
    assert group["state"] == "infeasible"
    missing_w = group["floorW"] - group["limitW"]
    assert f"{missing_w:,.0f} W are missing for the floors" in group["reason"]


def test_a_lower_limit_cuts_the_nodes_of_its_group_and_no_others(files: tuple[str, ...]) -> None:
    found = ask("racks/a:watts=2500", files)
    cut = [node["node"] for node in found["nodes"] if node["afterW"] < node["beforeW"]]
    assert cut
    assert all(name.startswith("cpu-a") for name in cut)
    assert found["cutW"] == sum(node["beforeW"] - node["afterW"] for node in found["nodes"])
    assert [change["group"] for change in found["groups"]] == ["feed", "racks/a"]
    before, after = (found["groups"][1][side]["limitW"] for side in ("before", "after"))
    assert (before, after) == (3000, 2500)


def test_percent_are_taken_of_the_present_limit(files: tuple[str, ...]) -> None:
    changes = {change["group"]: change["after"]["limitW"] for change in ask("feed:watts=80%", files)["groups"]}
    assert changes["feed"] == 30400
    assert ask("feed:watts=100%", files)["nodes"] == []


def test_people_see_who_pays_and_whether_it_costs_speed(files: tuple[str, ...]) -> None:
    out = joulie("budget", *files, "--what-if", "racks/a:watts=2500").out
    assert "yes, it draws" in out
    assert "nothing was written" in out.splitlines()[-1]
    assert joulie("budget", *files, "--what-if", "feed:watts=100%").out.strip() == "nothing would change"


def test_without_any_budget_the_question_is_about_one_over_all_nodes() -> None:
    found = ask("watts=37000", ("-f", DEMO, *NOW))
    (change,) = found["groups"]
    assert (change["group"], change["before"]) == ("what-if", None)
    assert change["after"]["nodes"] == 12
    assert found["nodes"]
    assert "there is no PowerBudget" in joulie("budget", "-f", DEMO, *NOW).out


@pytest.mark.parametrize(
    ("question", "complaint"),
    [
        ("watts=8000", "say which budget, as in NAME:watts=8000; there are feed, racks"),
        ("fead:watts=8000", "there is no PowerBudget 'fead'; did you mean feed?"),
        ("feed/x:watts=8000", "that budget has no groups"),
        ("feed:watts=0", "a limit is above 0 W"),
        ("feed:watts=nan", "write watts=8000"),
        ("feed:8000", "write watts=8000"),
        ("feed:watts=-3", "write watts=8000"),
    ],
)
def test_a_question_that_cannot_be_answered_says_how_to_ask(
    files: tuple[str, ...], question: str, complaint: str
) -> None:
    outcome = joulie("budget", *files, "--what-if", question)
    assert outcome.code == 2
    assert complaint in outcome.complaint


def test_an_unknown_group_is_answered_with_those_that_are_near(files: tuple[str, ...]) -> None:
    outcome: Outcome = joulie("budget", *files, "--group", "racks/d")
    assert outcome.code == 2
    assert "there is no budget or group 'racks/d'; did you mean racks/" in outcome.complaint


def test_plan_explain_and_budget_agree_about_a_node(files: tuple[str, ...]) -> None:
    node = next(node for node in tree(*files)["nodes"] if node["node"] == "cpu-a1")
    told = joulie("explain", "node", "cpu-a1", *files, "-o", "json").document
    assert told["budget"]["watts"] == node["capW"]
    assert told["budget"]["groups"] == node["groups"]
    assert any("racks/a is shared out" in sentence for sentence in told["now"])
    assert any("counts in feed, racks/a" in sentence for sentence in told["now"])
    last = joulie("plan", *files).out.splitlines()[-1]
    assert last == "12 nodes held lower than that by power budgets (2 budgets, 4 groups): joulie budget --nodes"
    assert joulie("explain", "node", "cpu-a1", "-f", DEMO, *NOW, "-o", "json").document["budget"] is None


def test_an_unreadable_budget_is_named_and_left_out(tmp_path: Path) -> None:
    files = written(tmp_path, racks=RACKS, feed={"watts": -5})
    outcome = joulie("budget", *files, "-o", "json")
    assert "PowerBudget/feed: spec.watts" in outcome.err
    assert [budget["name"] for budget in outcome.document["budgets"]] == ["racks"]

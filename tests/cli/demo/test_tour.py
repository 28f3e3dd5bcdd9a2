"""`joulie tour`: the tour, and the example that it ships."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from joulie import demo
from joulie.cli.demo.tour import TRY_NEXT
from tests.support.cli_runner import DEMO, NOW, joulie


def test_the_tour_shows_plan_power_and_a_pods_place() -> None:
    outcome = joulie("tour", env={"COLUMNS": "100"})
    assert (outcome.code, outcome.err) == (0, "")
    assert "Which nodes to cap, and why" in outcome.out
    assert "caps allow: 37.9 kW now → 34.2 kW planned, of 40.5 kW uncapped" in outcome.out
    assert "ml/finetune-0 · performance, 16 cores, 2 GPUs · would go to gpu-c1" in outcome.out
    assert "\x1b" not in outcome.out


@pytest.mark.parametrize("columns", ["100", "120", "160"])
def test_the_tour_fits_the_terminal(columns: str) -> None:
    outcome = joulie("tour", env={"COLUMNS": columns})
    assert [line for line in outcome.out.splitlines() if len(line) > int(columns)] == []


def test_the_tour_ends_with_commands_that_exist() -> None:
    lines = joulie("tour").out.splitlines()[-3:]
    for line, (command, _) in zip(lines, TRY_NEXT, strict=True):
        assert command in line
    pipe = TRY_NEXT[0][0].split(" | ")
    printed = joulie(*pipe[0].split()[1:])
    assert joulie(*pipe[1].split()[1:], stdin=printed.out).code == 0
    assert joulie("tour", env={"STATIC_HP_FRAC": "0.25"}).out != joulie("tour").out


def test_the_tour_does_not_depend_on_the_clock() -> None:
    assert joulie("tour") == joulie("tour")


def test_the_example_can_be_printed_and_found() -> None:
    assert joulie("tour", "--print").out == Path(DEMO).read_text()
    assert joulie("tour", "--files").out == f"{DEMO}\n"
    assert joulie("plan", "-f", "-", *NOW, stdin=joulie("tour", "--print").out) == joulie("plan", "-f", DEMO, *NOW)


def test_the_example_has_what_there_is_to_see() -> None:
    objects = list(yaml.safe_load_all(demo.example_yaml()))
    kinds = Counter(item["kind"] for item in objects)
    assert kinds["Node"] == 13
    assert min(kinds[kind] for kind in ("NodeHardware", "NodeTwin", "NodePowerProfile", "Pod")) >= 1
    document = joulie("plan", "-f", DEMO, *NOW, "-o", "json").document
    families = {item["family"] for item in document["nodes"]}
    assert families == {"EPYC 9965", "EPYC 9654", "Xeon Gold 6530", "H100 SXM", "L40S", "MI300X"}
    assert {item["state"] for item in document["nodes"]} == {"performance", "eco", "draining"}
    assert {"cpu-a5", "db-c5"}.isdisjoint(item["node"] for item in document["nodes"])
    fresh = joulie("score", "-f", DEMO, "--pod", demo.PENDING_POD, *NOW, "-o", "json").document
    assert sum(item["breakdown"] is not None for item in fresh["nodes"]) == kinds["NodeTwin"]

"""`joulie explain node` says what a node is in the words of people who run clusters, for every state there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_runner import PERFORMANCE, joulie, node, pod, write

NOW, JUST_NOW = "2026-11-01T12:00:00Z", "2026-11-01T11:59:30Z"
LONG_AGO = "2026-11-01T11:40:00Z"
Object = dict[str, Any]


def applied(at: str = JUST_NOW, **more: str) -> Object:
    return {"backend": "rapl", "result": "applied", "updatedAt": at, **more}


def twin(state: str, profile: str, cap_pct: float, at: str | None = JUST_NOW, **more: Any) -> Object:
    status: Object = {"schedulableClass": state, "controlStatus": {"cpu": more.pop("cpu", applied())}}
    if at is not None:
        status["lastUpdated"] = at
    spec = {
        "nodeName": "n",
        "profile": profile,
        "cpu": {"packagePowerCapPctOfMax": cap_pct},
        "policy": {"name": more.pop("by", "static_partition")},
        "scheduling": {"draining": state == "draining"},
    }
    metadata = {"name": "n"}
    return {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodeTwin",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def pin(profile: str, **more: str) -> Object:
    spec = {"nodeName": "n", "profile": profile, **more}
    return {"apiVersion": "joulie.io/v1alpha1", "kind": "NodePowerProfile", "metadata": {"name": "p"}, "spec": spec}


FULL, CAPPED = twin("performance", "performance", 100), twin("eco", "eco", 60)
DRAINING = twin("draining", "eco", 100)
CORDONED = node("n") | {"spec": {"unschedulable": True}}
NO_TWIN = "no twin yet: the operator has not decided about it; its score is neutral"
AS_ASKED = "its agent reports that the caps are applied (via rapl)"
STALE = "no operator refreshes it; its score is neutral, and the agent releases its caps"

STATES: dict[str, tuple[list[Object], list[str]]] = {
    "performance": ([node("n"), FULL], ["runs at full power (chosen by static_partition)", AS_ASKED]),
    "eco": (
        [node("n"), CAPPED],
        ["is capped to CPU 60 % (chosen by static_partition); performance-only pods stay away", AS_ASKED],
    ),
    "draining": (
        [node("n"), DRAINING, pod("a", on="n", **PERFORMANCE), pod("b", on="n", **PERFORMANCE), pod("c", on="n")],
        [
            "will become eco (chosen by static_partition), but keeps full power until its performance-only pods have",
            "(2 performance-only pods still here: team/a, team/b)",
            "no new performance-only pods are placed here; nothing is evicted",
        ],
    ),
    "the last pod has left": ([node("n"), DRAINING], ["(the last one has left)"]),
    "no twin": ([node("n")], [NO_TWIN]),
    "a twin that says nothing": (
        [node("n"), {**CAPPED, "spec": {"nodeName": "n"}, "status": {"lastUpdated": JUST_NOW}}],
        ["its twin has no state yet: the operator has not decided about it"],
    ),
    "cordoned": (
        [CORDONED, CAPPED],
        ["cordoned: twin, label and caps stay unchanged until it is uncordoned", "is capped to CPU 60 %"],
    ),
    "reserved": (
        [node("n", reserved="true")],
        ["reserved: Joulie leaves it alone (to release it: kubectl label node n joulie.io/reserved-)"],
    ),
    "out of scope": (
        [node("n", managed=False)],
        ["out of scope: Joulie does not touch it (the selector 'joulie.io/managed=true' does not match it)"],
    ),
    "out of scope with a twin": (
        [node("n", managed=False), CAPPED],
        ["its twin is left over and will be removed with the operator's next decision"],
    ),
    "pinned": (
        [node("n"), twin("eco", "eco", 60, by="pinned"), pin("eco", expiresAt="2026-11-01T15:00:00Z")],
        [
            "is capped to CPU 60 %; performance-only pods stay away",
            "is pinned to eco by NodePowerProfile/p until 2026-11-01T15:00:00Z, for 3 h (to end it: joulie unpin n)",
        ],
    ),
    "pinned a moment ago": (
        [node("n"), FULL, pin("eco")],
        ["by NodePowerProfile/p until it is removed; it takes effect with the operator's next decision (to end it:"],
    ),
    "stale": (
        [node("n"), twin("eco", "eco", 60, at=LONG_AGO)],
        [f"its twin is stale, 20 min old: {STALE}"],
    ),
    "without a time": ([node("n"), twin("eco", "eco", 60, at=None)], ["its twin has no valid timestamp"]),
    "blocked": (
        [node("n"), twin("eco", "eco", 60, cpu=applied(result="blocked", message="locked by the BIOS"))],
        ["the CPU cap of 60 % is not enforced: blocked, locked by the BIOS; it counts as 100 %"],
    ),
    "silent agent": (
        [node("n"), twin("eco", "eco", 60, cpu=applied(LONG_AGO))],
        ["its agent has been silent for 20 min: whether its caps are still enforced is unknown"],
    ),
    "no agent": (
        [node("n"), twin("eco", "eco", 60, cpu={})],
        ["no agent has reported yet: whether its caps are enforced is unknown"],
    ),
}


@pytest.mark.parametrize("name", STATES)
def test_every_state_has_its_words(name: str, tmp_path: Path) -> None:
    objects, said = STATES[name]
    file = write(tmp_path, *objects)
    outcome = joulie("explain", "node", "n", "-f", file, "--now", NOW)
    assert outcome.code == 0, outcome.err
    for sentence in said:
        assert sentence in outcome.out
    document = joulie("explain", "node", "n", "-f", file, "--now", NOW, "-o", "json").document
    assert all(any(sentence in line for line in document["now"]) for sentence in said)


def test_an_eco_node_that_is_fine_has_no_worrying_word(tmp_path: Path) -> None:
    outcome = joulie("explain", "node", "n", "-f", write(tmp_path, node("n"), CAPPED), "--now", NOW)
    assert not any(word in outcome.out for word in ("stale", "silent", "not enforced", "no twin", "cordoned:"))


def test_a_reason_that_tries_to_move_the_cursor_is_shown_as_text(tmp_path: Path) -> None:
    evil = twin("eco", "eco", 60, cpu=applied(result="blocked", message="a\x1b[2Jb\nc"))
    outcome = joulie("explain", "node", "n", "-f", write(tmp_path, node("n"), evil), "--now", NOW)
    assert "\x1b" not in outcome.out
    assert "blocked, a�[2Jb c; it counts" in outcome.out

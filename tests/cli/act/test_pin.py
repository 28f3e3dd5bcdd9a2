"""`joulie pin` and `unpin` on a live cluster: the twin shows it, the machine is capped, and nothing is left behind."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.agent.chain import JOULIE
from tests.cli.doctor.faults import CRDS, exists, wait_for
from tests.cli.installation import LEASE, Installation, Object, micro, training

PINS, NODE, OTHER = f"{JOULIE}/nodepowerprofiles", "node-00001", "node-00003"


@pytest.fixture(autouse=True)
def no_pin_is_left(there: Installation) -> Iterator[None]:
    yield
    there.plane.api.delete(PINS)


def pins(there: Installation) -> dict[str, Any]:
    return {item["metadata"]["name"]: item for item in there.plane.api.get(PINS)["items"]}


def pinned(name: str, node: str, profile: str) -> Object:
    return {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodePowerProfile",
        "metadata": {"name": name, "labels": {"kept": "yes"}},
        "spec": {"nodeName": node, "profile": profile},
    }


def test_a_pin_reaches_twin_label_and_machine_and_ends_with_unpin(there: Installation) -> None:
    outcome = there.run("pin", NODE, "eco", "--for", "2h", "--reason", "noisy fan", "--wait")
    assert outcome.code == 0, outcome
    first, second, third = outcome.out.splitlines()
    assert first.startswith(f"{NODE} is pinned to eco until 20")
    assert second.endswith(": eco (now performance), CPU cap 60 %")
    assert third == f"the twin of {NODE} shows it"
    twin = there.twin(NODE)
    assert (twin["spec"]["profile"], twin["spec"]["policy"]["name"]) == ("eco", "pinned")
    there.wait_until(lambda: there.chain.cpu_caps_w()[NODE] is not None, "the machine is capped")

    words = there.run("explain", "node", NODE).out
    assert f"is pinned to eco by NodePowerProfile/{NODE} until 20" in words
    assert "because: noisy fan (to end it: joulie unpin node-00001)" in words
    assert f"{NODE} (pinned)" in there.run("top", "--once").out

    outcome = there.run("unpin", NODE)
    assert outcome.out.splitlines()[-1] == "the policy takes over again with the operator's next decision"
    assert pins(there) == {}
    there.wait_until(lambda: there.twin(NODE)["spec"]["profile"] == "performance", "the policy decides again")


def test_pinning_again_replaces_what_was_pinned(there: Installation) -> None:
    there.run("pin", NODE, "eco", "--cpu-pct", "70", "--reason", "old")
    outcome = there.run("pin", NODE, "performance", "-o", "json")
    assert outcome.document == {
        "pin": NODE,
        "node": NODE,
        "profile": "performance",
        "expiresAt": None,
        "replaced": "eco",
        "state": "performance",
        "shown": None,
        "led": True,
        "takesEffect": True,
    }
    assert "; before: eco, CPU 70 %" in outcome.err
    (only,) = pins(there).values()
    assert only["spec"] == {"nodeName": NODE, "profile": "performance"}
    assert not only["metadata"].get("annotations")


def test_the_pin_of_another_user_is_replaced_in_place_because_the_oldest_wins(there: Installation) -> None:
    there.plane.apply([pinned("maintenance", NODE, "performance")])
    outcome = there.run("pin", NODE, "eco", "--cpu-watts", "250", "--wait")
    assert outcome.code == 0, outcome
    assert "(NodePowerProfile/maintenance); before: performance" in outcome.out
    (only,) = pins(there).values()
    assert only["spec"] == {"nodeName": NODE, "profile": "eco", "cpu": {"packagePowerCapWatts": 250}}
    assert only["metadata"]["labels"] == {"kept": "yes"}
    assert there.twin(NODE)["spec"]["cpu"] == {"packagePowerCapWatts": 250}


def test_of_several_pins_unpin_removes_the_one_in_force_or_all(there: Installation) -> None:
    there.plane.apply([pinned("a", NODE, "eco"), pinned("b", NODE, "performance"), pinned("c", OTHER, "eco")])
    outcome = there.run("unpin", NODE)
    assert "NodePowerProfile/a (eco) removed" in outcome.out
    assert "now NodePowerProfile/b (performance) is in force; to remove all:" in outcome.out
    there.plane.apply([pinned("a", NODE, "eco")])
    removed = there.run("unpin", NODE, "--all", "-o", "json").document
    assert (sorted(removed["removed"]), removed["left"]) == (["a", "b"], [])
    assert set(pins(there)) == {"c"}


def test_a_node_that_is_not_pinned_can_be_unpinned(there: Installation) -> None:
    outcome = there.run("unpin", NODE)
    assert (outcome.code, outcome.out) == (0, f"{NODE} is not pinned: nothing to do\n")


def test_a_pin_waits_for_performance_pods_and_says_so(there: Installation) -> None:
    with there.added(training(OTHER)):
        outcome = there.run("pin", OTHER, "eco", "--wait")
        assert outcome.code == 0, outcome
        assert "1 performance-only pod still here, so it drains at performance caps" in outcome.out
        assert there.twin(OTHER)["status"]["schedulableClass"] == "draining"
        words = there.run("explain", "node", OTHER).out
        assert "keeps full power until its performance-only pods have left" in words
        assert "1 performance-only pod still here: default/training" in words
        assert there.run("status", "-o", "json").document["states"]["draining"] == 1


def test_a_pin_without_effect_is_written_and_told(there: Installation) -> None:
    free = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "free"}}
    kept = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "kept", "labels": {"joulie.io/managed": "true", "joulie.io/reserved": "true"}},
    }
    with there.added(free, kept):
        assert "no effect while the node is out of scope" in there.run("pin", "free", "eco").out
        assert "no effect while the node is reserved" in there.run("pin", "kept", "eco").out
        assert there.run("pin", "kept", "eco").code == 0
        assert "out of scope: Joulie does not touch it" in there.run("explain", "node", "free").out
        assert "reserved: Joulie leaves it alone" in there.run("explain", "node", "kept").out


def test_a_node_that_does_not_exist_is_not_pinned(there: Installation) -> None:
    outcome = there.run("pin", "node-1", "eco")
    assert outcome.code == 2
    assert outcome.complaint.startswith("node 'node-1' is not in the cluster; did you mean node-0000")
    assert pins(there) == {}


def test_a_pin_that_no_operator_takes_up_ends_with_exit_code_1(there: Installation) -> None:
    there.freeze()
    try:
        outcome = there.run("pin", NODE, "eco", "--wait", "--timeout", "1s")
    finally:
        there.thaw()
    assert outcome.code == 1
    assert outcome.out.splitlines()[-1] == (
        f"after 1 s the twin of {NODE} does not show it; check with joulie doctor whether an operator runs"
    )


@pytest.fixture
def without_leader(there: Installation) -> Iterator[Installation]:
    """The operator is gone, and its lease is as old as that."""
    there.freeze()
    try:
        with there.changed(LEASE, {"spec": {"renewTime": micro(time.time() - 600)}}):
            yield there
    finally:
        there.thaw()


def test_no_time_is_promised_when_no_operator_leads(without_leader: Installation) -> None:
    outcome = without_leader.run("pin", NODE, "eco")
    assert outcome.code == 1
    assert outcome.out.splitlines()[-1] == ("it has no effect until an operator leads: joulie doctor")
    assert set(pins(without_leader)) == {NODE}, "it is stored all the same"
    document = without_leader.run("pin", NODE, "eco", "-o", "json").document
    assert (document["led"], document["takesEffect"]) == (False, False)
    unpinned = without_leader.run("unpin", NODE)
    assert unpinned.out.splitlines()[-1].startswith("there is no leading operator, so the node keeps its state")


def test_without_operator_and_twin_the_agent_takes_the_pin_itself(without_leader: Installation) -> None:
    with without_leader.removed(f"{JOULIE}/nodetwins/{NODE}"):
        outcome = without_leader.run("pin", NODE, "eco")
    assert outcome.code == 0
    assert "the node's agent, if any, enforces the pin itself" in outcome.out


@contextmanager
def without_definition(there: Installation, plural: str) -> Iterator[None]:
    path = f"{CRDS}/{plural}.joulie.io"
    there.plane.api.delete(path)
    try:
        wait_for(lambda: not exists(there, path))
        yield
    finally:
        there.plane.install_crds()


def test_no_time_is_promised_when_no_operator_can_decide_because_a_definition_is_gone(there: Installation) -> None:
    with without_definition(there, "nodetwins"):
        outcome = there.run("pin", NODE, "eco")
        document = there.run("pin", NODE, "eco", "-o", "json").document
    assert outcome.code == 1
    assert outcome.out.splitlines()[-1] == (
        "it has no effect: the cluster does not serve NodeTwin: joulie crds | kubectl apply -f -"
    )
    assert document["takesEffect"] is False


def test_without_their_definition_pins_cannot_be_written_and_the_next_step_is_told(there: Installation) -> None:
    with without_definition(there, "nodepowerprofiles"):
        outcome = there.run("pin", NODE, "eco")
    assert outcome.code == 2
    assert "the cluster does not serve NodePowerProfile: joulie crds | kubectl apply -f -" in outcome.err


def test_a_cap_that_the_hardware_does_not_take_is_told_with_what_it_takes(there: Installation) -> None:
    outcome = there.run("pin", NODE, "eco", "--cpu-watts", "1")
    assert outcome.code == 0
    assert outcome.out.splitlines()[-1].startswith("limited by the hardware: CPU ")
    assert outcome.out.splitlines()[-1].endswith(" W instead of 1 W")
    assert "limited by" not in there.run("pin", NODE, "eco", "--cpu-pct", "70").out


def test_watts_and_percent_of_one_device_are_not_taken_together(there: Installation) -> None:
    outcome = there.run("pin", NODE, "eco", "--gpu-watts", "300", "--gpu-pct", "50")
    assert (outcome.code, pins(there)) == (2, {})
    assert outcome.complaint.startswith("--gpu-watts and --gpu-pct exclude each other: pass only one")


def test_unpin_of_a_name_that_no_node_has_asks_whether_another_was_meant(there: Installation) -> None:
    outcome = there.run("unpin", "nod-00001")
    assert outcome.code == 0
    assert "node 'nod-00001' is not in the cluster; did you mean node-00001" in outcome.err
    assert there.run("unpin", NODE).err == ""

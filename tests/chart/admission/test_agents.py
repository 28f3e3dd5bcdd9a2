"""What the admission policies leave of an agent's rights: it speaks for its own node, and decides nothing.

Most accounts here are cluster administrators besides, so that it is the policy which refuses, whatever the verb; what a
role refuses already is tried with the chart's roles alone. Every request is a dry run: the scene stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.chart.admission.accounts import (
    APPLIED,
    APPLY,
    CONTROL,
    EVENTS,
    JOULIE,
    MERGE,
    NOT_OF_A_POD,
    OPERATORS,
    Try,
    event,
    kind,
    report,
    trying,
)
from tests.chart.charts import Manifest
from tests.support.rights import NAMESPACE

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

OTHERS = "an agent writes about its own node alone, which is mine"


@pytest.fixture(scope="module")
def agent(scene: ControlPlane) -> Try:
    """Requests with the token of the agent's pod on the node `mine`."""
    return trying(scene, scene.pod_token(NAMESPACE, "joulie-agent", "mine"))


@pytest.mark.parametrize(
    ("method", "path", "body", "content"),
    [
        (*report(controlStatus=APPLIED), MERGE),
        (
            "PATCH",
            f"{JOULIE}/nodetwins/mine/status",
            kind("NodeTwin", "mine", status={"controlStatus": APPLIED}),
            APPLY,
        ),
        ("PATCH", f"{JOULIE}/nodehardwares/mine/status", {"status": {"cpu": {"sockets": 2}}}, MERGE),
        ("PATCH", f"{JOULIE}/telemetryprofiles/to-mine/status", CONTROL, MERGE),
        ("PATCH", f"{JOULIE}/nodepowerprofiles/pin-mine/status", CONTROL, MERGE),
        ("POST", EVENTS, event("mine"), ""),
    ],
    ids=["twin", "twin by apply", "hardware", "profile", "pin", "event"],
)
def test_an_agent_reports_on_its_own_node(agent: Try, method: str, path: str, body: Manifest, content: str) -> None:
    assert agent(method, path, body, content) == ""


@pytest.mark.parametrize(
    ("method", "path", "body", "said"),
    [
        ("PATCH", f"{JOULIE}/nodetwins/other/status", {"status": {"controlStatus": APPLIED}}, OTHERS),
        ("PATCH", f"{JOULIE}/nodehardwares/other/status", {"status": {"cpu": {"sockets": 2}}}, OTHERS),
        ("POST", f"{JOULIE}/nodehardwares", kind("NodeHardware", "third"), OTHERS),
        ("POST", f"{JOULIE}/nodehardwares", {**kind("NodeHardware", ""), "metadata": {"generateName": "mine"}}, OTHERS),
        ("PATCH", f"{JOULIE}/telemetryprofiles/to-other/status", CONTROL, OTHERS),
        ("PATCH", f"{JOULIE}/telemetryprofiles/to-all/status", CONTROL, OTHERS),
        ("PATCH", f"{JOULIE}/nodepowerprofiles/pin-other/status", CONTROL, OTHERS),
        ("POST", EVENTS, event("other"), OTHERS),
        ("POST", EVENTS, event("mine", involvedObject={"kind": "Pod", "name": "mine"}), OTHERS),
    ],
    ids=[
        "twin",
        "hardware",
        "new hardware",
        "generated name",
        "profile",
        "profile of all",
        "pin",
        "event",
        "event of a pod",
    ],
)
def test_an_agent_writes_about_no_other_node(agent: Try, method: str, path: str, body: Manifest, said: str) -> None:
    assert said in agent(method, path, body)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"reportingComponent": "kubelet"}, "say that an agent reports them"),
        ({"source": {"component": "kubelet"}}, "say that an agent reports them"),
        ({"source": {"component": "joulie-agent", "host": "other"}}, "say that an agent reports them"),
        ({"related": {"kind": "Node", "name": "other"}}, "say that an agent reports them"),
        ({"involvedObject": {"kind": "Node", "name": "mine", "uid": "other"}}, "say that an agent reports them"),
    ],
    ids=["component", "source", "host", "related", "uid"],
)
def test_an_agents_events_are_its_own(agent: Try, parts: Manifest, said: str) -> None:
    assert said in agent("POST", EVENTS, event("mine", **parts))


def test_the_newer_api_of_events_is_no_way_around(agent: Try) -> None:
    metadata = {"name": "e", "namespace": "default"}
    said = {"type": "Normal", "reason": "R", "action": "A", "eventTime": "2026-01-01T00:00:00.000000Z"}
    body = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": metadata, **said}
    body |= {"reportingController": "joulie.io/agent", "reportingInstance": "x"}
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    assert OTHERS in agent("POST", path, {**body, "regarding": {"kind": "Node", "name": "other"}})
    assert agent("POST", path, {**body, "regarding": {"kind": "Node", "name": "mine"}}) == ""


@pytest.mark.parametrize("method", ["PATCH", "apply", "PUT"])
@pytest.mark.parametrize(
    "change",
    [
        {"schedulableClass": "performance"},
        {"lastUpdated": "2036-01-01T00:00:00Z"},
        {"lastUpdated": None},
        {"predictedPowerHeadroomScore": 100},
        {"estimatedPUE": 1},
        {"schedulableClass": "performance", "controlStatus": APPLIED},
    ],
    ids=str,
)
def test_the_operators_fields_of_an_agents_own_twin_are_the_operators(
    scene: ControlPlane, agent: Try, method: str, change: Manifest
) -> None:
    path = f"{JOULIE}/nodetwins/mine/status"
    there = scene.api.get(f"{JOULIE}/nodetwins/mine")
    left = {key: value for key, value in {**there["status"], **change}.items() if value is not None}
    if method == "PUT":
        assert OPERATORS in agent("PUT", path, {**there, "status": left})
    elif method == "PATCH":
        assert OPERATORS in agent("PATCH", path, {"status": change})
    elif None not in change.values():  # to remove by apply takes ownership, which the operator has
        assert OPERATORS in agent("PATCH", path, kind("NodeTwin", "mine", status=change), APPLY)


def test_nor_does_an_agent_touch_the_spec_or_the_metadata_of_its_twin(scene: ControlPlane, agent: Try) -> None:
    writes_no_spec = "an agent writes no spec"
    release = {"order": 4, "released": True}  # which the policy of twins allows
    assert writes_no_spec in agent("PATCH", f"{JOULIE}/nodetwins/mine", {"spec": {"budget": release}})
    assert agent("PATCH", f"{JOULIE}/nodetwins/mine", {"spec": {"profile": "performance"}}) != ""
    assert writes_no_spec in agent("PATCH", f"{JOULIE}/nodetwins/mine", {"metadata": {"finalizers": ["joulie.io/x"]}})
    assert writes_no_spec in agent(
        "PATCH", f"{JOULIE}/nodehardwares/mine", {"metadata": {"finalizers": ["joulie.io/x"]}}
    )
    assert writes_no_spec in agent("PATCH", f"{JOULIE}/telemetryprofiles/to-mine", {"spec": {"sources": {}}})
    # By the status the API server ignores them.
    token = scene.pod_token(NAMESPACE, "joulie-agent", "mine")
    sneaked = {"metadata": {"labels": {"a": "b"}, "finalizers": ["joulie.io/x"], "ownerReferences": []}}
    answer = scene.api_as(token).patch(f"{JOULIE}/nodetwins/mine/status?dryRun=All", {**sneaked, "status": {}})
    assert not answer["metadata"].keys() & sneaked["metadata"].keys()


def condition(kind: str, status: str = "True", reason: str = "Said") -> Manifest:
    when = "2026-01-01T00:00:00Z"
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": when}


def test_of_conditions_an_agent_writes_its_own(scene: ControlPlane, agent: Try) -> None:
    """Other writers of the same list: another type is neither added, changed nor removed by an agent."""
    path = f"{JOULIE}/nodetwins/mine"
    others = [condition("Ready"), condition("Decided")]
    scene.api.patch(f"{path}/status", {"status": {"conditions": others}})
    try:
        for given in ([*others, condition("Enforced")], [condition("Enforced"), *others], others[::-1]):
            assert agent("PATCH", f"{path}/status", {"status": {"conditions": given}}) == ""
        applied = kind("NodeTwin", "mine", status={"conditions": [condition("Enforced", "False")]})
        assert agent("PATCH", f"{path}/status", applied, APPLY) == ""
        for given in (
            [*others, condition("Invented")],
            [condition("Ready", "False"), others[1]],
            [condition("Ready", reason="Else"), others[1], condition("Enforced")],
            others[:1],
            [condition("Enforced")],
            [],
        ):
            assert "of these conditions an agent writes Enforced alone" in agent(
                "PATCH", f"{path}/status", {"status": {"conditions": given}}
            )
        applied = kind("NodeTwin", "mine", status={"conditions": [condition("Ready", "False")]})
        assert "of these conditions" in agent("PATCH", f"{path}/status", applied, APPLY)
    finally:
        scene.api.patch(f"{path}/status", {"status": {"conditions": None}})


@pytest.mark.parametrize(
    "metadata",
    [
        {"finalizers": ["joulie.io/x"]},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "other", "uid": "u"}]},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "mine", "uid": "u"}]},
    ],
    ids=["finalizer", "owned by another node", "owned by another kind"],
)
def test_nothing_holds_up_the_end_of_a_hardware_report(scene: ControlPlane, metadata: Manifest) -> None:
    attempt = trying(scene, scene.pod_token(NAMESPACE, "joulie-agent", "third"))
    owners = [{"apiVersion": "v1", "kind": "Node", "name": "third", "uid": "u"}]
    for given, said in (({"ownerReferences": owners}, ""), (metadata, "belongs to its Node")):
        body = {**kind("NodeHardware", "third"), "metadata": {"name": "third", **given}}
        refusal = attempt("POST", f"{JOULIE}/nodehardwares", body)
        assert said in refusal
        assert bool(refusal) == bool(said)


def test_an_agent_reports_whatever_others_wrote_into_the_metadata(scene: ControlPlane, agent: Try) -> None:
    path = f"{JOULIE}/nodehardwares/mine"
    scene.api.patch(path, {"metadata": {"finalizers": ["example.com/held"]}})
    try:
        assert agent("PATCH", f"{path}/status", {"status": {"cpu": {"sockets": 2}}}) == ""
    finally:
        scene.api.patch(path, {"metadata": {"finalizers": None}})


def test_a_token_that_names_no_node_writes_nothing(scene: ControlPlane) -> None:
    attempt = trying(scene, scene.service_account_token(NAMESPACE, "joulie-agent"))
    assert NOT_OF_A_POD in attempt(*report(controlStatus=APPLIED))
    assert NOT_OF_A_POD in attempt("PATCH", f"{JOULIE}/nodehardwares/mine/status", {"status": {}})
    assert NOT_OF_A_POD in attempt("PATCH", f"{JOULIE}/telemetryprofiles/to-mine/status", CONTROL)
    assert NOT_OF_A_POD in attempt("POST", EVENTS, event("mine"))


def test_other_accounts_are_not_concerned(scene: ControlPlane) -> None:
    attempt = trying(scene, scene.admin_token)
    assert attempt("PATCH", "/api/v1/nodes/mine", {"spec": {"unschedulable": True}}) == ""
    assert attempt(*report(schedulableClass="performance")) == ""
    assert attempt("POST", EVENTS, event("other", "operator")) == ""

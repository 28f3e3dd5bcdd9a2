"""Pods of class performance match exactly the nodes that they matched before, less eco nodes that do not drain.

Draining nodes match, because a kubelet that restarts ends pods whose affinity does not. Other pods stay as they are.

Real API server, real validation; which nodes a pod may go to is judged by rules written down apart, for every node that
differs in what the pod could ask about.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extender.scheduler.admission import (
    CLASS,
    DRAINING,
    DRAINS,
    PROFILE,
    REQUIRED,
    RULE,
    Body,
    Place,
    admitted,
    allows,
    pod,
    policy_installed,
)

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

ECO = {"key": PROFILE, "operator": "In", "values": ["eco"]}
ZONE_A = {"key": "zone", "operator": "In", "values": ["a"]}
ON_A = {"key": "metadata.name", "operator": "In", "values": ["a"]}
NOT_ON_A = {"key": "metadata.name", "operator": "NotIn", "values": ["a"]}
POWER: list[dict[str, str]] = [
    {},
    {PROFILE: "performance"},
    {PROFILE: "eco"},
    {PROFILE: "eco", DRAINING: "false"},
    {PROFILE: "eco", DRAINING: "true"},
    {PROFILE: "performance", DRAINING: "false"},
]
ZONES: list[dict[str, str]] = [{}, {"zone": "a"}, {"zone": "b"}, {"zone": "a", "cores": "64"}, {"cores": "8"}]
PLACES = [Place(name, {**power, **zone}) for name, power, zone in itertools.product("ab", POWER, ZONES)]

PREFERRED = [{"weight": 1, "preference": {"matchExpressions": [ZONE_A]}}]
APART = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"}
POD_AFFINITY: Body = {"podAffinity": {REQUIRED: [APART]}}
POD_ANTI_AFFINITY: Body = {"podAntiAffinity": {REQUIRED: [APART]}}


def required(*terms: Any) -> Body:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


SHAPES: dict[str, Body | None] = {
    "none": None,
    "null parts": {"nodeAffinity": None, "podAffinity": None},
    "empty": {},
    "empty node affinity": {"nodeAffinity": {}},
    "required is null": {"nodeAffinity": {REQUIRED: None}},
    "only pod affinity": POD_AFFINITY,
    "only pod anti-affinity": POD_ANTI_AFFINITY,
    "only preferred": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": PREFERRED}},
    "preferred and required": {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": PREFERRED,
            **required({"matchExpressions": [ZONE_A]})["nodeAffinity"],
        }
    },
    "one term": required({"matchExpressions": [ZONE_A]}),
    "many terms": required({"matchExpressions": [ZONE_A]}, {"matchFields": [ON_A]}, {"matchExpressions": [ECO]}),
    "only fields": required({"matchFields": [ON_A]}),
    "only fields, empty expressions": required({"matchFields": [NOT_ON_A], "matchExpressions": []}),
    "fields and expressions": required({"matchFields": [ON_A], "matchExpressions": [ZONE_A]}),
    "an empty term": required({}),
    "a null term": required(None),
    "a term of empty lists": required({"matchExpressions": [], "matchFields": []}),
    "an empty term beside another": required({}, {"matchExpressions": [ZONE_A]}, {}),
    "wants eco": required({"matchExpressions": [ECO]}),
    "wants eco or a zone": required({"matchExpressions": [ECO]}, {"matchExpressions": [ZONE_A]}),
    "has the rule": required({"matchExpressions": [RULE]}),
    "has the rule among others": required({"matchExpressions": [ZONE_A, RULE]}, {"matchExpressions": [RULE]}),
    "has the rule in one of two": required({"matchExpressions": [RULE]}, {"matchExpressions": [ZONE_A]}),
    "has both rules": required({"matchExpressions": [RULE]}, {"matchExpressions": [DRAINS]}),
    "has the rule for draining alone": required({"matchExpressions": [ZONE_A, DRAINS]}),
    "has another rule for draining": required({"matchExpressions": [{**DRAINS, "values": ["true", "false"]}]}),
    "avoids draining nodes": required({"matchExpressions": [{**DRAINS, "operator": "NotIn"}]}),
    "has a wider rule": required({"matchExpressions": [{**RULE, "values": ["old", "eco"]}]}),
    "has a weaker rule": required({"matchExpressions": [{**RULE, "values": ["old"]}]}),
    "everything at once": {
        **required({"matchExpressions": [ZONE_A], "matchFields": [NOT_ON_A]}, {}, {"matchFields": [ON_A]}),
        **POD_AFFINITY,
        **POD_ANTI_AFFINITY,
    },
}


@pytest.fixture(scope="module")
def plain(control_plane: ControlPlane) -> dict[str, Body]:
    """What becomes of standard pods and pods without a class on a server that has no policy."""
    from testbed.cleaning import clear

    control_plane.start_apiserver()
    clear(control_plane)
    return {
        f"{name}, {workload_class}": admitted(control_plane, pod(shape, workload_class=workload_class))
        for name, shape in SHAPES.items()
        for workload_class in (None, "standard", "Performance", "")
    }


@pytest.fixture(scope="module")
def server(control_plane: ControlPlane, plain: dict[str, Body]) -> Iterator[ControlPlane]:
    """The API server with the policy."""
    with policy_installed(control_plane):
        yield control_plane


def assert_only_capped_nodes_are_lost(server: ControlPlane, asked: Body) -> None:
    stored = admitted(server, asked)
    for place in PLACES:
        before, after = allows(asked["spec"], place), allows(stored["spec"], place)
        assert after == (before and not place.is_capped), (place, stored["spec"]["affinity"])
    assert_nothing_else_changed(server, asked, stored)
    assert admitted(server, asked | {"spec": stored["spec"]}) == stored  # a second time changes nothing


def assert_nothing_else_changed(server: ControlPlane, asked: Body, stored: Body) -> None:
    """Against the same pod of class standard: the rule is all that was added."""
    standard = deepcopy(asked)
    standard["metadata"]["annotations"][CLASS] = "standard"
    expected, found = admitted(server, standard), deepcopy(stored)
    del expected["metadata"]["annotations"], found["metadata"]["annotations"]
    assert without_required(found) == without_required(expected)


def without_required(stored: Body) -> Body:
    """Empty parts go, too: the policy had to make them to put the rule in."""
    copy = deepcopy(stored)
    affinity = copy["spec"].get("affinity") or {}
    (affinity.get("nodeAffinity") or {}).pop(REQUIRED, None)
    if not affinity.get("nodeAffinity"):
        affinity.pop("nodeAffinity", None)
    if not affinity:
        copy["spec"].pop("affinity", None)
    return copy


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_performance_pod_loses_eco_nodes_unless_they_drain(server: ControlPlane, shape: Body | None) -> None:
    assert_only_capped_nodes_are_lost(server, pod(shape))


@pytest.mark.parametrize("selector", [{"zone": "a"}, {PROFILE: "eco"}, {PROFILE: "performance"}], ids=str)
def test_with_a_node_selector_beside_it(server: ControlPlane, selector: dict[str, str]) -> None:
    assert_only_capped_nodes_are_lost(server, pod(None, nodeSelector=selector))
    assert_only_capped_nodes_are_lost(server, pod(SHAPES["many terms"], nodeSelector=selector))


VALUES = st.lists(st.sampled_from(["a", "b", "eco", "performance", "64", "true"]), min_size=1, max_size=3, unique=True)
KEYS = st.sampled_from(["zone", "cores", PROFILE, DRAINING, "absent"])
EXPRESSIONS = st.one_of(
    st.builds(lambda k, o, v: {"key": k, "operator": o, "values": v}, KEYS, st.sampled_from(["In", "NotIn"]), VALUES),
    st.builds(lambda k, o: {"key": k, "operator": o}, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(
        lambda o, n: {"key": "cores", "operator": o, "values": [str(n)]},
        st.sampled_from(["Gt", "Lt"]),
        st.integers(0, 99),
    ),
    st.just(RULE),
    st.just(DRAINS),
)
TERMS = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(EXPRESSIONS, max_size=3),
        "matchFields": st.lists(st.sampled_from([ON_A, NOT_ON_A]), max_size=2),
    },
)
NODE_AFFINITIES = st.fixed_dictionaries(
    {},
    optional={
        REQUIRED: st.builds(
            lambda terms: {"nodeSelectorTerms": terms}, st.lists(TERMS | st.none(), min_size=1, max_size=4)
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": st.just(PREFERRED),
    },
)
AFFINITIES = st.fixed_dictionaries(
    {},
    optional={
        "nodeAffinity": NODE_AFFINITIES | st.none(),
        "podAffinity": st.just(POD_AFFINITY["podAffinity"]) | st.just({}),
        "podAntiAffinity": st.just(POD_ANTI_AFFINITY["podAntiAffinity"]),
    },
)


@settings(max_examples=300)
@given(affinity=AFFINITIES)
def test_of_any_affinity_only_eco_nodes_that_do_not_drain_are_lost(server: ControlPlane, affinity: Body) -> None:
    assert_only_capped_nodes_are_lost(server, pod(affinity))


def test_pods_that_do_not_ask_stay_as_they_are(server: ControlPlane, plain: dict[str, Body]) -> None:
    for name, before in plain.items():
        shape, _, workload_class = name.rpartition(", ")
        given_class = None if workload_class == "None" else workload_class
        assert admitted(server, pod(SHAPES[shape], workload_class=given_class)) == before, name


def test_system_namespaces_are_no_exception(server: ControlPlane) -> None:
    assert allows(admitted(server, pod(), "kube-system")["spec"], Place("a", {}))
    assert not allows(admitted(server, pod(), "kube-system")["spec"], Place("a", {PROFILE: "eco"}))


def test_a_pod_that_has_its_node_already_is_left_alone(server: ControlPlane) -> None:
    assert "affinity" not in admitted(server, pod(nodeName="a"))["spec"]


@pytest.mark.parametrize(
    ("affinity", "complaint"),
    [
        ({"nodeAffinity": {REQUIRED: {}}}, "must have at least one node selector term"),
        (required(), "must have at least one node selector term"),
        (required({"matchExpressions": [{"operator": "Exists"}]}), "name part must be non-empty"),
        (required({"matchExpressions": [{"key": "a", "operator": "Near"}]}), "not a valid selector operator"),
        (required({"matchExpressions": [{"key": "a", "operator": "In"}]}), "must be specified when `operator` is 'In'"),
    ],
    ids=["no terms", "empty terms", "no key", "unknown operator", "no values"],
)
def test_what_kubernetes_refuses_is_still_refused_in_its_own_words(
    server: ControlPlane, affinity: Body, complaint: str
) -> None:
    from testbed.api import ApiError

    with pytest.raises(ApiError, match=complaint) as refusal:
        admitted(server, pod(affinity))
    assert refusal.value.status == 422


def test_pods_with_hundreds_of_terms_are_taken(server: ControlPlane) -> None:
    """Expressions in policies have a budget; no pod that a person or a controller would write comes near it."""
    wide = {"key": "zone", "operator": "In", "values": [f"zone-{number}" for number in range(50)]}
    assert_only_capped_nodes_are_lost(server, pod(required(*[{"matchExpressions": [wide] * 5}] * 200)))


def test_a_pod_of_this_class_can_be_changed_later(server: ControlPlane) -> None:
    """Nothing but creation is looked at: labels, finalizers and the end of such a pod pass as ever."""
    created = server.api.post("/api/v1/namespaces/default/pods", pod())
    path = "/api/v1/namespaces/default/pods/tried"
    changed = server.api.patch(path, {"metadata": {"labels": {"a": "b"}}})
    assert changed["spec"]["affinity"] == created["spec"]["affinity"]
    server.api.delete(f"{path}?gracePeriodSeconds=0")

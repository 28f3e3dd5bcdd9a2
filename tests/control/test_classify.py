"""Which pods are performance-only."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.control.classify import excludes_eco, is_eco_only, is_performance_only
from joulie.model.names import DRAINING_LABEL
from joulie.model.names import POWER_PROFILE_LABEL as KEY
from joulie.model.selector import Requirement
from joulie.model.snapshot import Pod, WorkloadClass

Terms = tuple[tuple[Requirement, ...], ...]

ONLY_PERFORMANCE = Requirement(KEY, "In", ("performance",))
NOT_ECO = Requirement(KEY, "NotIn", ("eco",))
ANY_PROFILE = Requirement(KEY, "Exists")
ZONE = Requirement("zone", "In", ("a",))
DRAINING = Requirement(DRAINING_LABEL, "In", ("true",))
ONLY_ECO = Requirement(KEY, "In", ("eco",))


@pytest.mark.parametrize(("workload_class", "expected"), [("performance", True), ("standard", False)])
def test_the_class_decides_for_a_pod_without_wishes(workload_class: WorkloadClass, expected: bool) -> None:
    assert is_performance_only(Pod("default", "p", "", workload_class), KEY) is expected


def test_a_class_of_performance_cannot_be_taken_back_by_a_selector() -> None:
    pod = Pod("default", "p", "", "performance", node_selector={KEY: "eco"})
    assert is_performance_only(pod, KEY)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({KEY: "performance"}, True),
        ({KEY: "anything"}, True),
        ({KEY: ""}, True),
        ({KEY: "eco"}, False),
        ({"zone": "a"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_selector_with_another_value_than_eco_excludes_eco(selector: dict[str, str] | None, expected: bool) -> None:
    assert excludes_eco(selector, None, KEY) is expected
    assert is_performance_only(Pod("default", "p", "", "standard", node_selector=selector), KEY) is expected


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (ONLY_PERFORMANCE, True),
        (Requirement(KEY, "In", ("performance", "eco")), False),
        (Requirement(KEY, "In", ()), True),
        (NOT_ECO, True),
        (Requirement(KEY, "NotIn", ("performance",)), False),
        (ANY_PROFILE, False),
        (Requirement(KEY, "DoesNotExist"), True),
        (Requirement(KEY, "Gt", ("0",)), True),
        (Requirement(KEY, "Lt", ("0",)), True),
        (ZONE, False),
    ],
)
def test_each_operator_is_judged_by_whether_eco_can_meet_it(requirement: Requirement, expected: bool) -> None:
    assert excludes_eco(None, ((requirement,),), KEY) is expected
    pod = Pod("default", "p", "", "standard", required_terms=((requirement,),))
    assert is_performance_only(pod, KEY) is expected


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        (((ONLY_PERFORMANCE,), (NOT_ECO,)), True),
        (((ONLY_PERFORMANCE,), (ZONE,)), False),  # one way in is enough
        (((ONLY_PERFORMANCE,), ()), False),
        (((ONLY_PERFORMANCE, ZONE),), True),  # all of a term must hold
        (((ANY_PROFILE, NOT_ECO),), True),
        (((ANY_PROFILE, ZONE), (NOT_ECO,)), False),
        (((ONLY_PERFORMANCE, Requirement(KEY, "In", ("eco",))),), True),  # can never be met, so not by eco either
        ((), False),  # met by no node, but says nothing of power
    ],
)
def test_terms_are_alternatives_and_requirements_add_up(terms: Terms, expected: bool) -> None:
    assert excludes_eco(None, terms, KEY) is expected


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        (((NOT_ECO,), (DRAINING,)), True),
        (((DRAINING,), (ONLY_PERFORMANCE,)), True),
        (((NOT_ECO, ZONE), (DRAINING, ZONE)), True),
        (((NOT_ECO,), (DRAINING, ONLY_ECO)), True),
        (((NOT_ECO,), (Requirement(DRAINING_LABEL, "NotIn", ("false",)), Requirement(DRAINING_LABEL, "Exists"))), True),
        (((NOT_ECO,), (Requirement(DRAINING_LABEL, "In", ("true", "false")),)), False),  # any node that has a label
        (((NOT_ECO,), (Requirement(DRAINING_LABEL, "NotIn", ("true",)),)), False),  # eco nodes that have settled
        (((NOT_ECO,), (Requirement(DRAINING_LABEL, "NotIn", ("false",)),)), False),  # and those without the label
        (((NOT_ECO,), (Requirement(DRAINING_LABEL, "Exists"),)), False),
        (((NOT_ECO,), (DRAINING,), (ZONE,)), False),
        (((DRAINING,),), False),  # says nothing of power
        (((DRAINING, ONLY_ECO),), False),  # wants eco
        (((ONLY_ECO, Requirement(DRAINING_LABEL, "NotIn", ("true",))),), False),
    ],
)
def test_a_term_for_draining_nodes_beside_one_that_rules_out_eco_changes_nothing(terms: Terms, expected: bool) -> None:
    assert excludes_eco(None, terms, KEY) is expected


def test_selector_and_affinity_must_both_be_met() -> None:
    assert excludes_eco({KEY: "eco"}, ((NOT_ECO,),), KEY)
    assert excludes_eco({KEY: "performance"}, ((ANY_PROFILE,),), KEY)
    assert not excludes_eco({KEY: "eco"}, ((ANY_PROFILE,),), KEY)
    assert excludes_eco({"zone": "a"}, ((NOT_ECO,),), KEY)


ONLY_ECO = Requirement(KEY, "In", ("eco",))
SETTLED = Requirement("joulie.io/draining", "NotIn", ("true",))


@pytest.mark.parametrize(
    ("selector", "terms", "expected"),
    [
        ({KEY: "eco"}, None, True),
        ({KEY: "performance"}, None, False),
        ({"zone": "a"}, None, False),
        (None, ((ONLY_ECO,),), True),
        (None, ((ONLY_ECO, SETTLED),), True),
        (None, ((Requirement(KEY, "NotIn", ("performance",)),),), True),
        (None, ((Requirement(KEY, "In", ("eco", "performance")),),), False),
        (None, ((ANY_PROFILE,),), False),
        (None, ((ONLY_ECO,), (ZONE,)), False),  # one way past is enough
        (None, ((ONLY_ECO, ZONE), (ONLY_ECO,)), True),
        (None, ((ONLY_ECO,), (NOT_ECO,)), False),
        (None, ((NOT_ECO,),), False),
        (None, ((SETTLED,),), False),
        (None, (), False),
        (None, None, False),
        ({KEY: "eco"}, ((ANY_PROFILE,),), True),
        ({KEY: "eco"}, ((NOT_ECO,),), False),  # can run nowhere; it rules eco out
    ],
)
def test_a_pod_is_eco_only_when_no_performance_node_will_do(
    selector: dict[str, str] | None, terms: Terms | None, expected: bool
) -> None:
    pod = Pod("default", "p", "", "standard", node_selector=selector, required_terms=terms)
    assert is_eco_only(pod, KEY) is expected
    of_class = Pod("default", "p", "", "performance", node_selector=selector, required_terms=terms)
    assert not is_eco_only(of_class, KEY), "the class comes first"


def test_the_label_is_a_setting() -> None:
    pod = Pod("default", "p", "", "standard", node_selector={"power": "performance"})
    assert is_performance_only(pod, "power")
    assert not is_performance_only(pod, KEY)


_REQUIREMENTS = st.builds(
    Requirement,
    st.sampled_from([KEY, "zone", DRAINING_LABEL]),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
    st.lists(st.sampled_from(["eco", "performance", "1", "true", "false"]), max_size=2).map(tuple),
)


@given(
    st.none() | st.dictionaries(st.sampled_from([KEY, "zone"]), st.sampled_from(["eco", "performance"])),
    st.none() | st.lists(st.lists(_REQUIREMENTS, max_size=3).map(tuple), max_size=3).map(tuple),
)
def test_a_pod_that_could_run_on_some_settled_eco_node_is_never_performance_only(
    selector: dict[str, str] | None, terms: Terms | None
) -> None:
    values = [None, "eco", "performance", "0", "1", "2", "x"]
    for zone, draining in itertools.product(values, [None, "false"]):
        labels = {KEY: "eco"} | ({"zone": zone} if zone is not None else {})
        labels |= {DRAINING_LABEL: draining} if draining is not None else {}
        fits_selector = all(labels.get(key) == value for key, value in (selector or {}).items())
        fits_terms = terms is None or any(all(r.matches(labels) for r in term) for term in terms)
        if fits_selector and fits_terms:
            assert not excludes_eco(selector, terms, KEY)

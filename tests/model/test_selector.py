"""Label selectors as `kubectl -l` takes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.model.selector import Requirement, parse_selector

GPU_NODE = {"joulie.io/managed": "true", "zone": "a", "gpus": "8", "empty": ""}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("", True),
        ("  ", True),
        ("zone=a", True),
        ("zone == a", True),
        ("zone=b", False),
        ("zone!=b", True),
        ("zone!=a", False),
        ("absent!=a", True),
        ("zone in (b, a)", True),
        ("zone in (b)", False),
        ("zone notin (b,c)", True),
        ("zone notin (a)", False),
        ("absent notin (a)", True),
        ("absent in (a)", False),
        ("zone", True),
        ("absent", False),
        ("!absent", True),
        ("! zone", False),
        ("gpus>7", True),
        ("gpus > 8", False),
        ("gpus<9", True),
        ("zone>1", False),
        ("absent<1", False),
        ("empty=", True),
        ("zone=", False),
        ("empty in ()", True),
        ("joulie.io/managed=true,zone=a", True),
        ("joulie.io/managed=true,zone=b", False),
        ("zone in (a,b),!absent,gpus>1", True),
    ],
)
def test_a_selector_takes_the_nodes_that_kubectl_would_take(selector: str, matches: bool) -> None:
    assert parse_selector(selector).matches(GPU_NODE) is matches


@pytest.mark.parametrize(
    "selector",
    [
        "=a",
        "a=b,",
        ",a",
        "a,,b",
        "a=b c=d",
        "a in b",
        "a in (b",
        "a in (b c)",
        "a>x",
        "a>",
        "a/b/c",
        "-a",
        "a=-",
        "a=b;c",
    ],
)
def test_what_is_no_selector_is_refused(selector: str) -> None:
    with pytest.raises(ValueError, match=r"is not a|ends in a comma"):
        parse_selector(selector)


@pytest.mark.parametrize(
    ("requirement", "matches"),
    [
        (Requirement("zone", "In", ("a", "b")), True),
        (Requirement("zone", "In", ()), False),
        (Requirement("zone", "NotIn", ("a",)), False),
        (Requirement("absent", "NotIn", ("a",)), True),
        (Requirement("zone", "Exists"), True),
        (Requirement("absent", "Exists"), False),
        (Requirement("absent", "DoesNotExist"), True),
        (Requirement("zone", "DoesNotExist"), False),
        (Requirement("gpus", "Gt", ("7",)), True),
        (Requirement("gpus", "Gt", ("8",)), False),
        (Requirement("gpus", "Lt", ("9",)), True),
        (Requirement("gpus", "Lt", ("8",)), False),
        (Requirement("gpus", "Gt", ("1", "2")), False),
        (Requirement("gpus", "Gt", ("many",)), False),
        (Requirement("zone", "Gt", ("0",)), False),
        (Requirement("zone", "Lt", ("0",)), False),
    ],
)
def test_a_requirement_means_what_node_affinity_says(requirement: Requirement, matches: bool) -> None:
    assert requirement.matches(GPU_NODE) is matches


def test_a_label_with_more_digits_than_a_number_has_is_just_not_greater() -> None:
    assert not parse_selector("gpus>1").matches({"gpus": "9" * 10_000})


@given(st.text(alphabet="ab=!,<>() in\tnot/.-_1", max_size=24))
def test_any_text_is_either_a_selector_or_a_value_error(text: str) -> None:
    try:
        selector = parse_selector(text)
    except ValueError:
        return
    selector.matches(GPU_NODE)

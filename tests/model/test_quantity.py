"""Quantities in all forms that Kubernetes writes and takes."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.model.quantity import Quantity, parse_quantity

_SCALES = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal("1e3"),
    "M": Decimal("1e6"),
    "G": Decimal("1e9"),
    "T": Decimal("1e12"),
    "Ki": Decimal(1024),
    "Mi": Decimal(1024**2),
    "Gi": Decimal(1024**3),
    "Ti": Decimal(1024**4),
}


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        ("100m", 0.1),
        ("1.5", 1.5),
        ("2Gi", 2 * 1024**3),
        ("1e3", 1000.0),
        ("1E3", 1000.0),
        ("12e-1", 1.2),
        ("4E", 4e18),
        ("1Ei", 2.0**60),
        ("+3", 3.0),
        ("0", 0.0),
        ("-0", 0.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("0.1", 0.1),
        ("250u", 0.00025),
        ("7n", 7e-9),
        ("007", 7.0),
        (8, 8.0),
        (0.25, 0.25),
        (2**62, float(2**62)),
    ],
)
def test_every_form_has_its_value(quantity: Quantity, value: float) -> None:
    assert parse_quantity(quantity) == value
    assert str(parse_quantity(quantity)) != "-0.0"


@pytest.mark.parametrize(
    "quantity",
    [
        "",
        "abc",
        "1 ",
        " 1",
        "1x",
        "1K",
        "1mi",
        "m",
        ".",
        "1e",
        "1e+",
        "--1",
        "0x10",
        "1_000",
        "1,5",
        "NaN",
        "inf",
        "\u0661",
    ],
)
def test_what_kubernetes_would_not_take_is_refused(quantity: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(quantity)


@pytest.mark.parametrize("quantity", ["-1", "-100m", -1, -0.5, -(2**62)])
def test_less_than_nothing_is_refused(quantity: Quantity) -> None:
    with pytest.raises(ValueError, match="is negative"):
        parse_quantity(quantity)


@pytest.mark.parametrize(
    "quantity",
    ["1e30", "100E", "1e99999", 1e300, 10**30, -(10**30), 10**400, pytest.param(10**5000, id="5,001 digits")],
)
def test_absurd_sizes_are_refused_without_being_printed(quantity: Quantity) -> None:
    with pytest.raises(ValueError, match="is out of range") as caught:
        parse_quantity(quantity)
    assert len(str(caught.value)) < 100


@pytest.mark.parametrize("quantity", [float("nan"), float("inf"), float("-inf"), True])
def test_numbers_that_are_none_are_refused(quantity: float) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(quantity)


def test_a_very_long_text_is_refused_at_once_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="is not a quantity") as caught:
        parse_quantity("9" * 1_000_000)
    assert len(str(caught.value)) < 200


@given(
    st.decimals(min_value=0, max_value=100_000, places=4, allow_nan=False, allow_infinity=False),
    st.sampled_from(sorted(_SCALES)),
)
def test_the_value_is_the_nearest_float_of_the_exact_product(number: Decimal, suffix: str) -> None:
    assert parse_quantity(f"{number:f}{suffix}") == float(number * _SCALES[suffix])


@given(st.text(max_size=12))
def test_any_text_is_either_a_finite_amount_or_a_value_error(text: str) -> None:
    try:
        value = parse_quantity(text)
    except ValueError:
        return
    assert 0 <= value <= 2.0**63

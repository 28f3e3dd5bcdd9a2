"""Sums of arrays are those of `math.fsum`, bit for bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.control.exact_sum import exact_sum

POWERS = st.floats(-1e12, 1e12)
ANY = st.floats(allow_nan=False, allow_infinity=False, width=64, max_value=1e300, min_value=-1e300)


@given(st.lists(POWERS | ANY, max_size=200))
def test_as_fsum_adds_them_up(values: list[float]) -> None:
    try:
        wanted = math.fsum(values)
    except OverflowError:
        return
    assert exact_sum(np.array(values, dtype=np.float64)) == wanted


@pytest.mark.parametrize(
    "values",
    [[], [0.0], [-0.0], [1e16, 1.0, -1e16], [0.1] * 10, [5e-324] * 7, [1e300, 1e-300, -1e300], [2.0**53, 1.0, 1.0]],
    ids=str,
)
def test_what_plain_addition_gets_wrong(values: list[float]) -> None:
    assert exact_sum(np.array(values)) == math.fsum(values)


@pytest.mark.parametrize("size", [1, 2, 3, 1_023, 1_024, 5_000, 70_000])
def test_many_numbers_of_all_sizes(size: int) -> None:
    chance = np.random.default_rng(size)
    values = chance.normal(0.0, 50.0, size) * 10.0 ** chance.integers(-12, 12, size)
    assert exact_sum(values) == math.fsum(values.tolist())
    assert exact_sum(values[::-1]) == exact_sum(values)


def test_what_is_no_number_stays_none() -> None:
    assert math.isnan(exact_sum(np.array([1.0, math.nan])))
    assert exact_sum(np.array([1.0, math.inf])) == math.inf

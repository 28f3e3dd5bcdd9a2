"""Time stamps to and from seconds."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.model.rfc3339 import format_time, parse_time_s

NOON_S = datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "time_s"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("2026-11-01T12:00:00Z", NOON_S),
        ("2026-11-01t12:00:00z", NOON_S),
        ("2026-11-01T12:00:00.25Z", NOON_S + 0.25),
        ("9999-12-31T23:59:59Z", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC).timestamp()),
        ("2026-11-01T14:30:00+02:30", NOON_S),
        ("2026-11-01T05:00:00-07:00", NOON_S),
        ("2026-11-01T12:00:00-00:00", NOON_S),
        ("2016-12-31T23:59:60Z", datetime(2017, 1, 1, tzinfo=UTC).timestamp()),
        ("2024-02-29T00:00:00Z", datetime(2024, 2, 29, tzinfo=UTC).timestamp()),
        ("1969-12-31T23:59:59Z", -1.0),
    ],
)
def test_a_time_stamp_is_read_in_any_zone(text: str, time_s: float) -> None:
    assert parse_time_s(text) == time_s


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-11-01",
        "2026-11-01 12:00:00Z",
        "2026-11-01T12:00:00",
        "2026-11-01T12:00Z",
        "2026-13-01T12:00:00Z",
        "2026-02-29T12:00:00Z",
        "2026-11-01T24:00:00Z",
        "2026-11-01T12:60:00Z",
        "2026-11-01T12:00:61Z",
        "2026-11-01T12:00:00+24:00",
        "2026-11-01T12:00:00+02:60",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+05:00",
        "9999-12-31T23:59:59-05:00",
        "9999-12-31T23:59:60Z",
        "2026-11-01T12:00:00Z\n",
        "٢٠٢٦-11-01T12:00:00Z",
        "1730462400",
        pytest.param("9" * 100_000, id="100,000 digits"),
    ],
)
def test_what_is_no_time_stamp_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not (a|an RFC 3339) time") as caught:
        parse_time_s(text)
    assert len(str(caught.value)) < 200


@given(st.integers(min_value=0, max_value=4_000_000_000))
def test_whole_seconds_survive_writing_and_reading(time_s: int) -> None:
    assert parse_time_s(format_time(time_s)) == time_s


@given(st.floats(min_value=0, max_value=4e9))
def test_a_written_time_is_never_in_the_future_and_less_than_a_second_old(time_s: float) -> None:
    assert 0 <= time_s - parse_time_s(format_time(time_s)) < 1

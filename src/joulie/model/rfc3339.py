"""Time stamps as Kubernetes writes them, to and from seconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_FORM = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d{1,9})?(?:([Zz])|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
)
_EARLIEST_S = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_LATEST_S = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp() + 1


def parse_time_s(text: str) -> float:
    """Seconds since 1970 of an RFC 3339 time stamp; ValueError for anything else."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:64]!r} is not an RFC 3339 time such as 2026-11-01T12:00:00Z")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, _, sign, off_hours, off_minutes = match.groups()[6:]
    offset = timedelta(hours=int(off_hours or 0), minutes=int(off_minutes or 0))
    try:
        # A leap second is the first moment of the next minute.
        moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a time: {error}") from None
    if second > 60:
        raise ValueError(f"{text!r} is not a time: second must be in 0..60")
    # Microseconds at most: with more digits a float would round the time up into the next second.
    seconds = moment.timestamp() + (1.0 if second == 60 else 0.0) + float((fraction or "0")[:7])
    seconds += offset.total_seconds() if sign == "-" else -offset.total_seconds()
    if not _EARLIEST_S <= seconds < _LATEST_S:  # the offset may lead out of the calendar
        raise ValueError(f"{text!r} is not a time: in UTC its year is out of range")
    return seconds


@lru_cache(maxsize=1024)  # whole seconds, and thousands of objects were written within a few
def readable_time_s(text: str | None) -> float | None:
    """The same; None where there is no time, or none that can be read."""
    try:
        return None if text is None else parse_time_s(text)
    except ValueError:
        return None


def format_time(time_s: float) -> str:
    """`2026-11-01T12:00:00Z`, whole seconds, as Kubernetes' own objects have it."""
    return datetime.fromtimestamp(int(time_s // 1), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

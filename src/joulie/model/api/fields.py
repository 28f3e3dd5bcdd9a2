"""Types with ranges that the API objects share, and the base of their parts."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

DEVICE_WATTS_LIMIT = 100_000.0  # one socket or board; nothing that is sold comes near it
NODE_WATTS_LIMIT = 2 * 65_536 * DEVICE_WATTS_LIMIT  # so that whatever hardware may state, its twin can be written

Watts = Annotated[float, Meta(ge=0, le=NODE_WATTS_LIMIT)]
# What hardware reports is taken as it comes: a range end of zero or less counts as absent.
ReportedWatts = Annotated[float, Meta(ge=-DEVICE_WATTS_LIMIT, le=DEVICE_WATTS_LIMIT)]
Pct = Annotated[float, Meta(ge=0, le=100)]
Score = Annotated[float, Meta(ge=0, le=100)]
# `8` and `8.0` read the same, `8.5` does not pass; `multiple_of=1` makes the CRD say integer.
Count = Annotated[float, Meta(ge=0, le=65_536, multiple_of=1)]
Bytes = Annotated[float, Meta(ge=0, le=2.0**62, multiple_of=1, extra_json_schema={"format": "int64"})]
Generation = Annotated[int, Meta(ge=0, extra_json_schema={"format": "int64"})]
Seconds = Annotated[float, Meta(gt=0, le=3600)]
Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
NodeName = Annotated[str, Meta(min_length=1, max_length=253)]

Profile = Literal["performance", "eco"]
ControlResult = Literal["applied", "blocked", "error", "none"]


class Part(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A nested part of an API object; what is not set is not written."""

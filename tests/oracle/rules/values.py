"""Reading of single values: numbers, texts, times, durations and Kubernetes quantities."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

Obj = dict[str, Any]

_TIME = re.compile(r"^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)$")
_DURATION_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_DURATION_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_QUANTITY = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([a-zA-Z]{0,2}))$")
_SUFFIXES: dict[str, Decimal] = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15,
    "E": Decimal(10) ** 18,
    "Ki": Decimal(2) ** 10,
    "Mi": Decimal(2) ** 20,
    "Gi": Decimal(2) ** 30,
    "Ti": Decimal(2) ** 40,
    "Pi": Decimal(2) ** 50,
    "Ei": Decimal(2) ** 60,
}


def dig(obj: Any, *path: str) -> Any:
    """Follow keys through nested dicts; ``None`` as soon as something is missing."""
    for key in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(key)
    return obj


def items(value: Any) -> list[Any]:
    """A list as it is, anything else (absent, ``null``) as the empty list."""
    return value if isinstance(value, list) else []


def mapping(value: Any) -> Obj:
    """A dict as it is, anything else (absent, ``null``) as the empty dict."""
    return value if isinstance(value, dict) else {}


def number(value: Any) -> float | None:
    """A finite JSON number, whole or not, as float."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def positive(value: Any) -> float | None:
    """A number above zero; zero and negative count as absent."""
    read = number(value)
    return read if read is not None and read > 0 else None


def text(value: Any) -> str:
    """A trimmed string; empty when absent."""
    return value.strip() if isinstance(value, str) else ""


def clamp(value: float, low: float, high: float) -> float:
    """``value`` moved into ``[low, high]``."""
    return max(low, min(high, value))


def round_half_up(value: float) -> int:
    """Section 13: round(x) = floor(x + 0.5)."""
    return math.floor(value + 0.5)


def parse_time(value: Any) -> float | None:
    """An RFC 3339 time as unix seconds, ``None`` when absent or unreadable."""
    match = _TIME.match(value) if isinstance(value, str) else None
    if match is None:
        return None
    day, clock, fraction, zone = match.groups()
    try:
        whole = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone in 'Zz' else zone}")
    except ValueError:
        return None
    return whole.timestamp() + float(fraction or 0)


def format_time(unix: float) -> str:
    """Unix seconds as RFC 3339 in UTC, with a fraction only where there is one."""
    moment = datetime.fromtimestamp(unix, tz=UTC)
    return moment.isoformat().replace("+00:00", "Z")


def parse_duration(value: str) -> float:
    """A Go-style duration (``90s``, ``1h30m``) in seconds."""
    if value == "0":
        return 0.0
    parts = _DURATION_PART.findall(value)
    if not parts or "".join(amount + unit for amount, unit in parts) != value:
        raise ValueError(f"not a duration: {value!r}")
    return math.fsum(float(amount) * _DURATION_SECONDS[unit] for amount, unit in parts)


def parse_quantity(value: Any) -> float | None:
    """A Kubernetes quantity (``100m``, ``1.5``, ``2Gi``, ``1e3``, a number); ``None`` if it is none."""
    if isinstance(value, (int, float)):
        return number(value)
    match = _QUANTITY.match(value.strip()) if isinstance(value, str) else None
    if match is None:
        return None
    amount, exponent, suffix = match.groups()
    if exponent:
        return float(Decimal(amount) * Decimal(10) ** int(exponent[1:]))
    if suffix not in _SUFFIXES:
        return None
    return float(Decimal(amount) * _SUFFIXES[suffix])

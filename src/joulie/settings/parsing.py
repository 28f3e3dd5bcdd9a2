"""How the text of an environment variable becomes a value. Each parser says in words what it allows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta, Struct

from joulie.model.names import GROUP, POWER_PROFILE_LABEL
from joulie.model.quantity import parse_quantity
from joulie.model.selector import parse_selector

T = TypeVar("T")

_DURATION = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_UNIT_S = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_LABEL_KEY = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_ADDRESS = re.compile(r"(?:[^:\s/]*|\[[0-9a-fA-F:]+\]):(\d{1,5})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Parser(Generic[T]):
    """Turns text into a value, or raises ValueError; `allowed` completes "allowed is …"."""

    parse: Callable[[str], T]
    allowed: str


def duration_s(text: str) -> float:
    """Seconds of a Go-style duration: `90s`, `5m`, `1h30m`, `1.5h`, `0`."""
    if text == "0":
        return 0.0
    parts = _DURATION.findall(text)
    if not parts or "".join(parts) != text:
        raise ValueError(f"{text!r} is not a duration")
    total = Fraction(0)
    for part in parts:
        unit = part.lstrip("0123456789.")
        total += Fraction(part[: -len(unit)].rstrip(".") or "0") * _UNIT_S[unit]
    return float(total)


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is not a number")
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is out of range")
    return value


def _integer(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def _bounded(parse: Callable[[str], T], holds: Callable[[T], bool]) -> Callable[[str], T]:
    def checked(text: str) -> T:
        value = parse(text)
        if not holds(value):
            raise ValueError(f"{text!r} is out of range")
        return value

    return checked


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered in ("true", "1", "t"):  # what Go's strconv.ParseBool takes
        return True
    if lowered in ("false", "0", "f"):
        return False
    raise ValueError(f"{text!r} is neither true nor false")


def _bytes(text: str) -> int:
    size = parse_quantity(text)
    if not 1 << 10 <= size <= 1 << 32:
        raise ValueError(f"{text!r} is out of range")
    return int(size)


def _text_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _label_key(text: str) -> str:
    if not _LABEL_KEY.fullmatch(text):
        raise ValueError(f"{text!r} is not a label key")
    return text


def _own_label_key(text: str) -> str:
    """A label that the operator may overwrite and cleanup remove: none that means something else."""
    domain = _label_key(text).rpartition("/")[0]
    if text != POWER_PROFILE_LABEL and (domain == GROUP or f".{domain}".endswith((".kubernetes.io", ".k8s.io"))):
        raise ValueError(f"{text!r} means something else")
    return text


def _address(text: str) -> str:
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match[1]) > 65535:
        raise ValueError(f"{text!r} is not an address")
    return text


def _url(text: str) -> str:
    if text and not re.fullmatch(r"https?://[^\s/]+\S*", text):
        raise ValueError(f"{text!r} is not a URL")
    return text


# As hardware may report it: zero or less counts as absent.
CapWatts = Annotated[float, Meta(ge=-1_000_000, le=1_000_000)]


class GpuModelCaps(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Cap range of one GPU model, from `GPU_MODEL_CAPS_JSON`."""

    min_cap_watts: CapWatts | None = None
    max_cap_watts: CapWatts | None = None


def _gpu_model_caps(text: str) -> Mapping[str, GpuModelCaps]:
    try:
        return MappingProxyType(msgspec.json.decode(text.encode(), type=dict[str, GpuModelCaps]))
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None


def number(low: float, high: float, *, above: bool = False) -> Parser[float]:
    """A number from low to high; with `above`, low itself is not allowed."""
    words = f"a number {'above' if above else 'from'} {low:g} {'up to' if above else 'to'} {high:g}"
    return Parser(_bounded(_number, lambda value: (low < value if above else low <= value) and value <= high), words)


def number_or_auto(low: float, high: float) -> Parser[float | None]:
    """A number above low, or `auto`, which is None: whoever uses it finds one by itself."""
    given = number(low, high, above=True)
    return Parser(lambda text: None if text == "auto" else given.parse(text), f"{given.allowed}, or auto")


def integer(low: int, high: int) -> Parser[int]:
    return Parser(_bounded(_integer, lambda value: low <= value <= high), f"a whole number from {low} to {high}")


def one_of(*choices: str) -> Parser[str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"{text!r} is not one of them")
        return text

    return Parser(parse, "one of " + ", ".join(choice or "(empty)" for choice in choices))


_FORM = "a duration such as 90s, 5m or 1h30m"
DURATION = Parser(_bounded(duration_s, lambda s: 0 < s <= 366 * 86400), f"{_FORM}, above 0 up to a year")
DURATION_OR_ZERO = Parser(_bounded(duration_s, lambda s: s <= 366 * 86400), _FORM)
BOOLEAN = Parser(_boolean, "true or false")
TEXT = Parser(str, "any text")
TEXT_LIST = Parser(_text_list, "names with commas between them")
LABEL_KEY = Parser(_label_key, "a label key such as joulie.io/reserved")
OWN_LABEL_KEY = Parser(
    _own_label_key,
    "a label key such as example.com/profile, which nothing else uses: none of joulie.io or kubernetes.io",
)
SELECTOR = Parser(parse_selector, "a label selector such as a=b,c in (d,e),!f; empty takes all")
ADDRESS = Parser(_address, "an address such as :8081 or 127.0.0.1:8081")
URL = Parser(_url, "a URL starting with http:// or https://, or nothing")
GPU_MODEL_CAPS = Parser(_gpu_model_caps, 'JSON such as {"H100 SXM": {"minCapWatts": 200, "maxCapWatts": 700}}')
BYTES = Parser(_bytes, "a size such as 128Mi or 20M, from 1Ki to 4Gi")
FRACTION = number(0, 1)
PCT_OF_MAX = number(0, 100, above=True)
WATTS = number(0, 1_000_000, above=True)

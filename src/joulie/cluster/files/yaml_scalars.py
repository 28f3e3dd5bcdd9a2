"""The value of a YAML scalar by the core schema of YAML 1.2."""

from __future__ import annotations

import re

from joulie.cluster.decoding.numbers import UnusableNumber, decimal_number, whole_number

Scalar = str | int | float | bool | UnusableNumber | None

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_BEGINS_SOMETHING_ELSE = frozenset("+-.0123456789~nNtTfF")
_INTEGER = re.compile(r"[-+]?\d+", re.ASCII)
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_DECIMAL = re.compile(r"[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")

_TAG_PREFIX = "tag:yaml.org,2002:"
_TAGGED_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "float": (float, int, UnusableNumber),
}


def plain_scalar(text: str) -> Scalar:
    """The value of a scalar without quotes or tag."""
    if text and text[0] not in _BEGINS_SOMETHING_ELSE:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return whole_number(text)
    if _DECIMAL.fullmatch(text):
        return decimal_number(text)
    if _HEXADECIMAL.fullmatch(text):
        return whole_number(text, 16)
    if _OCTAL.fullmatch(text):
        return whole_number(text, 8)
    if _NOT_FINITE.fullmatch(text):
        return UnusableNumber(text)
    return text


def tagged_scalar(tag: str, text: str) -> Scalar:
    """The value of a scalar with a tag such as `!!str`; ValueError for unsupported tags."""
    name = tag.removeprefix(_TAG_PREFIX)
    if name in ("str", "!"):
        return text
    allowed = _TAGGED_TYPES.get(name)
    if allowed is None:
        raise ValueError(f"the tag {tag[:64]!a} is not supported")
    value = plain_scalar(text)
    if not isinstance(value, allowed) or (isinstance(value, bool) and name != "bool"):
        raise ValueError(f"{text[:64]!a} does not fit its tag !!{name}")
    return float(value) if name == "float" and isinstance(value, int) else value

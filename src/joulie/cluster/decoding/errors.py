"""Error messages for objects that cannot be decoded: `spec.nodeName: expected a string, got a number`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import ValidationError, inspect

from joulie.cluster.decoding.numbers import UnusableNumber

_FAULT = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_MISSING = re.compile(r"Object missing required field `(?P<field>.*)`")
_MISTYPED = re.compile(r"Expected `(?P<wanted>[^`]*)`, got `(?P<got>[^`]*)`")
_OUT_OF_BOUNDS = re.compile(r"Expected `(?:int|float)` (?P<relation>[<>]=?) (?P<bound>\S+)")
_LENGTH = re.compile(r"Expected `(?P<type>\w+)` of length (?P<relation>[<>]=) (?P<bound>\d+)")

_IN_WORDS = {
    "str": "a string",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "nothing",
}
_RELATIONS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}


def explain(error: ValidationError, plain: object, type_: type) -> str:
    """`path: what is wrong`, with what msgspec's message omits taken from the plain object and its type."""
    match = _FAULT.fullmatch(str(error))
    if match is None:
        return str(error)
    what, value = match["what"], plain
    steps: list[str] = []
    mistyped = _MISTYPED.fullmatch(what)
    for step in _steps(match["path"] or ""):
        if isinstance(step, int):
            steps.append(f"[{step}]")
            value = value[step] if isinstance(value, list) and step < len(value) else None
        elif step is not None:
            steps.append(f".{step}")
            value = value.get(step) if isinstance(value, dict) else None
        else:
            key, value = _culprit(value, mistyped["got"] if mistyped else "")
            steps.append(f".{key}")
    if missing := _MISSING.fullmatch(what):
        steps.append(f".{missing['field']}")
        what = "missing"
    elif isinstance(value, UnusableNumber):
        what = f"{value} is not a usable number"
    elif match["key"]:
        what = "a key is not a string"
    elif what.startswith("Invalid enum value"):
        allowed = ", ".join(_allowed_values(type_, steps))
        what = f"{_shown(value)} is not one of the allowed values: {allowed}"
    else:
        what = _in_words(what, value)
    path = "".join(steps).removeprefix(".")
    return f"{path}: {what}" if path else what


def type_in_words(value: object) -> str:
    return _IN_WORDS.get(_type_name(value), "something else")


def _steps(path: str) -> Iterator[str | int | None]:
    """Field names, list positions, and None for a mapping key that the message does not name."""
    for step in _STEP.finditer(path):
        if step[1] is not None:
            yield step[1]
        else:
            yield None if step[2] == "..." else int(step[2])


def _culprit(value: object, got: str) -> tuple[str, object]:
    """The first entry of a mapping that has the reported type."""
    for key, entry in value.items() if isinstance(value, dict) else ():
        if _type_name(entry) == got:
            return str(key), entry
    return "*", None


def _allowed_values(type_: type, steps: list[str]) -> Iterator[str]:
    """The allowed values of a field with a fixed set of values."""
    found: list[inspect.Type] = _alternatives(inspect.type_info(type_))
    for step in steps:
        name = step.removeprefix(".")
        found = [
            alternative
            for structure in found
            if isinstance(structure, inspect.StructType)
            for field in structure.fields
            if field.encode_name == name
            for alternative in _alternatives(field.type)
        ]
    for literal in found:
        if isinstance(literal, inspect.LiteralType):
            yield from (str(value) for value in literal.values if value)


def _alternatives(type_: inspect.Type) -> list[inspect.Type]:
    if isinstance(type_, inspect.Metadata):
        return _alternatives(type_.type)
    if isinstance(type_, inspect.UnionType):
        return [alternative for part in type_.types for alternative in _alternatives(part)]
    return [type_]


def _type_name(value: object) -> str:
    names = {dict: "object", list: "array", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def _in_words(what: str, value: object) -> str:
    if match := _MISTYPED.fullmatch(what):
        wanted = [_IN_WORDS.get(name, name) for name in match["wanted"].split(" | ") if name != "null"]
        got = _IN_WORDS.get(match["got"], match["got"])
        return f"expected {' or '.join(dict.fromkeys(wanted))}, got {got}"
    if match := _OUT_OF_BOUNDS.fullmatch(what):
        return f"expected {_RELATIONS[match['relation']]} {float(match['bound']):.15g}, got {_shown(value)}"
    if match := _LENGTH.fullmatch(what):
        things = "characters" if match["type"] == "str" else "entries"
        return f"expected {_RELATIONS[match['relation']]} {match['bound']} {things}"
    if "multiple of 1" in what:
        return f"expected a whole number, got {_shown(value)}"
    if what == "Number out of range":
        return "number out of range"
    return f"{what[:1].lower()}{what[1:]}"


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 64 else f"{text[:61]}..."

"""Label selectors in the full Kubernetes grammar: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

_KEY = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
_REQUIREMENT = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<absent_key>{_KEY})"
    rf"|(?P<set_key>{_KEY})\s+(?P<set_op>in|notin)\s*\((?P<set>[^()]*)\)"
    rf"|(?P<key>{_KEY})(?:\s*(?P<op>==|=|!=|>|<)\s*(?P<value>{_VALUE}))?)\s*(?:,|$)",
    re.ASCII,
)
_WHOLE_VALUE = re.compile(_VALUE, re.ASCII)
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)  # Kubernetes compares 64-bit integers


class Requirement(Struct, frozen=True):
    """One condition on one label; the operators are those of node affinity."""

    key: str
    operator: str  # In NotIn Exists DoesNotExist Gt Lt
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        if value is None or len(self.values) != 1:
            return False
        if not (_INTEGER.fullmatch(value) and _INTEGER.fullmatch(self.values[0])):
            return False
        here, limit = int(value), int(self.values[0])
        return here > limit if self.operator == "Gt" else here < limit


class Selector(Struct, frozen=True):
    """All requirements must hold; the empty selector takes everything."""

    text: str
    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        for requirement in self.requirements:  # noqa: SIM110 - `all` would make a generator for every node
            if not requirement.matches(labels):
                return False
        return True


def parse_selector(text: str) -> Selector:
    """The selector that `kubectl -l` would understand; ValueError names the part that it would not."""
    requirements: list[Requirement] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _REQUIREMENT.match(text, position)
        if match is None:
            raise ValueError(f"{text[position:].strip()!r} is not a label selector (such as a=b,c!=d,e in (f,g),!h)")
        requirements.append(_requirement(match))
        position = match.end()
    if text.rstrip().endswith(","):
        raise ValueError(f"{text!r} ends in a comma")
    return Selector(text.strip(), tuple(requirements))


def _requirement(match: re.Match[str]) -> Requirement:
    if match["absent"]:
        return Requirement(match["absent_key"], "DoesNotExist")
    if match["set_op"]:
        values = tuple(value.strip() for value in match["set"].split(","))
        for value in values:
            if not _WHOLE_VALUE.fullmatch(value):
                raise ValueError(f"{value!r} is not a label value")
        return Requirement(match["set_key"], {"in": "In", "notin": "NotIn"}[match["set_op"]], values)
    operator, value = match["op"], match["value"] or ""
    if operator is None:
        return Requirement(match["key"], "Exists")
    if operator in (">", "<"):
        if not _INTEGER.fullmatch(value):
            raise ValueError(f"{value!r} after {operator} is not a whole number")
        return Requirement(match["key"], "Gt" if operator == ">" else "Lt", (value,))
    return Requirement(match["key"], "NotIn" if operator == "!=" else "In", (value,))

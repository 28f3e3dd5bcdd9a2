"""The label selector grammar of Kubernetes: ``a=b, a!=b, a in (b,c), a notin (b), a, !a, a>1, a<1``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

Requirement = Callable[[Mapping[str, str]], bool]

_KEY = r"([A-Za-z0-9](?:[A-Za-z0-9./_-]*[A-Za-z0-9])?)"
_VALUE = r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
_ABSENT = re.compile(rf"^!\s*{_KEY}$")
_PRESENT = re.compile(rf"^{_KEY}$")
_EQUALITY = re.compile(rf"^{_KEY}\s*(==|=|!=)\s*{_VALUE}$")
_SET = re.compile(rf"^{_KEY}\s+(in|notin)\s*\(([^()]*)\)$")
_ORDER = re.compile(rf"^{_KEY}\s*([<>])\s*([+-]?\d+)$")
_INTEGER = re.compile(r"^[+-]?\d+$")


def matches(selector: str, labels: Mapping[str, str]) -> bool:
    """Whether labels satisfy every requirement of the selector; the empty selector takes everything."""
    return all(requirement(labels) for requirement in parse(selector))


def parse(selector: str) -> list[Requirement]:
    """The selector's requirements; ``ValueError`` when it is not one."""
    if not selector.strip():
        return []
    parts = re.split(r",(?![^()]*\))", selector)
    return [_requirement(part.strip()) for part in parts]


def greater_or_less(operator: str, have: str | None, bound: str) -> bool:
    """Kubernetes' Gt and Lt: both sides are integers; any other or absent label does not match."""
    if have is None or not _INTEGER.match(have) or not _INTEGER.match(bound):
        return False
    return int(have) > int(bound) if operator == ">" else int(have) < int(bound)


def _requirement(part: str) -> Requirement:
    if match := _ABSENT.match(part):
        key = match[1]
        return lambda labels: key not in labels
    if match := _SET.match(part):
        key, operator = match[1], match[2]
        values = {value.strip() for value in match[3].split(",")}
        if operator == "in":
            return lambda labels: key in labels and labels[key] in values
        return lambda labels: key not in labels or labels[key] not in values
    if match := _EQUALITY.match(part):
        key, operator, value = match[1], match[2], match[3] or ""
        if operator == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if match := _ORDER.match(part):
        key, operator, bound = match[1], match[2], match[3]
        return lambda labels: greater_or_less(operator, labels.get(key), bound)
    if match := _PRESENT.match(part):
        key = match[1]
        return lambda labels: key in labels
    raise ValueError(f"not a label selector: {part!r}")

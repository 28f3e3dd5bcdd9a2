"""Label and field selectors as the API server evaluates them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from joulie.cluster.port import EVENTS, NODES, PODS, ClusterError
from joulie.cluster.watch.list_watch import Scope
from joulie.model.selector import parse_selector

_FIELD = re.compile(r"\s*(?P<path>[\w.]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^=!]*?)\s*")
Matches = Callable[[dict[str, Any]], bool]

_FIELDS_OF_ALL = frozenset({"metadata.name", "metadata.namespace"})
_FIELDS_OF = {
    PODS: frozenset({"spec.nodeName", "status.phase"}),
    NODES: frozenset({"spec.unschedulable"}),
    EVENTS: frozenset({"involvedObject.kind", "involvedObject.name", "reason", "type"}),
}


def matcher(scope: Scope) -> Matches:
    """A predicate for a scope; a selector that the server would reject raises its error 400."""
    try:
        labels = parse_selector(scope.label_selector)
        fields = [_field(scope, part) for part in scope.field_selector.split(",") if part.strip()]
    except ValueError as error:
        raise ClusterError(f"unable to parse the selector: {error}", status=400) from None
    if scope.namespace:
        fields.append(lambda body: body["metadata"].get("namespace") == scope.namespace)
    if not labels.requirements and not fields:
        return lambda body: True

    def matches(body: dict[str, Any]) -> bool:
        return labels.matches(body["metadata"].get("labels") or {}) and all(field(body) for field in fields)

    return matches


def _field(scope: Scope, text: str) -> Matches:
    match = _FIELD.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a field selector (such as metadata.name=a)")
    path, wanted = match["path"], match["operator"] != "!="
    if path not in _FIELDS_OF_ALL | _FIELDS_OF.get(scope.resource, frozenset()):
        raise ValueError(f"{path!r} is not a known field selector of {scope.resource.plural}")
    steps, compared = path.split("."), match["value"]
    return lambda body: (_text(body, steps) == compared) is wanted


def _text(body: dict[str, Any], steps: list[str]) -> str:
    value: Any = body
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)

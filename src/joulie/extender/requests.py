"""What kube-scheduler sends, read as far as it is needed.

Its types carry no JSON tags, so keys are capitalised; people with curl write them in lower case. Whole nodes are not
decoded: their names are read, and a filter hands their bytes back as they came.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Raw, Struct, field

from joulie.cluster import wire
from joulie.model.kubernetes import PodObject
from joulie.model.snapshot import Pod

T = TypeVar("T")
UNNAMED = "unnamed"  # a pod that somebody posts by hand need not have a name
_NULL = b"null"
_ABSENT = Raw(_NULL)


class BadRequestError(ValueError):
    """The request cannot be answered; the message is one line that names the field."""


class Named(Struct):
    name: str
    labels: dict[str, str] | None = None


class NodeHead(Struct):
    """Of a whole node, what names it."""

    metadata: Named


class JustName(Struct):
    name: str


class NodeName(Struct):
    metadata: JustName


class _Names(Struct):
    items: list[NodeName] | None = None


class _Wholes(Struct):
    items: list[Raw] | None = None


class _Body(Struct):
    """The body's outline; an absent or null part is None, and the first spelling that is there counts."""

    pod_capital: Raw = field(name="Pod", default=_ABSENT)
    pod_lower: Raw = field(name="pod", default=_ABSENT)
    names_capital: Raw = field(name="NodeNames", default=_ABSENT)
    names_camel: Raw = field(name="nodeNames", default=_ABSENT)
    names_lower: Raw = field(name="nodenames", default=_ABSENT)
    nodes_capital: Raw = field(name="Nodes", default=_ABSENT)
    nodes_lower: Raw = field(name="nodes", default=_ABSENT)


class Question(Struct):
    """A pod and its candidates: names, or whole nodes as bytes."""

    pod: Pod
    names: list[str]
    wholes: list[Raw] | None = None  # in the order of the names


_BODY = msgspec.json.Decoder(_Body)
_POD = msgspec.json.Decoder(PodObject)
_NAME_LIST = msgspec.json.Decoder(list[str])
_NODE_NAMES = msgspec.json.Decoder(_Names)
_WHOLES = msgspec.json.Decoder(_Wholes)
_NODE_NAME = msgspec.json.Decoder(NodeName)
_NODE_HEAD = msgspec.json.Decoder(NodeHead)


def read_question(body: bytes, *, whole: bool) -> Question:
    """The pod and its candidates; with `whole`, nodes that came whole are kept to be handed back."""
    outline = typed(_BODY, body, "the request")
    pod = read_pod(_first(outline.pod_capital, outline.pod_lower), "Pod")
    names = _first(outline.names_capital, outline.names_camel, outline.names_lower)
    if names is not None:
        return Question(pod, typed(_NAME_LIST, names, "NodeNames"))
    nodes = _first(outline.nodes_capital, outline.nodes_lower)
    if nodes is None:
        raise BadRequestError("NodeNames and Nodes are both missing: there is nothing to choose from")
    if not whole:
        items = typed(_NODE_NAMES, nodes, "Nodes").items or []
        return Question(pod, [item.metadata.name for item in items])
    wholes = typed(_WHOLES, nodes, "Nodes").items or []
    return Question(pod, [typed(_NODE_NAME, each, "Nodes.items").metadata.name for each in wholes], wholes)


def node_labels(whole: Raw) -> dict[str, str]:
    """The labels of a node that came whole."""
    return typed(_NODE_HEAD, whole, "Nodes.items").metadata.labels or {}


def read_pod(raw: Raw | bytes | None, path: str) -> Pod:
    """A pod with its demand added up."""
    if raw is None:
        raise BadRequestError(f"{path}: missing")
    pod = typed(_POD, raw, path)
    pod.metadata.name = pod.metadata.name or UNNAMED
    try:
        return wire.to_pod(pod)
    except ValueError as error:
        raise BadRequestError(f"{path}: {error}") from None


def typed(decoder: msgspec.json.Decoder[T], data: bytes | Raw, path: str) -> T:
    """What the decoder makes of it, or one line about where it fails."""
    try:
        return decoder.decode(data)
    except RecursionError:
        raise BadRequestError(f"{path}: nested too deeply") from None
    except ValueError as error:  # msgspec's errors, and bytes that are no text
        raise BadRequestError(f"{path}: {one_line(str(error))}") from None


def one_line(text: str, longest: int = 300) -> str:
    """Text for an answer: printable, and not longer than a person reads."""
    flat = " ".join(text.split())
    return "".join(each if each.isprintable() else "?" for each in flat[:longest])


def _first(*parts: Raw) -> Raw | None:
    return next((part for part in parts if memoryview(part) != _NULL), None)

"""What kube-scheduler sends, read as far as it is needed.

Its types carry no JSON tags, so keys are capitalised; people with curl write them in lower case. Whole nodes are not
decoded: their names are read, and a filter hands their bytes back as they came.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct, field

from joulie.cluster import wire
from joulie.model.kubernetes import PodObject
from joulie.model.snapshot import Pod

T = TypeVar("T")
UNNAMED = "unnamed"  # a pod that somebody posts by hand need not have a name
MOST_REMEMBERED_BYTES = 1 << 16  # of a pod
_NULL = b"null"
_ABSENT = Raw(_NULL)


class BadRequestError(ValueError):
    """The request cannot be answered; the message is one line that names the field."""


class _Named(Struct):
    name: str
    labels: dict[str, str] | None = None


class _NodeHead(Struct):
    """Of a whole node, what names it."""

    metadata: _Named


class _Wholes(Struct):
    items: list[Raw] | None = None


class _Name(Struct, gc=False):
    name: str


class _Head(Struct, gc=False):
    metadata: _Name


class _Heads(Struct):
    items: list[_Head] | None = None


class _Asked(Struct):
    """The body but for whole nodes; an absent or null part is None, and the first spelling that is there counts."""

    pod_capital: Raw = field(name="Pod", default=_ABSENT)
    pod_lower: Raw = field(name="pod", default=_ABSENT)
    names_capital: Raw = field(name="NodeNames", default=_ABSENT)
    names_camel: Raw = field(name="nodeNames", default=_ABSENT)
    names_lower: Raw = field(name="nodenames", default=_ABSENT)


class _AskedWhole(_Asked):
    nodes_capital: _Wholes | None = field(name="Nodes", default=None)
    nodes_lower: _Wholes | None = field(name="nodes", default=None)


class _AskedNamed(_Asked):
    """Of whole nodes their names alone: to read those on the way costs less than to look for them afterwards."""

    nodes_capital: _Heads | None = field(name="Nodes", default=None)
    nodes_lower: _Heads | None = field(name="nodes", default=None)


class Question:
    """A pod and its candidates: names, or whole nodes as bytes."""

    def __init__(
        self,
        pod: Pod,
        exists: bool,
        listed: bytes = b"",
        wholes: list[Raw] | None = None,
        heads: list[_Head] | None = None,
    ) -> None:
        self.pod = pod
        self.exists = exists  # an API server has given the pod its UID
        self.listed = listed  # the names as they came; empty with whole nodes
        self.wholes = wholes
        self._heads = heads

    @cached_property
    def is_plain(self) -> bool:
        """Whether the names stand between commas and quotes as kube-scheduler writes them."""
        return _is_plain(self.listed)

    @cached_property
    def pieces(self) -> list[bytes] | None:
        """The names without decoding; None where that would not do."""
        return self.listed[2:-2].split(_BETWEEN) if self.is_plain else None

    @cached_property
    def names(self) -> list[str]:
        """The candidates; where they came by name, many answers do without."""
        if self._heads is not None:
            return [head.metadata.name for head in self._heads]
        if self.wholes is not None:
            return [_name(whole) for whole in self.wholes]
        return typed(_NAMES, self.listed, "NodeNames")


_WHOLE = msgspec.json.Decoder(_AskedWhole)
_NAMED = msgspec.json.Decoder(_AskedNamed)
_POD = msgspec.json.Decoder(PodObject)
_NAMES = msgspec.json.Decoder(list[str])
_BETWEEN = b'","'
_NODE_HEAD = msgspec.json.Decoder(_NodeHead)
# As kube-scheduler writes a node: to find the name there is several times faster than to read the rest as well.
_NAME_FIRST = re.compile(rb'\{"metadata":\{"name":"([a-z0-9.-]+)"')


def read_question(body: bytes, *, keep_nodes: bool) -> Question:
    """The pod and its candidates; nodes that came whole can be kept to be handed back."""
    asked = typed(_WHOLE, body, "the request") if keep_nodes else typed(_NAMED, body, "the request")
    raw = bytes(_present(asked.pod_capital) or _present(asked.pod_lower) or b"")
    pod, exists = _asking(raw) if len(raw) > MOST_REMEMBERED_BYTES else _asking_again(raw)
    names = _present(asked.names_capital) or _present(asked.names_camel) or _present(asked.names_lower)
    if names is not None:
        return Question(pod, exists, bytes(names))
    if isinstance(asked, _AskedWhole) and (nodes := asked.nodes_capital or asked.nodes_lower) is not None:
        return Question(pod, exists, wholes=nodes.items or [])
    if isinstance(asked, _AskedNamed) and (named := asked.nodes_capital or asked.nodes_lower) is not None:
        return Question(pod, exists, heads=named.items or [])
    raise BadRequestError("NodeNames and Nodes are both missing: there is nothing to choose from")


def _asking(raw: bytes) -> tuple[Pod, bool]:
    """The pod, and whether it exists."""
    asking = _pod_object(raw or None, "Pod")
    return _to_pod(asking, "Pod"), bool(asking.metadata.uid)


_asking_again = lru_cache(maxsize=2)(_asking)  # kube-scheduler asks about each pod twice, in the same words


def _is_plain(listed: bytes) -> bool:
    """Whether valid JSON is a list of strings as kube-scheduler writes it: quotes stand at its ends and between two."""
    if not (listed.startswith(b'["') and listed.endswith(b'"]') and listed.isascii()):
        return False
    return listed.count(b'"') == 2 * listed.count(_BETWEEN) + 2


def _name(whole: Raw) -> str:
    first = _NAME_FIRST.match(whole)
    return str(first[1], "ascii") if first else typed(_NODE_HEAD, whole, "Nodes.items").metadata.name


def node_labels(whole: Raw) -> dict[str, str]:
    """The labels of a node that came whole."""
    return typed(_NODE_HEAD, whole, "Nodes.items").metadata.labels or {}


def read_pod(raw: Raw | bytes | None, path: str) -> Pod:
    """A pod with its demand added up."""
    return _to_pod(_pod_object(raw, path), path)


def _pod_object(raw: Raw | bytes | None, path: str) -> PodObject:
    if raw is None:
        raise BadRequestError(f"{path}: missing")
    pod = typed(_POD, raw, path)
    pod.metadata.name = pod.metadata.name or UNNAMED
    return pod


def _to_pod(pod: PodObject, path: str) -> Pod:
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


def _present(raw: Raw) -> Raw | None:
    return None if raw is _ABSENT or memoryview(raw) == _NULL else raw

"""Decodes what kube-scheduler sends (ExtenderArgs), as far as it is needed.

Its types have no JSON tags, so keys are capitalised; people with curl write them in lower case. Whole nodes are not
decoded except for their names, and a filter returns their bytes unchanged. Requests larger than this cluster can need
are refused before they are decoded.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TypeVar

import msgspec
import numpy as np
from msgspec import Raw, Struct, field

from joulie.cluster.decoding import conversion
from joulie.errors import one_line
from joulie.extender.rows import Names
from joulie.model.kubernetes import PodObject
from joulie.model.snapshot import Pod

T = TypeVar("T")
UNNAMED = "unnamed"  # a pod posted by hand need not have a name
MAX_REMEMBERED_BYTES = 1 << 16  # of a pod
MAX_POD_BYTES = 3 << 19  # etcd stores no larger object
MAX_NAME_BYTES = 260  # in a list: 253 characters, quotes, a comma and some room
MAX_NAME = 253
MAX_BRACES_PER_NODE = 128  # a whole node with 50 images and 20 conditions has fewer
UNCHECKED_BYTES = 1 << 20  # any content of this size needs little memory
_BRACE, _PIECE_BYTES = ord("{"), 1 << 18
_NULL = b"null"
_ABSENT = Raw(_NULL)


class BadRequestError(ValueError):
    """The request cannot be answered; the message is one line that names the field."""


class TooLargeError(BadRequestError):
    """The request is larger, or names more nodes, than this cluster can need."""


class _Name(Struct, gc=False):
    name: str


class _Head(Struct, gc=False):
    """The name of a whole node."""

    metadata: _Name


class _Heads(Struct):
    items: list[_Head] | None = None


class _Asked(Struct):
    """The body; absent and null parts are None, and the first spelling present counts.

    Only the names of whole nodes are kept: decoding them costs little more than skipping them.
    """

    pod_capital: Raw = field(name="Pod", default=_ABSENT)
    pod_lower: Raw = field(name="pod", default=_ABSENT)
    names_capital: Raw = field(name="NodeNames", default=_ABSENT)
    names_camel: Raw = field(name="nodeNames", default=_ABSENT)
    names_lower: Raw = field(name="nodenames", default=_ABSENT)
    nodes_capital: _Heads | None = field(name="Nodes", default=None)
    nodes_lower: _Heads | None = field(name="nodes", default=None)


class _Wholes(Struct):
    items: list[Raw] | None = None


class _AskedWhole(Struct):
    nodes_capital: _Wholes | None = field(name="Nodes", default=None)
    nodes_lower: _Wholes | None = field(name="nodes", default=None)


class ExtenderArgs:
    """A pod and its candidate nodes, by name or whole."""

    def __init__(
        self,
        pod: Pod,
        exists: bool,
        listed: bytes = b"",
        heads: list[_Head] | None = None,
        body: bytes = b"",
    ) -> None:
        self.pod = pod
        self.exists = exists  # the pod has a UID from an API server
        self.listed = listed  # the names as received; empty with whole nodes
        self._heads = heads
        self._body = body

    @property
    def is_whole(self) -> bool:
        return self._heads is not None

    @cached_property
    def block(self) -> Names | None:
        """The names without decoding them; None where that is not possible."""
        return Names.read(self.listed)

    @cached_property
    def names(self) -> list[str]:
        """The names of the candidates, decoded on first use."""
        if self._heads is None:
            return typed(_NAMES, self.listed, "NodeNames")
        names = [head.metadata.name for head in self._heads]
        if max(map(len, names), default=0) > MAX_NAME:
            raise BadRequestError(f"Nodes.items: a name is longer than {MAX_NAME} characters")
        return names

    @cached_property
    def wholes(self) -> list[Raw]:
        """Whole nodes as bytes, for the response."""
        asked = typed(_WHOLE, self._body, "the request")
        nodes = asked.nodes_capital or asked.nodes_lower
        return (nodes.items if nodes else None) or []


_ASKED = msgspec.json.Decoder(_Asked)
_WHOLE = msgspec.json.Decoder(_AskedWhole)
_POD = msgspec.json.Decoder(PodObject)
_NAMES = msgspec.json.Decoder(list[str])


def read_args(body: bytes, max_nodes: int) -> ExtenderArgs:
    """The pod and its candidates, of which there may be at most `max_nodes`."""
    check_braces(body, MAX_BRACES_PER_NODE * max_nodes)
    asked = typed(_ASKED, body, "the request")
    raw = _present(asked.pod_capital) or _present(asked.pod_lower)
    pod, exists = _asking(raw)
    names = _present(asked.names_capital) or _present(asked.names_camel) or _present(asked.names_lower)
    if names is not None:
        return ExtenderArgs(pod, exists, _bounded(names, max_nodes))
    nodes = asked.nodes_capital or asked.nodes_lower
    if nodes is None:
        raise BadRequestError("NodeNames and Nodes are both missing")
    heads = nodes.items or []
    check_count(len(heads), max_nodes)
    return ExtenderArgs(pod, exists, heads=heads, body=body)


def check_count(found: int, max_nodes: int) -> None:
    if found > max_nodes:
        raise TooLargeError(f"{found:,} nodes are named, far more than the cluster has")


def check_braces(body: bytes, most: int) -> None:
    """Counts braces, one per object: a body with more than the cluster can need would only cost memory."""
    if len(body) <= UNCHECKED_BYTES:
        return
    data, found = np.frombuffer(body, np.uint8), 0
    for start in range(0, len(body), _PIECE_BYTES):
        found += int(np.count_nonzero(data[start : start + _PIECE_BYTES] == _BRACE))
    if found > most:
        raise TooLargeError(f"the request contains {found:,} objects, far more than the cluster has")


def _bounded(names: Raw, max_nodes: int) -> bytes:
    """The list in kube-scheduler's format, after a check of its size."""
    size = memoryview(names).nbytes
    if size > max_nodes * MAX_NAME_BYTES:
        raise TooLargeError(f"NodeNames takes {size:,} bytes, far more than the cluster's names")
    listed = bytes(names)
    check_count(listed.count(b",") + 1, max_nodes)
    return listed.replace(_SPACED, _CLOSE) if _SPACED in listed[: 2 * MAX_NAME_BYTES] else listed


_SPACED, _CLOSE = b'", "', b'","'  # as many other programs write it


def _asking(raw: Raw | None) -> tuple[Pod, bool]:
    """The pod, and whether it exists."""
    if raw is None or memoryview(raw).nbytes > MAX_REMEMBERED_BYTES:
        asking = _pod_object(raw, "Pod")
        return _to_pod(asking, "Pod"), bool(asking.metadata.uid)
    return _asking_again(bytes(raw))


@lru_cache(maxsize=2)  # kube-scheduler sends each pod twice, byte for byte
def _asking_again(raw: bytes) -> tuple[Pod, bool]:
    asking = _pod_object(raw, "Pod")
    return _to_pod(asking, "Pod"), bool(asking.metadata.uid)


class LabelReader:
    """Reads one label of a whole node and skips everything else."""

    def __init__(self, label: str) -> None:
        labels = msgspec.defstruct("_Labels", [("value", str | None, field(name=label, default=None))])
        metadata = msgspec.defstruct("_Metadata", [("labels", labels | None, None)])
        self._decoder = msgspec.json.Decoder(msgspec.defstruct("_Node", [("metadata", metadata)]))
        self._label = label

    def read(self, whole: Raw) -> dict[str, str]:
        labels = typed(self._decoder, whole, "Nodes.items").metadata.labels  # type: ignore[attr-defined]
        return {self._label: labels.value} if labels is not None and labels.value is not None else {}


def read_pod(raw: Raw | bytes | None, path: str) -> Pod:
    """A pod with its requests added up."""
    return _to_pod(_pod_object(raw, path), path)


def _pod_object(raw: Raw | bytes | None, path: str) -> PodObject:
    if raw is None:
        raise BadRequestError(f"{path}: missing")
    if memoryview(raw).nbytes > MAX_POD_BYTES:
        raise TooLargeError(f"{path}: larger than the {MAX_POD_BYTES:,} bytes that Kubernetes stores")
    pod = typed(_POD, raw, path)
    pod.metadata.name = pod.metadata.name or UNNAMED
    return pod


def _to_pod(pod: PodObject, path: str) -> Pod:
    try:
        return conversion.to_pod(pod)
    except ValueError as error:
        raise BadRequestError(f"{path}: {error}") from None


def typed(decoder: msgspec.json.Decoder[T], data: bytes | Raw, path: str) -> T:
    """Decodes, or raises BadRequestError with one line."""
    try:
        return decoder.decode(data)
    except RecursionError:
        raise BadRequestError(f"{path}: nested too deeply") from None
    except ValueError as error:  # msgspec's errors, and bytes that are not UTF-8
        raise BadRequestError(f"{path}: {one_line(error, 300)}") from None


def _present(raw: Raw) -> Raw | None:
    return None if raw is _ABSENT or memoryview(raw) == _NULL else raw

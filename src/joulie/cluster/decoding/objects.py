"""The objects in a document: lists expanded, each object with its kind and version.

A body is an object still encoded in JSON (`Raw`), a JSON list whose header was decoded (`Header`), or plain data.
Encoded ones are decoded in C, which skips unused fields; plain ones come from YAML, or from JSON with an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct

from joulie.cluster.decoding import errors, json_documents
from joulie.cluster.decoding.json_documents import HEADER, Header

Body = Any  # Raw, Header, or plain data
T = TypeVar("T")


class ObjectKind(NamedTuple):
    """`v1/Pod`."""

    api_version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.api_version}/{self.kind}"


class FoundObject(NamedTuple):
    """One object."""

    kind: ObjectKind
    body: Body


class ObjectError(ValueError):
    """A body whose kind cannot be determined."""

    def __init__(self, reason: str, body: Body, kind: str = "object") -> None:
        super().__init__(reason)
        self.body = body
        self.kind = kind


class _PlainHeader(Struct, rename="camel"):
    kind: str | None = None
    api_version: str | None = None
    items: Any = UNSET


_NO_KIND = ObjectKind("", "")


def objects_in(bodies: Sequence[Body], implied: ObjectKind = _NO_KIND) -> Iterator[FoundObject]:
    """Every object in these bodies, including those in lists; `implied` is the kind of a typed list's items."""
    for encoded in bodies:
        header, body = _read_header(encoded)
        kind = ObjectKind(header.api_version or implied.api_version, header.kind or implied.kind)
        if not kind.kind:
            hint = ": is the file truncated?" if header.items is not UNSET else ""
            raise ObjectError(f"has no kind{hint}", body)
        if not kind.api_version:
            raise ObjectError("apiVersion: missing", body, kind.kind)
        if "List".startswith(kind.kind) and kind.kind != "List" and isinstance(header.items, list):
            raise ObjectError(f"kind: {kind.kind!r} has items but is not a List: is the file truncated?", body)
        if kind.kind.endswith("List") and (header.items is not UNSET or kind.kind == "List"):
            yield from objects_in(_items(header, body), _kind_of_items(kind))
        else:
            yield FoundObject(kind, body)


def decode(body: Body, decoder: msgspec.json.Decoder[T], type_: type[T]) -> T:
    """The typed object; ValueError reads `field.path: what is wrong`."""
    if isinstance(body, Raw):
        try:
            return decoder.decode(body)
        except ValueError:
            body = json_documents.plain(body)
    try:
        return msgspec.convert(body, type_)
    except msgspec.ValidationError as error:
        raise ValueError(errors.explain(error, body, type_)) from None


def _read_header(body: Body) -> tuple[Header | _PlainHeader, Body]:
    if isinstance(body, Raw):
        try:
            return HEADER.decode(body), body
        except ValueError:
            body = _plain(body)
    elif isinstance(body, Header):
        return body, body
    if not isinstance(body, dict):
        raise ObjectError(f"expected an object, got {errors.type_in_words(body)}", body)
    try:
        return msgspec.convert(body, _PlainHeader), body
    except msgspec.ValidationError as error:
        raise ObjectError(errors.explain(error, body, _PlainHeader), body) from None


def _plain(body: Raw) -> object:
    try:
        return json_documents.plain(body)
    except ValueError as error:
        raise ObjectError(str(error), None) from None


def _items(header: Header | _PlainHeader, body: Body) -> Sequence[Body]:
    items = header.items
    if items is None or items is UNSET:
        return ()
    if not isinstance(items, list):
        raise ObjectError(f"items: expected a list, got {errors.type_in_words(items)}", body)
    return items


def _kind_of_items(list_kind: ObjectKind) -> ObjectKind:
    """Items of a PodList need not repeat their kind; those of a plain List must."""
    name = list_kind.kind.removesuffix("List")
    return ObjectKind(list_kind.api_version, name) if name else _NO_KIND

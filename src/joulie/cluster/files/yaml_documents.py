"""YAML text to plain Python data, from the parser's events.

PyYAML's own constructors take many times as long as its event parser, follow YAML 1.1 (where `on` is true and a
timestamp is a date), silently keep the last of two equal keys, and let aliases grow without limit. Here: the core
schema of YAML 1.2, no duplicate keys, bounded depth, bounded aliases. Every error names its line.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml

from joulie.cluster.files.yaml_scalars import plain_scalar, tagged_scalar

MAX_NESTING = 100
MAX_ALIAS_NODES = 1_000_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_COLLECTION_TAGS = (None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_MERGE = "<<"


class YamlError(ValueError):
    """Text that is not YAML, or YAML features that manifests do not need; the message begins with the line."""


class _Anchored(NamedTuple):
    value: object
    nodes: int  # number of nodes, with nested aliases expanded; 0 while it is incomplete


class _Open:
    """A mapping (`entries`) or a list (`elements`) that is being read."""

    __slots__ = ("anchor", "elements", "entries", "key", "merged", "nodes")

    def __init__(self, anchor: str | None, entries: dict[str, object] | None) -> None:
        self.anchor = anchor
        self.entries = entries
        self.elements: list[object] = []
        self.key: str | None = None  # whose value follows
        self.merged: list[dict[str, object]] = []  # from the merge key `<<`
        self.nodes = 1


def documents(data: bytes) -> list[object]:
    """The content of each non-empty document; YamlError names the line."""
    builder = _Builder()
    try:
        for event in yaml.parse(data, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _malformed(mark, error.problem or error.context or "cannot be read") from None
    except yaml.YAMLError as error:
        raise YamlError(" ".join(str(error).replace('in "<byte string>", ', "at ").split())) from None
    return builder.documents


def _malformed(mark: Any, reason: str) -> YamlError:
    return YamlError(f"line {mark.line + 1}: {reason}" if mark else reason)


class _Builder:
    """Builds documents from events without recursion."""

    def __init__(self) -> None:
        self.documents: list[object] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        self._nodes_from_aliases = 0
        self._actions: dict[type, Any] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._begin,
            yaml.SequenceStartEvent: self._begin,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentEndEvent: self._forget_anchors,
        }

    def take(self, event: yaml.Event) -> None:
        action = self._actions.get(type(event))
        if action is not None:
            action(event)

    def _scalar(self, event: Any) -> None:
        text: str = event.value
        top = self._open[-1] if self._open else None
        if top is not None and top.entries is not None and top.key is None:
            value: object = text  # keys are always text
        elif event.tag is not None:
            try:
                value = tagged_scalar(event.tag, text)
            except ValueError as error:
                raise _malformed(event.start_mark, str(error)) from None
        else:
            value = plain_scalar(text) if event.implicit[0] else text
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, 1)
        self._put(value, 1, event)

    def _begin(self, event: Any) -> None:
        if len(self._open) >= MAX_NESTING:
            raise _malformed(event.start_mark, f"nested more than {MAX_NESTING} levels deep")
        if event.tag not in _COLLECTION_TAGS:
            raise _malformed(event.start_mark, f"the tag {event.tag[:64]!a} is not supported")
        top = self._open[-1] if self._open else None
        if top is not None and top.entries is not None and top.key is None:
            raise _malformed(event.start_mark, "a key is not plain text")
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(None, 0)
        self._open.append(_Open(event.anchor, {} if type(event) is yaml.MappingStartEvent else None))

    def _end(self, event: Any) -> None:
        done = self._open.pop()
        value: object = done.elements
        if done.entries is not None:
            value = _merged(done.entries, done.merged) if done.merged else done.entries
        if done.anchor is not None:
            self._anchors[done.anchor] = _Anchored(value, done.nodes)
        self._put(value, done.nodes, event)

    def _alias(self, event: Any) -> None:
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            raise _malformed(event.start_mark, f"the alias *{event.anchor[:64]} has no anchor before it")
        if anchored.nodes == 0:
            raise _malformed(event.start_mark, f"the alias *{event.anchor[:64]} contains itself")
        self._nodes_from_aliases += anchored.nodes
        if self._nodes_from_aliases > MAX_ALIAS_NODES:
            limit = f"{MAX_ALIAS_NODES:,}"
            raise _malformed(event.start_mark, f"aliases expand to more than {limit} values")
        self._put(anchored.value, anchored.nodes, event)

    def _forget_anchors(self, _event: Any) -> None:
        self._anchors.clear()

    def _put(self, value: object, nodes: int, event: Any) -> None:
        """Adds a finished value to its parent as key, entry or element, or to the documents."""
        if not self._open:
            if value is not None:
                self.documents.append(value)
            return
        top = self._open[-1]
        top.nodes += nodes
        if top.entries is None:
            top.elements.append(value)
        elif top.key is None:
            if not isinstance(value, str):
                raise _malformed(event.start_mark, "a key is not plain text")
            if value in top.entries or (value == _MERGE and top.merged):
                raise _malformed(event.start_mark, f"the key {value[:64]!a} appears twice in one mapping")
            top.key = value
        else:
            if top.key == _MERGE:
                top.merged = _mappings(value, event)
            else:
                top.entries[top.key] = value
            top.key = None


def _mappings(value: object, event: Any) -> list[dict[str, object]]:
    """The value of the merge key `<<`: a mapping or a list of mappings."""
    candidates = value if isinstance(value, list) else [value]
    sources = [candidate for candidate in candidates if isinstance(candidate, dict)]
    if len(sources) != len(candidates):
        raise _malformed(event.start_mark, "the value of << is not a mapping")
    return sources


def _merged(entries: dict[str, object], sources: list[dict[str, object]]) -> dict[str, object]:
    """The mapping with its merge sources: its own entries win, then those of the first source."""
    result: dict[str, object] = {}
    for source in reversed(sources):
        result.update(source)
    return result | entries

"""Which client owns which field of a custom resource, as an API server tracks it for server-side apply. Pure.

A path leads to one value: the keys down to it, and in a list of conditions the condition's type. Everything that is
neither an object nor a list of conditions is one value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Body = dict[str, Any]
Path = tuple[str, ...]

_LIST_MAPS: Mapping[Path, str] = {("status", "conditions"): "type"}


class Writer(NamedTuple):
    """A client and whether it applied a field or updated it: the server distinguishes the two."""

    manager: str
    applies: bool


Owners = Mapping[Writer, frozenset[Path]]


def after_update(owners: Owners, manager: str, old: Body, new: Body) -> Owners:
    """Ownership after a write other than apply: the client alone owns what it changed."""
    before, after = dict(_leaves(old)), dict(_leaves(new))
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    kept = _without(owners, changed)
    writer = Writer(manager, applies=False)
    return kept | {writer: kept.get(writer, frozenset()) | (changed & after.keys())}


def applied(owners: Owners, manager: str, old: Body, config: Body) -> tuple[Body, Owners]:
    """A forced apply: its values win; fields applied before and omitted now are removed unless co-owned."""
    writer = Writer(manager, applies=True)
    before, wanted = dict(_leaves(old)), dict(_leaves(config))
    others = {owner: paths for owner, paths in owners.items() if owner != writer}
    co_owned = frozenset().union(*others.values()) if others else frozenset()
    gone = owners.get(writer, frozenset()) - wanted.keys() - co_owned
    after = {path: value for path, value in before.items() if path not in gone} | wanted
    changed = {path for path, value in wanted.items() if before.get(path) != value}
    return _built(after), _without(others, changed) | {writer: frozenset(wanted)}


def _without(owners: Owners, paths: set[Path]) -> dict[Writer, frozenset[Path]]:
    return {owner: left for owner, owned in owners.items() if (left := owned - paths)}


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    key = _LIST_MAPS.get(path)
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from _leaves(part, (*path, name))
    elif key is not None and isinstance(value, list):
        for item in value:
            for name, part in item.items():
                yield from _leaves(part, (*path, item[key], name))
    else:
        yield path, value


def _built(leaves: Mapping[Path, Any]) -> Body:
    """The object with these values; lists of conditions keep their order, new ones come last."""
    result: Body = {}
    for path, value in leaves.items():
        place = result
        for step in path[:-1]:
            place = place.setdefault(step, {})
        if value == {}:  # an empty object that later paths may fill
            place.setdefault(path[-1], {})
        else:
            place[path[-1]] = value
    for path in _LIST_MAPS:
        place = result
        for step in path[:-1]:
            place = place.get(step, {})
        if path[-1] in place:
            place[path[-1]] = list(place[path[-1]].values())
    return result

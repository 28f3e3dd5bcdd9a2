"""Writes that change as little as possible: merge patches (RFC 7386), and server-side apply of a status."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from joulie.cluster.port import Cluster, ClusterError, MaySend, Resource

# How a server refuses to apply a field that its definition of the kind lacks.
_UNDECLARED = "field not declared in schema"


def merge_patch(there: Struct, wanted: Struct) -> dict[str, Any]:
    """The patch from one object to another, None for removed keys; fields unknown to these classes are left alone."""
    return difference(msgspec.to_builtins(there), msgspec.to_builtins(wanted))


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The same for plain data."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = difference(before, value)
            if inner:
                patch[key] = inner
        elif value != before:
            patch[key] = value
    return patch


class _Answer(msgspec.Struct):
    status: dict[str, Any] | None = None


_ANSWER = msgspec.json.Decoder(_Answer)


async def apply_status(
    cluster: Cluster,
    resource: Resource,
    name: str,
    status: Mapping[str, Any],
    *,
    owned: Collection[str],
    may_send: MaySend | None = None,
) -> bytes:
    """Makes the fields `owned` of a status, and its conditions, exactly these; returns the object as the server has it.

    An apply does not remove an omitted field that another client wrote too: a Joulie version from before server-side
    apply, or a person. Such fields are then removed by a patch. This happens once, after an upgrade.

    Helm does not update definitions, so they may be those of an older version. A server refuses to apply fields that
    they lack; a merge patch is taken without these fields, and caps follow decisions all the same.
    """
    try:
        answer = await cluster.apply_status(resource, name, status, may_send=may_send)
    except ClusterError as error:
        if _UNDECLARED not in str(error):
            raise
        return await cluster.patch(resource, name, {"status": dict(status)}, status=True, may_send=may_send)
    there = _ANSWER.decode(answer).status or {}
    stale = _removals(difference({key: there[key] for key in owned if key in there}, status))
    if not stale:
        return answer
    return await cluster.patch(resource, name, {"status": stale}, status=True, may_send=may_send)


def _removals(patch: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a merge patch that removes keys."""
    inner = {key: _removals(value) if isinstance(value, dict) else value for key, value in patch.items()}
    return {key: value for key, value in inner.items() if value is None or (isinstance(value, dict) and value)}

"""Everything of one kind as the server has it now: the beginning of a watch, which is then closed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeVar, cast

from joulie.cluster.port import Change, Cluster, Decode, Deleted, Resource, Synced, Upserted

T = TypeVar("T")


async def listed(
    cluster: Cluster, resource: Resource, decode: Decode[T], *, field_selector: str = ""
) -> list[Upserted[T]]:
    """The decodable objects. Waits for as long as the server does not answer: the caller sets a time limit."""
    found: dict[str, Upserted[T]] = {}
    watch = cast(AsyncGenerator[list[Change[T]], None], cluster.watch(resource, decode, field_selector=field_selector))
    async with aclosing(watch) as batches:
        async for changes in batches:
            for change in changes:
                if isinstance(change, Upserted):
                    found[change.key] = change
                elif isinstance(change, Deleted):
                    found.pop(change.key, None)
                elif isinstance(change, Synced):
                    return list(found.values())
    return list(found.values())

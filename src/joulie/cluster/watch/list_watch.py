"""The two calls that a reflector needs: a page of a list, and the events since a version."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import NamedTuple, Protocol

from msgspec import Raw

from joulie.cluster.port import Resource

GONE = 410  # the version asked for is too old, or a list took too long to page through
ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"


class Scope(NamedTuple):
    """Which objects: a kind, narrowed by selectors and, where one is named, to a namespace."""

    resource: Resource
    label_selector: str = ""
    field_selector: str = ""
    namespace: str = ""


class ListPage(NamedTuple):
    """Some objects of a list, still encoded, with the version of the list and the token of the next page."""

    items: Sequence[Raw]
    resource_version: str
    continue_token: str = ""


class Event(NamedTuple):
    """A change of an object (ADDED, MODIFIED, DELETED), or the version that the watch has reached (BOOKMARK)."""

    type: str
    object: Raw


class ListWatch(Protocol):
    """A server that lists and watches. Every failure is a ClusterError; status 410 requires a new list."""

    async def list_page(self, scope: Scope, continue_token: str) -> ListPage: ...

    def watch_from(self, scope: Scope, resource_version: str) -> AsyncGenerator[Sequence[Event], None]:
        """Events in the batches in which they arrived; returns when the server closes the watch normally."""
        ...

"""The two calls that a reflector stands on, and what they answer: a page of a list, and events since a version."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import NamedTuple, Protocol

from msgspec import Raw

from joulie.cluster.port import Resource

GONE = 410  # the version asked for is too old, or a list took too long to page through
ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"


class Scope(NamedTuple):
    """Which objects: a kind, narrowed by selectors."""

    resource: Resource
    label_selector: str = ""
    field_selector: str = ""


class Page(NamedTuple):
    """Some objects of a list, still encoded, the version the list stands for, and where the next page begins."""

    items: Sequence[Raw]
    resource_version: str
    continue_token: str = ""


class Event(NamedTuple):
    """What happened to an object (ADDED, MODIFIED, DELETED), or how far the server has come (BOOKMARK)."""

    type: str
    object: Raw


class ListWatch(Protocol):
    """A server that lists and watches. Every fault is a ClusterError; status 410 asks for a new list."""

    async def list_page(self, scope: Scope, continue_token: str) -> Page: ...

    def watch_from(self, scope: Scope, resource_version: str) -> AsyncGenerator[Sequence[Event], None]:
        """What arrived together comes together; ends when the server ends the watch in good order."""
        ...

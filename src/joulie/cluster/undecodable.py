"""Objects that cannot be decoded: each is reported once, and again only if the reason changes."""

from __future__ import annotations

from collections.abc import Callable

from joulie.cluster.port import Resource

OnUndecodable = Callable[[Resource, str, str], None]  # kind, key, reason


class UndecodableObjects:
    """The undecodable objects by kind and key, each with its reason."""

    def __init__(self, on_undecodable: OnUndecodable) -> None:
        self._on_undecodable = on_undecodable
        self.reasons: dict[tuple[str, str], str] = {}  # by kind and key

    def found(self, resource: Resource, key: str, reason: str) -> None:
        if self.reasons.get((resource.kind, key)) != reason:
            self.reasons[resource.kind, key] = reason
            self._on_undecodable(resource, key, reason)

    def gone(self, resource: Resource, key: str) -> None:
        """The object can be decoded again, or was deleted."""
        if self.reasons:
            self.reasons.pop((resource.kind, key), None)

    def count(self, kind: str) -> int:
        return sum(1 for broken_kind, _ in self.reasons if broken_kind == kind)

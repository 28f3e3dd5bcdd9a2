"""Objects that cannot be read: each is told of once, until it is whole again or gone, or broken in another way."""

from __future__ import annotations

from collections.abc import Callable

from joulie.cluster.port import Resource

OnBroken = Callable[[Resource, str, str], None]  # kind, key, reason


class BrokenObjects:
    """Why each of them cannot be read."""

    def __init__(self, on_broken: OnBroken) -> None:
        self._on_broken = on_broken
        self.reasons: dict[tuple[str, str], str] = {}  # by kind and key

    def found(self, resource: Resource, key: str, reason: str) -> None:
        if self.reasons.get((resource.kind, key)) != reason:
            self.reasons[resource.kind, key] = reason
            self._on_broken(resource, key, reason)

    def gone(self, resource: Resource, key: str) -> None:
        """It is whole again, or is no more."""
        if self.reasons:
            self.reasons.pop((resource.kind, key), None)

    def count(self, kind: str) -> int:
        return sum(1 for broken_kind, _ in self.reasons if broken_kind == kind)

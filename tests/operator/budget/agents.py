"""Agents in the test's hands: they follow the newest order of each twin when told to, and confirm it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from joulie.cluster.port import NODE_TWINS
from tests.operator.clusters import Person


class Agents:
    """All nodes' agents; `boots` are the boot ids that they read their devices in."""

    def __init__(self, person: Person) -> None:
        self._person = person
        self._sequence = 0
        self.boots: dict[str, str] = {}

    async def follow(self, only: Iterable[str] | None = None) -> dict[str, Any]:
        """The caps that each node's packages hold now; None: nothing in watts."""
        held: dict[str, Any] = {}
        chosen = None if only is None else set(only)
        for name, twin in (await self._person.all(NODE_TWINS)).items():
            if chosen is not None and name not in chosen:
                continue
            order = (twin.get("spec") or {}).get("budget")
            held[name] = None if order is None or order.get("released") else order["caps"]
            await self.confirm(name, twin["metadata"]["uid"], order["order"] if order else 0, held[name])
        return held

    async def confirm(self, name: str, uid: str, number: int, caps: Any) -> None:
        self._sequence += 1
        told = {
            "twinUid": uid,
            "order": number,
            "bootId": self.boots.get(name, ""),
            "session": 1,
            "sequence": self._sequence,
            "held": caps,
        }
        await self._person.edit(NODE_TWINS, name, {"status": {"controlStatus": {"budget": told}}}, status=True)

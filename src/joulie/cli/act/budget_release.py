"""Budgets before an uninstall: caps that agents would keep for ever are released first, while agents still run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec

from joulie.cli.act.each_object import for_each
from joulie.cli.connection import ClusterConnection
from joulie.cli.style import plural
from joulie.cluster.port import NODE_TWINS

WAIT_S = 30.0


async def release_orders(connection: ClusterConnection, say: Callable[[str], None]) -> list[str]:
    """Writes a release into each twin that carries an order, and waits for a while until agents have followed it.

    Returns the twins that could not be written.
    """
    orders = {twin["metadata"]["name"]: (twin.get("spec") or {}).get("budget") for twin in await _twins(connection)}
    wanted = {name: int(order["order"]) + 1 for name, order in orders.items() if order and not order.get("released")}
    numbers: dict[str, int] = {}

    async def release(name: str) -> None:
        order = {"order": wanted[name], "released": True, "reason": "Joulie is being removed"}
        await connection.cluster.patch(NODE_TWINS, name, {"spec": {"budget": order}})
        numbers[name] = wanted[name]

    failed = await for_each("release of", wanted, release)
    if not numbers:
        return failed
    say(f"releasing the budget caps of {plural(len(numbers), 'node')}: from now on no limit in watts is kept")
    until_s = time.monotonic() + WAIT_S
    while (waiting := await _waiting(connection, numbers)) and time.monotonic() < until_s:
        await asyncio.sleep(0.5)
    if waiting:
        say(
            f"no agent has confirmed the release on {plural(len(waiting), 'node')} ({min(waiting)}): run"
            " `joulie agent restore` there where a cap stays"
        )
    return failed


async def _twins(connection: ClusterConnection) -> list[dict[str, Any]]:
    return [msgspec.json.decode(body) for body in await connection.list_if_served(NODE_TWINS) or ()]


async def _waiting(connection: ClusterConnection, numbers: dict[str, int]) -> list[str]:
    confirmed = {
        twin["metadata"]["name"]: (((twin.get("status") or {}).get("controlStatus") or {}).get("budget") or {})
        for twin in await _twins(connection)
    }
    return [name for name, number in numbers.items() if name in confirmed and confirmed[name].get("order", 0) < number]

"""Ports on this machine: the one that was asked for or the next that is free, and free ones for the rest."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from joulie.demo.settings import DemoPorts
from joulie.errors import InputError

TRIED = 20  # ports after the one that was asked for


def choose_ports(dashboard: int, metrics_base: int | None, agents: int) -> DemoPorts:
    """Metrics from a base on: operator, agent, extender, simulator, further agents.

    InputError where one of these is taken: their numbers are relied on.
    """
    needed = 4 + agents  # one agent more than the pool has
    with ExitStack() as held:  # all at once, so that no port is given out twice
        page = _hold_first(held, dashboard)
        if metrics_base is None:
            rest = [_hold(held, 0) for _ in range(needed)]
        else:
            rest = [_hold_exactly(held, metrics_base + offset) for offset in range(needed)]
        operator, agent, extender, simulator, own_agent, *more_agents = rest
        return DemoPorts(page, operator, agent, extender, simulator, own_agent, tuple(more_agents))


def _hold_first(held: ExitStack, port: int) -> int:
    if port == 0:
        return _hold(held, 0)
    last, why = min(port + TRIED, 65535), ""
    for candidate in range(port, last + 1):
        try:
            return _hold(held, candidate)
        except OSError as error:
            why = error.strerror or str(error)
    raise InputError(f"--port {port}: no port from it to {last} is free on 127.0.0.1 ({why}); --port 0 takes any")


def _hold_exactly(held: ExitStack, port: int) -> int:
    try:
        return _hold(held, port)
    except (OSError, OverflowError) as error:
        raise InputError(f"--metrics-ports: port {port} cannot be used on 127.0.0.1: {error}") from None


def _hold(held: ExitStack, port: int) -> int:
    """Bound for a moment as the servers will bind it."""
    taken = held.enter_context(socket.socket())
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taken.bind(("127.0.0.1", port))
    number: int = taken.getsockname()[1]
    return number

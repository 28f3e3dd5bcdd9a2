"""Commands to simulated devices, in the words of their HTTP interface."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

RAPL, DVFS, GPU = "rapl.set_power_cap_watts", "dvfs.set_throttle_pct", "gpu.set_power_cap_watts"
ACTIONS = (RAPL, DVFS, GPU)
Result = Literal["applied", "blocked", "error"]

_VALUE_OF = {RAPL: "capWatts", DVFS: "throttlePct", GPU: "capWattsPerGpu"}


class _Body(Struct, rename="camel"):
    action: str
    node: str | None = None
    cap_watts: float | UnsetType | None = UNSET
    throttle_pct: float | UnsetType | None = UNSET
    cap_watts_per_gpu: float | UnsetType | None = UNSET


class Command(Struct, frozen=True):
    """What to set; None takes the limit away."""

    action: str
    value: float | None


class Reply(Struct, frozen=True):
    """What became of a command, and the limits afterwards."""

    result: Result
    message: str
    state: dict[str, Any] | None = None


_DECODER = msgspec.json.Decoder(_Body)


def decode_command(data: bytes, node: str) -> Command:
    """ValueError says what is wrong. A limit of null or 0 takes it away."""
    try:
        body = _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if body.node is not None and body.node != node:
        raise ValueError(f"node: {body.node[:64]!a} is not the node of the address")
    if body.action not in ACTIONS:
        raise ValueError(f"action: {body.action[:64]!a} is none of {', '.join(ACTIONS)}")
    value = {RAPL: body.cap_watts, DVFS: body.throttle_pct, GPU: body.cap_watts_per_gpu}[body.action]
    if value is UNSET:
        raise ValueError(f"{_VALUE_OF[body.action]}: missing (null restores)")
    if value is not None and not 0 <= value < float("inf"):
        raise ValueError(f"{_VALUE_OF[body.action]}: {value:g} is out of range")
    return Command(body.action, value or None)

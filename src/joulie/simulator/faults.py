"""Faults on demand: a node that blocks control, lies about power, answers slowly, goes away or reboots."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from joulie.simulator.control import ACTIONS

Kind = Literal["blocked", "lying", "slow", "gone", "reboot", "none"]
# In which ways each fault can happen, the first being the usual one.
WAYS: dict[str, tuple[str, ...]] = {
    "blocked": ("blocked", "error", "silent"),  # silent: says applied, does nothing
    "lying": ("factor", "nan", "negative", "frozen"),
    "slow": (),
    "gone": ("closed", "503"),
    "reboot": (),  # happens once: all limits are lost
    "none": (),  # ends all faults of the node
}


class Fault(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """One fault of one node, as it is asked for."""

    fault: Kind
    how: str = ""
    factor: Annotated[float, Meta(ge=0, le=1e6)] = 3.0  # lying: power is multiplied by this
    delay_seconds: Annotated[float, Meta(ge=0, le=3600)] = 10.0  # slow
    actions: tuple[str, ...] = ()  # blocked: only these; empty: all
    for_seconds: Annotated[float, Meta(gt=0)] | None = None  # ends by itself

    def concerns(self, action: str) -> bool:
        return not self.actions or action in self.actions


_DECODER = msgspec.json.Decoder(Fault)


def decode_fault(body: bytes) -> Fault:
    """ValueError says what is wrong."""
    try:
        fault = _DECODER.decode(body)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
    ways = WAYS[fault.fault]
    if fault.how and fault.how not in ways:
        raise ValueError(f"how: {fault.how[:64]!a} is none of {', '.join(ways) or 'none: leave it out'}")
    unknown = [action for action in fault.actions if action not in ACTIONS]
    if unknown:
        raise ValueError(f"actions: {unknown[0][:64]!a} is none of {', '.join(ACTIONS)}")
    return msgspec.structs.replace(fault, how=fault.how or ways[0]) if ways else fault


class _Standing(Struct):
    fault: Fault
    until_s: float | None
    frozen: dict[str, Any] | None = None  # lying: the answer that is given again and again


class Faults:
    """What is wrong with which node; at most one fault of each kind."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, _Standing]] = {}

    def put(self, node: str, fault: Fault, now_s: float) -> None:
        if fault.fault == "none":
            self._of.pop(node, None)
        elif fault.fault != "reboot":
            until_s = None if fault.for_seconds is None else now_s + fault.for_seconds
            self._of.setdefault(node, {})[fault.fault] = _Standing(fault, until_s)

    def forget(self, node: str) -> None:
        self._of.pop(node, None)

    def get(self, node: str, kind: Kind, now_s: float) -> Fault | None:
        if not self._of:  # as nearly always
            return None
        standing = self._standing(node, kind, now_s)
        return None if standing is None else standing.fault

    def listed(self, now_s: float) -> list[dict[str, Any]]:
        """All that stand, for people and tests."""
        return [
            {"node": node, **msgspec.to_builtins(fault)}
            for node in sorted(self._of)
            for kind in sorted(self._of[node])
            if (fault := self.get(node, kind, now_s)) is not None  # type: ignore[arg-type]
        ]

    def told(self, node: str, truth: dict[str, Any], now_s: float) -> dict[str, Any]:
        """Telemetry as the node tells it: the truth, unless it lies."""
        standing = self._standing(node, "lying", now_s) if self._of else None
        if standing is None:
            return truth
        fault = standing.fault
        if fault.how == "frozen":
            standing.frozen = standing.frozen or truth
            return standing.frozen
        lie = {"factor": fault.factor, "nan": float("nan"), "negative": -1.0}[fault.how]
        distorted: dict[str, Any] = _distorted(truth, lie)
        return distorted

    def _standing(self, node: str, kind: str, now_s: float) -> _Standing | None:
        standing = self._of.get(node, {}).get(kind)
        if standing is None or (standing.until_s is not None and now_s >= standing.until_s):
            return None
        return standing


def _distorted(value: Any, factor: float, key: str = "") -> Any:
    """The same with every power multiplied; caps and ranges stay true."""
    if isinstance(value, dict):
        return {name: _distorted(part, factor, name) for name, part in value.items()}
    if isinstance(value, list):
        return [_distorted(part, factor, key) for part in value]
    return value * factor if "powerwatts" in key.lower() and value is not None else value

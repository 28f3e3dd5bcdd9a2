"""What the enforcement of one node is given, and what it returns."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from joulie.devices.interface import Kind
from joulie.model.api.fields import ControlResult

WORTH_SAYING_W = 1.0  # hardware rounds, often to an eighth of a watt


class CapLimits(Struct, frozen=True):
    """The highest caps of a node: discovered, else from the catalogue. What is not known is None."""

    cpu_max_w: float | None = None  # all packages together
    cpu_floor_w: float | None = None  # all packages together; no cap in watts goes below
    cpu_packages: float = 1.0  # what a cap of each package is multiplied by
    gpu_max_w_each: float | None = None
    gpu_default_w_each: float | None = None


class CapOutcome(Struct, frozen=True):
    """The result of the cap of one kind of device."""

    result: ControlResult  # none: no cap is asked for
    backend: str = "none"
    message: str = ""  # changes only when something changed: it is compared before it is written
    cap_w: float | None = None  # what was asked for: all packages, or each board; None: in percent only, or no cap
    held_w: float | None = None  # what the device holds, read back; None: it is not known in watts
    throttle_pct: float | None = None  # of a CPU that is held by its frequency
    as_found: bool = False  # nothing had to be held back


class ReportedCap(Struct, frozen=True):
    """What the node's twin says an agent held its devices to, before this process began."""

    cap_w: float | None = None
    throttle_pct: float | None = None


class Notice(Struct, frozen=True):
    """Something that happened, to be logged; `event` asks for a Kubernetes Event with this reason as well."""

    reason: str  # CapPutBack, CapContested, CapsRestored, RestoreIncomplete, JournalLost, …
    message: str
    level: Literal["info", "warning"] = "info"
    event: bool = False
    kind: Kind | None = None


class Enforced(Struct, frozen=True):
    """One tick of one node."""

    cpu: CapOutcome
    gpu: CapOutcome
    notices: tuple[Notice, ...] = ()
    wrote: int = 0  # values written to devices
    corrections: int = 0  # changes from outside that were put back
    left: tuple[str, ...] = ()  # what is still to be restored, each with its reason; empty after a complete restore


def held_words(held_w: float | None, asked_w: float | None) -> str:
    """`240 W`, and where the device holds something else than was asked for, that too."""
    asked, held = _watts(asked_w), _watts(asked_w if held_w is None else held_w)
    if held_w is None or asked_w is None or abs(held_w - asked_w) < WORTH_SAYING_W:
        return asked
    return f"{held}, the nearest to {asked} that the hardware takes,"


def _watts(value: float | None) -> str:
    return f"{round(value or 0.0, 1):g} W"

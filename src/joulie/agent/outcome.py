"""What the enforcement of one node is told, and what it answers."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from joulie.devices.interface import Kind
from joulie.model.api.fields import ControlResult


class Limits(Struct, frozen=True):
    """The highest caps of a node: discovered, else from the catalogue. What is not known is None."""

    cpu_max_w: float | None = None  # all packages together
    gpu_max_w_each: float | None = None
    gpu_default_w_each: float | None = None


class Outcome(Struct, frozen=True):
    """What became of the cap of one kind of device."""

    result: ControlResult  # none: nobody asks for a cap
    backend: str = "none"
    message: str = ""  # changes only when something changed: it is compared before it is written
    cap_w: float | None = None  # what was asked for: all packages, or each board; None: percent alone, or no cap


class Notice(Struct, frozen=True):
    """Something that happened, to be logged; `event` asks for a Kubernetes Event with this reason as well."""

    reason: str  # CapPutBack, CapContested, CapsRestored, RestoreIncomplete, JournalLost, …
    message: str
    level: Literal["info", "warning"] = "info"
    event: bool = False
    kind: Kind | None = None


class Enforced(Struct, frozen=True):
    """One tick of one node."""

    cpu: Outcome
    gpu: Outcome
    notices: tuple[Notice, ...] = ()
    wrote: int = 0  # values written to devices
    corrections: int = 0  # changes by somebody else that were put back
    left: tuple[str, ...] = ()  # what is still to be restored, each with its reason; empty after a complete restore

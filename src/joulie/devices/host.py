"""The machine that the agent runs on, from which its backends are opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from joulie.devices.interface import NOTHING_FOUND, Knob, Value
from joulie.devices.sysfs import SysFs
from joulie.settings import DvfsSettings


class Host(NamedTuple):
    """What a backend may need of its machine; most need the kernel's files alone."""

    sysfs: SysFs
    dvfs: DvfsSettings
    cpu_max_w: float | None = None  # of one socket, by the catalogue
    found: Mapping[Knob, Value] = NOTHING_FOUND  # before the first write, as the journal has it; always up to date

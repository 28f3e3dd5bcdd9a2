"""Power caps: from the settings, a pin or an existing twin; always clamped (section 13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.oracle.rules.hardware import Hardware
from tests.oracle.rules.settings import Settings
from tests.oracle.rules.values import Obj, clamp, dig, number


@dataclass(frozen=True)
class Caps:
    """What is written; ``None`` is "not set". CPU watts are of each package, GPU watts of each board."""

    cpu_pct: float | None = None
    cpu_watts: float | None = None
    gpu_pct: float | None = None
    gpu_watts: float | None = None

    def cpu_effective_pct(self, hardware: Hardware) -> float:
        """The CPU cap in percent of the maximum, 100 when none is set."""
        return _percent(self.cpu_node_watts(hardware), self.cpu_pct, hardware.cpu_max_w)

    def cpu_node_watts(self, hardware: Hardware) -> float | None:
        """The CPU cap of the node: of each package, times the packages."""
        return None if self.cpu_watts is None else self.cpu_watts * hardware.sockets

    def gpu_effective_pct(self, hardware: Hardware) -> float:
        """The GPU cap in percent of the maximum, 100 when none is set."""
        return _percent(self.gpu_watts, self.gpu_pct, hardware.gpu_max_w)


def _percent(watts: float | None, pct: float | None, max_w: float) -> float:
    if watts is not None and max_w > 0:
        return clamp(100 * watts / max_w, 0, 100)
    return 100.0 if pct is None else pct


def settings_caps(hardware: Hardware, profile: str, settings: Settings) -> Caps:
    """The caps that the settings give a profile."""
    cpu_pct, cpu_watts = _cpu(
        hardware, settings.cpu_pct[profile], settings.cpu_watts[profile] if settings.cpu_absolute else None
    )
    if hardware.gpu_count <= 0:
        return Caps(cpu_pct, cpu_watts)
    gpu_pct = raised_pct(settings.gpu_pct[profile], hardware.gpu_min_w, hardware.gpu_max_w)
    gpu_watts = hardware.gpu_max_w * gpu_pct / 100 if settings.gpu_absolute and hardware.gpu_max_known else None
    return Caps(cpu_pct, cpu_watts, gpu_pct, gpu_watts)


def stated_caps(hardware: Hardware, spec: Any, missing: Caps, gpu_absolute: bool = False) -> Caps:
    """Caps of a NodePowerProfile's or NodeTwin's ``spec``, clamped; the rest comes from ``missing``.

    ``gpu_absolute``: GPU percent gets its watts beside it, as "absolute GPU mode sets both" says.
    """
    cpu_pct, cpu_watts = missing.cpu_pct, missing.cpu_watts
    pct, watts = (
        number(dig(spec, "cpu", "packagePowerCapPctOfMax")),
        number(dig(spec, "cpu", "packagePowerCapWatts")),
    )
    if pct is not None or (watts is not None and hardware.cpu_max_known):
        cpu_pct, cpu_watts = _cpu(hardware, pct if pct is not None else 100.0, watts)
    if hardware.gpu_count <= 0:
        return Caps(cpu_pct, cpu_watts)
    gpu_pct, gpu_watts = missing.gpu_pct, missing.gpu_watts
    cap: Obj = dig(spec, "gpu", "powerCap") or {}
    pct, watts = number(cap.get("capPctOfMax")), number(cap.get("capWattsPerGpu"))
    if watts is not None and hardware.gpu_max_known:
        gpu_watts = clamped_watts(watts, hardware.gpu_min_w, hardware.gpu_max_w)
        gpu_pct = 100 * gpu_watts / hardware.gpu_max_w
    elif pct is not None:
        gpu_pct = raised_pct(pct, hardware.gpu_min_w, hardware.gpu_max_w)
        gpu_watts = hardware.gpu_max_w * gpu_pct / 100 if gpu_absolute and hardware.gpu_max_known else None
    return Caps(cpu_pct, cpu_watts, gpu_pct, gpu_watts)


def _cpu(hardware: Hardware, pct: float, watts: float | None) -> tuple[float | None, float | None]:
    """(percent, watts) of which exactly one is set: watts where they are wanted and the maximum is known."""
    if watts is not None and hardware.cpu_max_known:
        lowest = hardware.cpu_min_w or hardware.cpu_max_w * hardware.cpu_min_cap_pct / 100
        return None, clamped_watts(watts, lowest / hardware.sockets, hardware.cpu_max_w / hardware.sockets)
    return raised_pct(pct, hardware.cpu_min_w, hardware.cpu_max_w), None


def raised_pct(pct: float, min_w: float | None, max_w: float) -> float:
    """A percentage within [100·min/max, 100]."""
    floor_pct = 100 * min_w / max_w if min_w is not None and max_w > 0 else 0.0
    return min(100.0, max(pct, floor_pct))


def clamped_watts(watts: float, min_w: float | None, max_w: float) -> float:
    """Watts within [min, max]; a minimum above the maximum gives way."""
    return min(max_w, max(watts, min_w or 0.0))

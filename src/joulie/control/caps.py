"""What a profile means in caps on a given machine, always within the hardware's range.

CPU watts are stated for each package, by settings, pins and twins alike; the node's total is that times its packages.

The rules: docs/reference/behaviour.md, 'Caps'.
"""

from __future__ import annotations

from msgspec import Struct

from joulie.model.api import NodeTwin
from joulie.model.names import ECO
from joulie.model.snapshot import Pin
from joulie.physics.hardware import Machine
from joulie.settings import PlanSettings


class Caps(Struct, frozen=True, gc=False):
    """The caps of one node as they would be written: watts of each CPU package and of each GPU board."""

    cpu_pct: float | None = None
    cpu_w_each: float | None = None
    gpu_pct: float | None = None
    gpu_w_each: float | None = None

    def cpu_w(self, machine: Machine) -> float | None:
        """The CPU cap in watts of all packages together, where it is written in watts."""
        return None if self.cpu_w_each is None else self.cpu_w_each * machine.sockets

    def effective_cpu_pct(self, machine: Machine) -> float:
        """The CPU cap in percent, however it is written; watts win."""
        if (cpu_w := self.cpu_w(machine)) is not None:
            return _pct_of(cpu_w, machine.cpu_max_w)
        return 100.0 if self.cpu_pct is None else self.cpu_pct

    def effective_gpu_pct(self, machine: Machine) -> float:
        if self.gpu_w_each is not None and machine.gpu_max_w_each:
            return _pct_of(self.gpu_w_each, machine.gpu_max_w_each)
        return 100.0 if self.gpu_pct is None else self.gpu_pct


def profile_caps(machine: Machine, profile: str, settings: PlanSettings) -> Caps:
    """The caps that the settings give a profile."""
    eco = profile == ECO
    cpu_w_each = settings.eco_cap_w if eco else settings.performance_cap_w
    cpu_pct = settings.cpu_eco_cap_pct if eco else settings.cpu_performance_cap_pct
    gpu_pct = settings.gpu_eco_cap_pct if eco else settings.gpu_performance_cap_pct
    return _clamped(
        machine,
        cpu_w_each=cpu_w_each if settings.cpu_write_absolute_caps else None,
        cpu_pct=cpu_pct,
        gpu_w=None,
        gpu_pct=gpu_pct,
        gpu_watts_too=settings.gpu_write_absolute_caps,
    )


def pinned_caps(machine: Machine, pin: Pin, settings: PlanSettings) -> Caps:
    """The caps of a pin; what it does not say comes from the settings for its profile."""
    usual = profile_caps(machine, pin.profile, settings)
    cpu_said = pin.cpu_cap_w is not None or pin.cpu_cap_pct is not None
    return _clamped(
        machine,
        cpu_w_each=pin.cpu_cap_w if cpu_said else usual.cpu_w_each,
        cpu_pct=_first(pin.cpu_cap_pct, usual.cpu_pct, 100.0),
        gpu_w=pin.gpu_cap_w,
        gpu_pct=_first(pin.gpu_cap_pct, usual.gpu_pct, 100.0),
        gpu_watts_too=settings.gpu_write_absolute_caps,
    )


def watts_left_out(machine: Machine, pin: Pin) -> str:
    """What of a pin cannot be written because no maximum is known; empty where all of it can."""
    cpu = pin.cpu_cap_w is not None and not machine.cpu_max_known
    gpu = pin.gpu_cap_w is not None and machine.gpu_count > 0 and not machine.gpu_max_known
    devices = " and ".join(name for name, left_out in (("CPU", cpu), ("GPU", gpu)) if left_out)
    return f"its {devices} watts cannot be used: the maximum is not known" if devices else ""


def caps_as_written(machine: Machine, twin: NodeTwin | None) -> Caps:
    """The caps that a twin's spec holds already, for nodes that are left as they are."""
    spec = twin.spec if twin else None
    cpu = spec.cpu if spec else None
    gpu = spec.gpu.power_cap if spec and spec.gpu else None
    return _clamped(
        machine,
        cpu_w_each=cpu.package_power_cap_watts if cpu else None,
        cpu_pct=_first(cpu.package_power_cap_pct_of_max if cpu else None, 100.0),
        gpu_w=gpu.cap_watts_per_gpu if gpu else None,
        gpu_pct=_first(gpu.cap_pct_of_max if gpu else None, 100.0),
        gpu_watts_too=False,
    )


def _clamped(
    machine: Machine,
    *,
    cpu_w_each: float | None,
    cpu_pct: float,
    gpu_w: float | None,
    gpu_pct: float,
    gpu_watts_too: bool,
) -> Caps:
    """Within the range; watts only where the maximum is known, and then instead of (CPU) or besides (GPU) percent."""
    cpu: tuple[float | None, float | None] = (_within(cpu_pct, machine.cpu_floor_pct, 100.0), None)
    if cpu_w_each is not None and machine.cpu_max_known:
        floor_w, max_w = machine.cpu_watts_floor_w / machine.sockets, machine.cpu_max_w / machine.sockets
        cpu = (None, _within(cpu_w_each, floor_w, max_w))
    if not machine.gpu_count:
        return Caps(*cpu)
    if gpu_w is not None and machine.gpu_max_known:
        gpu_w = _within(gpu_w, machine.gpu_min_w_each, machine.gpu_max_w_each)
        return Caps(*cpu, _pct_of(gpu_w, machine.gpu_max_w_each), gpu_w)
    gpu_pct = _within(gpu_pct, machine.gpu_floor_pct, 100.0)
    if not (gpu_watts_too and machine.gpu_max_known):
        return Caps(*cpu, gpu_pct)
    gpu_w = machine.gpu_max_w_each * gpu_pct / 100.0  # may miss an end of the range by the last digit
    return Caps(*cpu, gpu_pct, _within(gpu_w, machine.gpu_min_w_each, machine.gpu_max_w_each))


def _within(value: float, low: float, high: float) -> float:
    """A lowest cap above the highest gives way."""
    return min(max(value, low), high)


def _pct_of(watts: float, max_w: float) -> float:
    """Percent of the maximum; the last digit of a division must not lead beyond 100."""
    return min(100.0, 100.0 * watts / max_w)


def _first(*candidates: float | None) -> float:
    return next(value for value in candidates if value is not None)

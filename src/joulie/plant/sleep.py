"""Empty nodes that are switched off: what they still draw, how long they take to come back, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from joulie.plant.cpus import Which
from joulie.plant.curves import Numbers


@dataclass(frozen=True, slots=True)
class SleepSettings:
    """A server that is off but can be woken (S5 with its management controller on)."""

    sleep_w: float = 12.0
    wake_s: float = 180.0
    wake_energy_j: float = 30_000.0  # besides the idle power while it starts


class Sleep:
    """Which nodes are switched off. A node that wakes is switched on, but takes no work until it is ready."""

    def __init__(self, count: int, settings: SleepSettings | None = None) -> None:
        self.settings = settings or SleepSettings()
        self.asleep = np.zeros(count, dtype=bool)
        self.wake_left_s = np.zeros(count)
        self.wakes = np.zeros(count, dtype=np.int64)

    @property
    def ready(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return ~self.asleep & (self.wake_left_s <= 0)

    def sleep(self, which: Which) -> None:
        self.asleep[which] = True
        self.wake_left_s[which] = 0.0

    def wake(self, which: Which) -> None:
        """Has no effect on nodes that are awake."""
        waking = np.zeros_like(self.asleep)
        waking[which] = True
        waking &= self.asleep
        self.asleep[waking] = False
        self.wake_left_s[waking] = self.settings.wake_s
        self.wakes[waking] += 1

    def step(self, dt_s: float) -> tuple[Numbers, Numbers]:
        """The share of the step that each node is switched on, and the watts that sleeping and waking add to it."""
        on = np.where(self.asleep, 0.0, 1.0)
        starting_s = np.minimum(self.wake_left_s, dt_s)
        self.wake_left_s -= starting_s
        starting = starting_s / dt_s if dt_s > 0 else np.zeros_like(on)
        extra_w = self.settings.sleep_w * (1.0 - on)
        if self.settings.wake_s > 0:
            extra_w += starting * self.settings.wake_energy_j / self.settings.wake_s
        return on, extra_w

"""How fast work progresses, over its uncapped speed: frequency, what the work waits for, and what feeds it.

The rules: docs/reference/behaviour.md, 'Work'.
"""

from __future__ import annotations

import numpy as np

from joulie.plant.curves import Numbers

MAX_INDEPENDENT = 0.85  # even work that only waits for memory or storage slows a little


def cpu_speed(frequency: Numbers, memory_intensity: Numbers, io_intensity: Numbers) -> Numbers:
    """Time splits into a part that scales with frequency and one that waits for memory or storage and does not."""
    waiting = MAX_INDEPENDENT * (1.0 - (1.0 - memory_intensity) * (1.0 - io_intensity))
    return 1.0 / ((1.0 - waiting) / frequency + waiting)


def feeding(cpu_frequency: Numbers, feed_intensity: Numbers) -> Numbers:
    """How well a throttled CPU keeps a GPU supplied, 0 to 1; without need for feeding always 1."""
    return 1.0 / (1.0 - feed_intensity + feed_intensity / np.maximum(cpu_frequency, 1e-6))


def felt_speed(speed: Numbers, sensitivity: Numbers) -> Numbers:
    """The speed of work that feels only a share of a slowdown, counted in time: 0 feels nothing of it, 1 all of it."""
    return 1.0 / (1.0 + sensitivity * (1.0 / speed - 1.0))

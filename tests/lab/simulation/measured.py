"""Figures that others have measured and published."""

from __future__ import annotations

# Board, its top limit, limit, slowdown and energy for the same work, both over the top limit's: medians of the
# saturated trainings in the Zeus measurements (NSDI '23), as they were published with them.
SWEEPS = [
    ("V100", 250.0, 225.0, 1.02, 0.95),
    ("V100", 250.0, 200.0, 1.06, 0.88),
    ("V100", 250.0, 175.0, 1.11, 0.83),
    ("V100", 250.0, 150.0, 1.19, 0.78),
    ("V100", 250.0, 125.0, 1.44, 0.79),
    ("A40", 300.0, 225.0, 1.06, 0.84),
    ("A40", 300.0, 175.0, 1.30, 0.81),
    ("A40", 300.0, 150.0, 1.74, 0.95),
]

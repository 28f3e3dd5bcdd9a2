"""Compiled code that scores eight pods at once."""

from __future__ import annotations

from joulie.lab.kernels.compiling import entry
from joulie.lab.kernels.placement.ranking import headroom_after, marginal_power_w, share, total_score, whole_points
from joulie.lab.kernels.vectors import line_at, set_line
from joulie.lab.kernels.world import Numbers


@entry
def score_line(points: Numbers, cores: Numbers, gpus: Numbers, node: tuple[float, float, float, float, float]) -> bool:
    """Writes the points of eight pods on a node; whether any of them is new."""
    inverse_cores, inverse_gpus, headroom, points_per_w, rest = node
    watts = marginal_power_w(share(line_at(cores), inverse_cores), share(line_at(gpus), inverse_gpus), 300.0, 5e3)
    is_new: bool = set_line(
        points, whole_points(total_score(headroom_after(headroom, watts, points_per_w), rest), 100.0)
    )
    return is_new

"""Compiled code that scores eight pods at once."""

from __future__ import annotations

from joulie.lab.compiling import entry
from joulie.lab.lines_kernel import line_at, set_line
from joulie.lab.ranking_kernel import headroom_after, marginal_power_w, share, total_score, wire_points


@entry
def score_line(address: int, cores_at: int, gpus_at: int, node: tuple[float, float, float, float, float]) -> bool:
    """Writes the points of eight pods on a node; whether any of them is new."""
    inverse_cores, inverse_gpus, headroom, points_per_w, rest = node
    watts = marginal_power_w(share(line_at(cores_at), inverse_cores), share(line_at(gpus_at), inverse_gpus), 300.0, 5e3)
    is_new: bool = set_line(
        address, wire_points(total_score(headroom_after(headroom, watts, points_per_w), rest), 100.0)
    )
    return is_new

"""A cut of a feed in words with numbers. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from joulie.demo.scenario.feed_meter import FeedCut

MAX_CUTS = 3  # that a summary lists
_INDENT = " " * 10


def limit_words(seen: FeedCut) -> str:
    pct = 100.0 * (1.0 - seen.limit_w / seen.limit_before_w)
    return f"feed {seen.feed}: limit cut by {pct:.0f} %, from {kw(seen.limit_before_w)} to {kw(seen.limit_w)}"


def cut_words(seen: FeedCut) -> str:
    """What the feed drew, and what it cost."""
    return f"In the cut feed {seen.feed} drew {drawn_words(seen)}; {speed_words(seen)}."


def drawn_words(seen: FeedCut) -> str:
    """At the wall, also where it was too much."""
    drawn = f"at most {kw(seen.highest_w)}"
    if seen.above_s > 0:
        drawn += f", above {kw(seen.limit_w)} for {seen.above_s:.0f} simulated s"
    if seen.worst_margin_w is None:
        return drawn
    side = "below" if seen.worst_margin_w >= 0 else "ABOVE"
    return f"{drawn}; once in force, at worst {kw(abs(seen.worst_margin_w))} {side} the limit"


def speed_words(seen: FeedCut) -> str:
    return f"its pods ran at {times(seen.speed_during)} their uncapped speed, {times(seen.speed_before)} before"


def measured_cut_lines(cuts: Sequence[FeedCut], speed: float) -> list[str]:
    """What the plant showed while operator and agents ran; they work in real time, the plant in simulated time."""
    lines = []
    for seen in cuts[-MAX_CUTS:]:
        going_on = "" if seen.is_over else ", not over at the end"
        lines += [
            f"  cut     {limit_words(seen)}, for {seen.lasted_s:.0f} simulated s{going_on}",
            f"{_INDENT}{_in_force(seen, speed)}{_shared_again(seen, speed)}",
            f"{_INDENT}it drew {drawn_words(seen)}",
            f"{_INDENT}{speed_words(seen)}",
        ]
    return lines


def kw(watts: float) -> str:
    return f"{watts / 1000:.1f} kW"


def times(speed: float | None) -> str:
    return "–" if speed is None else f"{speed:.2f} ×"


def _in_force(seen: FeedCut, speed: float) -> str:
    if seen.in_force_s is None:
        return "not in force on every device by then"
    return f"in force on every device after {seen.in_force_s / speed:.1f} s ({seen.in_force_s:.0f} simulated s)"


def _shared_again(seen: FeedCut, speed: float) -> str:
    if seen.shared_again_s is None:
        return ""
    return f"; watts were shared again {seen.shared_again_s / speed:.1f} s after its end"

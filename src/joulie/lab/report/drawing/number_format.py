"""Numbers as people read them: a true minus, thousands apart, an interval in brackets, never without a unit."""

from __future__ import annotations

import math
import re

from joulie.lab.analysis.compare import Difference
from joulie.lab.analysis.measures import KNOWN
from joulie.lab.report.drawing.axes import DAY_S, HOUR_S, MINUTE_S

ABSENT = "–"


def amount(value: float | None, digits: int, unit: str = "") -> str:
    """12,345.6 kWh; a dash where there is nothing."""
    if value is None or not math.isfinite(value):
        return ABSENT
    shown = f"{value:,.{digits}f}".replace("-", "−")
    return f"{shown} {unit}" if unit else shown


def measured(measure: str, value: float | None, *, unit: bool = True) -> str:
    """As tables show this measure."""
    known = KNOWN[measure]
    return amount(value, known.digits, known.unit if unit else "")


def percent(value: float | None, digits: int = 1) -> str:
    """A difference: the sign always stands there."""
    return ABSENT if value is None or not math.isfinite(value) else f"{_signed(value, digits)} %"


def relative(difference: Difference) -> str:
    """−3.1 % [−4.0, −2.2], with a star where it is significant."""
    said = percent(difference.relative_pct)
    low, high = difference.relative_low_pct, difference.relative_high_pct
    if low is not None and high is not None:
        said += f" [{_signed(low, 1)}, {_signed(high, 1)}]"
    return f"{said}*" if difference.significant else said


def _signed(value: float, digits: int) -> str:
    return f"{value:+,.{digits}f}".replace("-", "−") if round(value, digits) else f"{0:.{digits}f}"


def duration(seconds: float) -> str:
    """In the largest unit that keeps a digit before the point."""
    for size, unit in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min")):
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.0f} s"


def listed(words: list[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""


def solid(words: str) -> str:
    """No line ends between a number and its unit, nor within an interval."""
    words = re.sub(r"\[[^\[\] ]+, [^\[\] ]+\]", lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), words)
    return re.sub(r"(?<=[\d\]]) (?=(?:%|×|kWh|kW|min|h|s|d)(?!\w))", "\N{NO-BREAK SPACE}", words)

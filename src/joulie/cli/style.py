"""One colour per state and numbers with their units, the same in every table."""

from __future__ import annotations

from joulie.overview.colours import FAULT, STATE_COLOURS

QUIET = "dim"
STRONG = "bold"


def state_cell(state: str) -> tuple[str, str]:
    """`■ eco` in its colour."""
    return f"■ {state}", STATE_COLOURS.get(state, FAULT)


def watts(value: float) -> str:
    """`1,204 W`."""
    return f"{value:,.0f} W"


def kilowatts(value_w: float) -> str:
    """`24.1 kW`, or watts below one kilowatt."""
    return f"{value_w / 1000:,.1f} kW" if value_w >= 1000 else watts(value_w)


def percent(value: float) -> str:
    """`60 %`, `57.1 %`."""
    return f"{plain(value)} %"


def plain(value: float, digits: int = 1) -> str:
    """Up to this many decimals, without trailing zeros: `60`, `57.1`, `-0.4`."""
    text = f"{value:,.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def fixed(value: float, digits: int = 1) -> str:
    """Exactly this many decimals, so that numbers line up in a column."""
    return f"{value:,.{digits}f}"


def plural(count: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def signed(value: float) -> str:
    """`+11.8`, `-5.9`, `+0.0`: a term of a sum."""
    return f"{value + 0.0:+.1f}"

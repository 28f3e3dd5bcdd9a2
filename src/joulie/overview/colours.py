"""One colour for each state everywhere: in the page, the terminal and plots.

They are told apart by colour-blind people too and can be read on dark and light ground; the word always stands beside
them, so nothing is lost without colour.
"""

from __future__ import annotations

from joulie.model.names import DRAINING, ECO, PERFORMANCE, UNKNOWN

STATE_COLOURS = {
    PERFORMANCE: "#0072b2",  # blue
    ECO: "#009e73",  # green
    DRAINING: "#bf7b00",  # amber
    UNKNOWN: "#888888",  # grey
}
FAULT = "#d4351c"  # red
BUDGET_COLOURS = {
    "within": STATE_COLOURS[ECO],
    "settling": STATE_COLOURS[DRAINING],
    "exceeded": FAULT,
    "infeasible": FAULT,
    "reported": STATE_COLOURS[UNKNOWN],
    "unseen": STATE_COLOURS[UNKNOWN],
}

"""`GET /api/v1/query` for the facility's metrics, so that the operator's poller can point at the simulator.

Of PromQL it knows a metric with equality matchers, `metric{label="value"}`, and a number.
"""

from __future__ import annotations

import re
from typing import Any

from joulie.settings.parsing import duration_s
from joulie.simulator.simulation import Simulation

_LABEL = r'([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"'
# Between labels there is always a comma, so that a text can be read in one way only.
_LABEL_LIST = rf"(?:{_LABEL}\s*(?:,\s*{_LABEL}\s*)*,?\s*)?"
_SELECTOR = re.compile(rf"\s*([a-zA-Z_:][\w:]*)\s*(?:\{{\s*({_LABEL_LIST})\}}\s*)?", re.ASCII)
_LABELS = re.compile(_LABEL, re.ASCII)
_NUMBER = re.compile(r"\s*[+-]?\d+(?:\.\d+)?\s*", re.ASCII)
MAX_QUERY = 4_096


def answer(simulation: Simulation, query: str, lookback: str | None, now_s: float) -> dict[str, Any]:
    """The data of a good answer; ValueError says what is wrong with the question.

    Values are stamped with the last step and, as Prometheus does it, left out when they are older than
    `lookback_delta`.
    """
    max_age_s = float("inf") if lookback is None else _seconds(lookback)
    if len(query) > MAX_QUERY:
        raise ValueError(f"the query is longer than {MAX_QUERY} characters")
    if _NUMBER.fullmatch(query):
        return {"resultType": "scalar", "result": [now_s, str(float(query))]}
    asked = _SELECTOR.fullmatch(query)
    if asked is None:
        raise ValueError('only metric, metric{label="value"} and numbers are understood here')
    wanted = dict(_LABELS.findall(asked[2] or ""))
    at_s = simulation.stepped_at_s
    found = simulation.facility.series(asked[1]) if now_s - at_s <= max_age_s else []
    return {
        "resultType": "vector",
        "result": [
            {"metric": {"__name__": asked[1], **labels}, "value": [at_s, repr(value)]}
            for labels, value in found
            if all(labels.get(name, "") == text for name, text in wanted.items())
        ],
    }


def _seconds(text: str) -> float:
    try:
        return float(text) if re.fullmatch(r"\d+(?:\.\d+)?", text) else duration_s(text)
    except ValueError:
        raise ValueError(f"lookback_delta: {text[:64]!a} is not a duration") from None

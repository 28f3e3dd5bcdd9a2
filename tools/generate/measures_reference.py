"""The reference page of the lab's measures, from their table."""

from __future__ import annotations

from joulie.lab.analysis.measures import MEASURES
from tools.generate.reference import NOTE, table

_INTRO = """\
What a lab run is judged by, in the order of tables and reports. An experiment names a measure by its key, for example
in `tune.minimise`; `joulie lab run -o json` prints all of them. Where there is nothing to measure, such as GPU energy
without GPU work, a value is `null`.
"""


def measures_page() -> str:
    """Every measure with its unit and the side on which it is better."""
    rows = [[f"`{each.key}`", each.label, each.unit or "–", each.better or "–"] for each in MEASURES]
    return "\n".join([
        "# Lab measures",
        NOTE.format(source="src/joulie/lab/analysis/measures/table.py"),
        _INTRO,
        table(["key", "measure", "unit", "better"], rows),
    ])  # fmt: skip

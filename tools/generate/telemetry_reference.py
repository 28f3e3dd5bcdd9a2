"""The reference page of telemetry tiers, from their table."""

from __future__ import annotations

from joulie.model.tiers import TIERS
from tools.generate.reference import NOTE, table

_INTRO = """\
What a node draws comes from the first of these tiers that has a fresh, believable reading; `source` in the twin says
which one. The rules are under [behaviour](behaviour.md#telemetry-tiers).
"""


def telemetry_page() -> str:
    """Every tier, best first."""
    rows = [
        [f"`{tier.name}`", tier.meaning, f"`OPERATOR_NODE_POWER_SOURCE={tier.setting}`" if tier.setting else "always"]
        for tier in TIERS
    ]
    return "\n".join([
        "# Telemetry tiers",
        NOTE.format(source="src/joulie/model/tiers.py"),
        _INTRO,
        table(["`source`", "from", "asked for by"], rows),
    ])  # fmt: skip

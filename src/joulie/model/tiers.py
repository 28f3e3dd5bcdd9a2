"""Sources of a node's power, best first (docs/reference/behaviour.md, 'Telemetry tiers').

A tier is a line in this table; one that is read from outside also has a reader in `sources`, which the line names. API,
settings, sources, twin, commands and documents take tiers from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    PowerSource = str


class Tier(NamedTuple):
    """One way to know what a node draws."""

    name: str  # `source` of a power measurement
    meaning: str
    reader: str = ""  # the `PowerReader` of a tier that is measured, as module:object; imported when it is used
    setting: str = ""  # value of OPERATOR_NODE_POWER_SOURCE that asks for it


TIERS = (
    Tier("kepler", "measured: Kepler, or any PromQL", "joulie.sources.power.kepler:READER", "prometheus"),
    Tier("http", "measured: an HTTP endpoint for each node", "joulie.sources.power.http:READER", "http"),
    Tier("utilization", "how busy CPUs and GPUs are, through the hardware's power curve"),
    Tier("static", "what the pods there ask for"),
)
TIER_NAMES = tuple(tier.name for tier in TIERS)
MEASURED = tuple(tier.name for tier in TIERS if tier.reader)
_ESTIMATES = ", ".join(name for name in TIER_NAMES if name not in MEASURED)
SPEAKERS = f"The source: a measurement ({', '.join(MEASURED)}) or an estimate ({_ESTIMATES})."
if not TYPE_CHECKING:
    PowerSource = Literal[TIER_NAMES]

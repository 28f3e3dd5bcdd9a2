"""What the catalogue knows of one model, and how a name from the field is matched to it."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import Meta, Struct

Evidence = Literal["measured", "official", "proxy"]
Positive = Annotated[float, Meta(gt=0, le=100_000)]
# Node watts at idle and at 10, 20 … 100 % load.
Curve = Annotated[tuple[float, ...], Meta(min_length=11, max_length=11)]

CURVE_SOCKETS = 2  # published curves are of two-socket servers
_WORD = re.compile(r"[a-z0-9]+")


class CpuModel(Struct, frozen=True, forbid_unknown_fields=True):
    """One CPU, for each socket; the curve is of a whole two-socket server at the wall."""

    name: str
    cores: Positive
    base_ghz: Positive
    boost_ghz: Positive
    tdp_w: Positive
    evidence: Evidence
    source: str
    ctdp_min_w: Positive | None = None
    ctdp_max_w: Positive | None = None
    node_curve_w: Curve | None = None
    aliases: tuple[str, ...] = ()

    @property
    def max_w(self) -> float:
        return self.ctdp_max_w or self.tdp_w

    @property
    def node_idle_w(self) -> float | None:
        """Wall power of an idle two-socket server."""
        return None if self.node_curve_w is None else self.node_curve_w[0]


class GpuModel(Struct, frozen=True, forbid_unknown_fields=True):
    """One GPU board and the range of its power limit."""

    name: str
    vendor: Literal["nvidia", "amd", "other"]
    max_w: Positive
    evidence: Evidence
    source: str
    min_w: Positive | None = None
    aliases: tuple[str, ...] = ()


def words(name: str) -> tuple[str, ...]:
    """`NVIDIA-H100-80GB-HBM3` → nvidia h100 80gb hbm3: what is common to all spellings of a name."""
    return tuple(_WORD.findall(name.lower()))


def matches(entry: CpuModel | GpuModel, name_words: tuple[str, ...]) -> bool:
    """Whether all words of the entry's name or of one of its aliases occur in the name."""
    there = set(name_words)
    joined = "".join(name_words)
    for alias in (entry.name, *entry.aliases):
        alias_words = words(alias)
        if there.issuperset(alias_words) or joined == "".join(alias_words):
            return True
    return False

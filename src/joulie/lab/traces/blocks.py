"""Other traces like one that was recorded: a block bootstrap of its arrivals.

A file is one sample of what a cluster gets. To say how far a result depends on which part of it came, each seed draws
blocks of it with replacement and puts them one after the other. Within a block everything stays as it was, so bursts
and, in blocks of a day, the time of day are kept; what lies beyond the last whole block is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from joulie.errors import InputError
from joulie.lab.model.jobs import Numbers
from joulie.lab.traces.remarks import Remarks

DAY_S, HOUR_S = 86_400.0, 3600.0
MIN_DAYS = 4  # from which on blocks are days
SHORT_BLOCKS = 10  # of a shorter file
MAX_BLOCKS = 1_000_000
_BLOCKS = 5  # a stream of chance of its own


class Drawn(NamedTuple):
    """One element a row that was drawn: which it was, when it comes now, and in which place its block stands."""

    row: NDArray[np.intp]
    time_s: Numbers
    place: NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Blocks:
    """How a seed draws from a file."""

    seed: int
    block_hours: float | Literal["auto"] = "auto"
    hours: float | None = None  # so long a trace is wanted; None, or more than there are: as long as the file

    def draw(self, time_s: Numbers, origin: str, remarks: Remarks) -> Drawn | None:
        """From times in order; None where all come at once and there is nothing to draw from."""
        since_s = time_s - time_s[:1]
        span_s = float(since_s[-1]) if len(since_s) else 0.0
        if span_s <= 0:
            return None
        block_s = self._block_s(span_s)
        count = int(span_s / block_s * (1 + 1e-12))
        if count < 2:
            raise InputError(
                f"{origin}: trace.block_hours: {block_s / HOUR_S:g} h of a file that spans {span_s / HOUR_S:.3g} h: at "
                "least two blocks are needed to draw from, or 0 to replay it"
            )
        if count > MAX_BLOCKS:
            raise InputError(
                f"{origin}: trace.block_hours: {block_s / HOUR_S:g} h makes more than {MAX_BLOCKS:,} blocks"
            )
        wanted = count if self.hours is None else min(count, ceil(self.hours * HOUR_S / block_s))
        length = f"{block_s / HOUR_S:g} h" if block_s >= HOUR_S else f"{block_s / 60:.3g} min"
        remarks.notes.append(
            f"{origin}: every seed is a block bootstrap, {wanted:,} blocks of {length} drawn with replacement from its "
            f"{count:,}"
        )
        edges = np.searchsorted(since_s, np.arange(count + 1) * block_s)
        if since_s[-1] <= count * block_s * (1 + 1e-12):
            edges[-1] = len(since_s)  # the very last comes at the end of the last block
        chosen = np.random.default_rng([self.seed, _BLOCKS]).integers(count, size=wanted)
        sizes = np.diff(edges)[chosen]
        place = np.repeat(np.arange(wanted), sizes)
        row = np.arange(len(place)) + np.repeat(edges[chosen] - (np.cumsum(sizes) - sizes), sizes)
        now_s = since_s[row] + (place - np.repeat(chosen, sizes)) * block_s
        return Drawn(row, np.maximum.accumulate(now_s), place)  # rounding must not turn time back

    def _block_s(self, span_s: float) -> float:
        if self.block_hours != "auto":
            return self.block_hours * HOUR_S
        return DAY_S if span_s >= MIN_DAYS * DAY_S else span_s / SHORT_BLOCKS

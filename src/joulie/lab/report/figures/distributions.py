"""How long jobs waited, over all seeds, without holding every job: counts in fine steps of a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from joulie.lab.model.jobs import Codes, Flags, Numbers

STEPS_PER_E = 128  # steps of 0.8 %: no quantile is off by more
MAX_VALUE = 1e9


@dataclass
class Distribution:
    """Values from 1 on; what is below counts as 1."""

    counts: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(math.ceil(math.log(MAX_VALUE) * STEPS_PER_E) + 2, dtype=np.int64)
    )
    total: float = 0.0

    def add(self, values: Numbers) -> None:
        step = np.ceil(np.log(np.clip(values, 1.0, MAX_VALUE)) * STEPS_PER_E).astype(np.int64)
        self.counts += np.bincount(step, minlength=len(self.counts))
        self.total += float(np.sum(values))

    @property
    def jobs(self) -> int:
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        return self.total / self.jobs if self.jobs else 0.0

    def quantile(self, share: float) -> float:
        """The value that this share of jobs does not pass."""
        rank = max(1, math.ceil(share * self.jobs - 1e-9))
        return math.exp(int(np.searchsorted(np.cumsum(self.counts), rank)) / STEPS_PER_E)

    def above(self) -> tuple[Numbers, Numbers]:
        """Values from 1 to the longest, and the share of jobs above each: 20 a factor e are enough for a line."""
        last = int(np.max(np.flatnonzero(self.counts), initial=0))
        used = np.unique(np.append(np.arange(0, last, STEPS_PER_E // 20), last))
        return np.exp(used / STEPS_PER_E), 1 - np.cumsum(self.counts)[used] / max(1, self.jobs)


@dataclass
class Delays:
    """Waits and slowdowns of one variant: of all jobs, and of each group of them."""

    wait_s: dict[str, Distribution] = field(default_factory=dict)
    slowdown: dict[str, Distribution] = field(default_factory=dict)

    def add(self, groups: Iterable[tuple[str, Flags]], wait_s: Numbers, slowdown: Numbers) -> None:
        for group, chosen in groups:
            if chosen.any():
                self.wait_s.setdefault(group, Distribution()).add(wait_s[chosen])
                self.slowdown.setdefault(group, Distribution()).add(slowdown[chosen])


ALL_JOBS = "all jobs"
PERFORMANCE_JOBS = "class performance"
STANDARD_JOBS = "class standard"


def groups(families: Sequence[str], family: Codes, performance: Flags) -> list[tuple[str, Flags]]:
    """All jobs, by class, by family (a place in `families`); a job belongs to several."""
    all_jobs = np.ones(len(family), dtype=np.bool_)
    by_family = [(name, family == place) for place, name in enumerate(families)]
    return [(ALL_JOBS, all_jobs), (PERFORMANCE_JOBS, performance), (STANDARD_JOBS, ~performance), *by_family]

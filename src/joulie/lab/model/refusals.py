"""What the lab refuses, and why: comparisons that would not be fair, and runs whose results would mean nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from joulie.errors import JoulieError
from joulie.lab.model.outcome import Outcome
from joulie.lab.model.setup import RunSetup

MAX_OFFERED = 1.0
# A run is computed in floating point, its bound too.
_ROUNDING = 1e-9


class LabError(JoulieError):
    """A result that is refused, or a run that failed: exit code 1, with the reason."""


def refuse_unequal(jobs_digests: Mapping[str, Mapping[int, str]]) -> None:
    """Compared runs did the same jobs on the same seeds; the first variant is the baseline."""
    baseline, *others = jobs_digests
    if not jobs_digests[baseline]:
        raise LabError(f"unequal work: there is no run of the baseline {baseline!r}")
    for name in others:
        here, there = jobs_digests[name], jobs_digests[baseline]
        if missing := sorted(here.keys() ^ there.keys()):
            side = name if missing[0] in there else baseline
            raise LabError(
                f"unequal work: {side!r} has no run of seed {missing[0]}, so there is nothing to pair it with"
            )
        for seed, digest in sorted(here.items()):
            if digest != there[seed]:
                raise LabError(
                    f"unequal work: {name!r} and {baseline!r} ran different jobs on seed {seed}; "
                    "variants must share trace and, where the trace is made for a load, cluster (put it under facets)"
                )


def refuse_unfinished(outcome: Outcome, place: str) -> None:
    """Every job has a start and an end: energy without the rest of the work would look like saving."""
    finished = np.isfinite(outcome.end_s) & np.isfinite(outcome.start_s)
    if not np.all(finished):
        left = int(np.count_nonzero(~finished))
        first = int(np.argmin(finished))
        raise LabError(
            f"{place}: unfinished queue: {left:,} of {len(finished):,} jobs did not end, "
            f"the first is {outcome.jobs.id_of(first)}; a run counts only with all of its work"
        )


def refuse_unstable(offered: Mapping[str, float], place: str) -> None:
    """Work that comes faster than all nodes together can do it: waits would measure the trace's length alone."""
    for resource, load in offered.items():
        if load > MAX_OFFERED:
            raise LabError(
                f"{place}: unstable queue: the jobs ask for {100 * load:.0f} % of what all {resource} can do uncapped "
                "while they arrive; fewer jobs, more hours or more nodes"
            )


def refuse_same_seeds(tuned: Iterable[int], reported: Iterable[int], origin: str) -> None:
    """What was chosen because it did well on a seed does well on that seed."""
    both = sorted(set(tuned) & set(reported))
    if both:
        raise LabError(
            f"{origin}: seed {both[0]} is used for tuning and for the report ({len(both)} such seeds); "
            "a setting is reported on seeds that had no part in choosing it"
        )


def refuse_other_meters(setups: Mapping[tuple[str, str], RunSetup], baseline: str, origin: str) -> None:
    """By facet and variant: means over longer times have lower peaks, which no policy has cut."""
    for (facet, variant), setup in setups.items():
        base = setups[facet, baseline]
        for key, here, there in (
            ("record_s", setup.record_s, base.record_s),
            ("plant.step_s", setup.plant.step_s, base.plant.step_s),
        ):
            if here != there:
                raise LabError(
                    f"{origin}: {variant}: {key} is {here:g} s, but {there:g} s of {baseline}: what is compared has to "
                    "be measured alike (put it under facets)"
                )


def assert_above_bound(it_energy_j: float, bound_j: float, place: str) -> None:
    """A run below its bound is a fault of the simulation, never a result."""
    if it_energy_j < bound_j * (1 - _ROUNDING):
        raise AssertionError(
            f"{place}: {it_energy_j / 3.6e6:.6f} kWh of IT energy is below the lower bound of "
            f"{bound_j / 3.6e6:.6f} kWh: the simulation or the bound is wrong; please report it"
        )

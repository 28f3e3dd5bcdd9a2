"""What has to be said beside a comparison: caps that were not held as asked, and whose cluster slowdowns go by."""

from __future__ import annotations

from collections.abc import Mapping

from joulie.lab.experiment import Experiment
from joulie.lab.store import StoredRun

Runs = Mapping[str, Mapping[int, StoredRun]]  # by variant and seed


def notes_beside(experiment: Experiment, facet: str, by_variant: Runs) -> list[str]:
    """A line each."""
    notes = [f"{name}: {line}" for name, by_seed in by_variant.items() for line in _held(by_seed)]
    other = [name for name in by_variant if experiment.case(name, facet).yardstick is not None]
    if other:
        notes.append(
            "slowdown is time over the shortest that a job can take on the baseline's nodes, also for variants with "
            f"others ({', '.join(other)})"
        )
    return notes


def asides(by_variant: Runs) -> dict[str, str]:
    """What a variant's verdict must not be read without."""
    return {name: held_beside(by_seed) for name, by_seed in by_variant.items()}


def held_beside(by_seed: Mapping[int, StoredRun]) -> str:
    """Empty where all caps were held."""
    return "; ".join(_held(by_seed))


def _held(by_seed: Mapping[int, StoredRun]) -> list[str]:
    return list(dict.fromkeys(line for run in by_seed.values() for line in run.provenance.held.splitlines()))

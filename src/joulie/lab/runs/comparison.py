"""Stored results compared: variants against the baseline, with what has to be said about each comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from joulie.errors import InputError
from joulie.lab.analysis.compare import Comparison, Entry, compare
from joulie.lab.experiment.definition import Experiment, parse_experiment
from joulie.lab.experiment.seeds import drawn, replayed, shown_seeds
from joulie.lab.model.refusals import LabError
from joulie.lab.runs.store import Index, Results, StoredRun, load_results, names
from joulie.lab.runs.sweep import planned_for_report

MAX_NAMED = 3
Runs = Mapping[str, Mapping[int, StoredRun]]  # by variant and seed


def comparisons(experiment: Experiment, folder: Path) -> tuple[Comparison, ...]:
    """One a facet; LabError where runs are missing or cannot be compared."""
    results = load_results(folder)
    if results.missing:
        shown = names(results.missing[:MAX_NAMED]) + (" and more" if len(results.missing) > MAX_NAMED else "")
        of = len(results.index.planned)
        why = next(iter(results.index.failed.items()), None)
        reason = f"; {why[0]}: {why[1]}" if why else ""
        raise LabError(f"{folder}: {len(results.missing)} of {of} runs are missing ({shown}): sweep again{reason}")
    if not _is_of(results.index, experiment):
        raise LabError(f"{folder}: {experiment.filename} was changed since these results were made: sweep again")
    if not results.runs:
        raise LabError(f"{folder}: only runs for tuning are there so far: sweep again")
    return compared(results, experiment)


def _is_of(index: Index, experiment: Experiment) -> bool:
    """Whether the results are those of the experiment, as it reads now."""
    if index.text == experiment.text:
        return True
    try:
        then = parse_experiment(index.text, index.filename, Path(experiment.folder), was_run=True)
    except InputError:
        return False
    return then.asks_for_the_same_as(experiment)


def compared(results: Results, experiment: Experiment) -> tuple[Comparison, ...]:
    """The comparisons of results that are all there."""
    about_all = [*_age_notes(experiment, results.index), *_tuning_notes(experiment, results.index.chosen)]
    return tuple(
        compare(
            {
                variant: {seed: Entry(run.measures, run.provenance.jobs_digest) for seed, run in by_seed.items()}
                for variant, by_seed in by_variant.items()
            },
            experiment.baseline,
            facet,
            [
                *about_all,
                *_remarks(by_variant.get(experiment.baseline, {}).values()),
                *notes_beside(experiment, facet, by_variant),
            ],
            replayed=replayed(experiment.case(experiment.baseline, facet).trace),
            drawn=drawn(experiment.case(experiment.baseline, facet).trace),
            asides=asides(by_variant),
        )
        for facet, by_variant in results.runs.items()
    )


def _remarks(runs: Iterable[StoredRun]) -> list[str]:
    """What reading the traces brought up: the work is the same for all variants, so the baseline's will do."""
    return list(dict.fromkeys(line.strip() for run in runs for line in run.provenance.remarks.splitlines()))


def _age_notes(experiment: Experiment, index: Index) -> list[str]:
    """What an experiment's text does not show: files and code that it names, and Joulie itself."""
    if experiment.was_run:
        return []
    then = {run.key for run in index.planned if not run.tuning}
    with suppress(InputError):  # a file is gone
        if then == {run.key for run in planned_for_report(experiment, index.chosen)}:
            return []
    return ["made by other code or from other files than are there now: joulie lab sweep brings it up to date"]


def _tuning_notes(experiment: Experiment, chosen: str) -> list[str]:
    if experiment.tune is None:
        return []
    seeds = shown_seeds(experiment.tune_seeds)
    if not chosen:
        return [f"settings were tuned on seeds {seeds}, none of which is reported here"]
    count = len(experiment.tune.among)
    return [
        f"{chosen} was the best of {count} by {experiment.tune.minimise} on seeds {seeds}, none of which is reported"
    ]


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

"""Many runs: which belong to an experiment, which are still to be done, and the best of those that tune.

What is finished stays finished: a sweep that was stopped goes on where it stood, because a run is known by the digest
of all that decides its result.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Protocol

import numpy as np

from joulie.errors import InputError
from joulie.lab.beside import asides, notes_beside
from joulie.lab.compare import Comparison, Entry, compare, over_same_time
from joulie.lab.experiment import Experiment, parse_experiment
from joulie.lab.measures import Measures
from joulie.lab.refusals import LabError
from joulie.lab.replaying import replayed
from joulie.lab.seeds import shown_seeds
from joulie.lab.store import (
    Index,
    Planned,
    Results,
    StoredRun,
    finished,
    load_results,
    names,
    read_run,
    write_index,
    write_run,
)
from joulie.lab.working import Task, Worked

MOST_NAMED = 3


class Workers(Protocol):
    """Whoever performs tasks: this process, its children, or a Dask cluster."""

    def __call__(self, tasks: Sequence[Task], watch: Watch) -> Generator[Worked, None, None]: ...


class Watch(Protocol):
    """Whoever is told how far things are."""

    def begin(self, total: int, done: int) -> None: ...
    def share(self, place: str, share: float) -> None: ...
    def end(self, place: str, failure: str) -> None: ...


def sweep(experiment: Experiment, folder: Path, workers: Workers, watch: Watch, git_commit: str = "") -> Index:
    """Do what is still to be done; failures of single runs are in the index that is returned."""
    chosen = ""
    tuning = planned_for_tuning(experiment)
    failed: dict[str, str] = {}
    if tuning:
        failed |= _do(experiment, tuning, folder, workers, watch, git_commit)
        if failed:
            return _kept(folder, Index(experiment.filename, experiment.text, tuple(tuning), "", failed))
        chosen = best(experiment, tuning, folder)
    planned = planned_for_report(experiment, chosen)
    failed |= _do(experiment, planned, folder, workers, watch, git_commit, tuning, chosen)
    return _kept(folder, Index(experiment.filename, experiment.text, (*tuning, *planned), chosen, failed))


def planned_for_tuning(experiment: Experiment) -> list[Planned]:
    """Variants that are chosen from, on the seeds for that."""
    among = experiment.tune.among if experiment.tune else []
    return [
        Planned(case.facet, case.variant, seed, case.key(seed), tuning=True)
        for case in experiment.cases
        if case.variant in among
        for seed in experiment.tune_seeds
    ]


def planned_for_report(experiment: Experiment, chosen: str = "") -> list[Planned]:
    """Variants that are compared; of those that were chosen from, the best alone, and the baseline in any case."""
    among = set(experiment.tune.among if experiment.tune else ()) - {chosen, experiment.baseline}
    return [
        Planned(case.facet, case.variant, seed, case.key(seed))
        for case in experiment.cases
        if case.variant not in among
        for seed in experiment.seeds
    ]


def best(experiment: Experiment, tuning: Sequence[Planned], folder: Path) -> str:
    """The variant with the smallest mean of the measure over all tuning seeds and facets; of equal ones the first.

    As in a comparison, energy counts until all of them are done.
    """
    assert experiment.tune is not None
    values: dict[str, list[float]] = {run.variant: [] for run in tuning}
    for where in dict.fromkeys((run.facet, run.seed) for run in tuning):
        runs = [run for run in tuning if (run.facet, run.seed) == where]
        measured = over_same_time([read_run(folder, run).measures for run in runs])
        for run, measures in zip(runs, measured, strict=True):
            values[run.variant].append(_value(measures, run, experiment.tune.minimise))
    return min(values, key=lambda variant: float(np.mean(values[variant])))


def comparisons(experiment: Experiment, folder: Path) -> tuple[Comparison, ...]:
    """One a facet; LabError where runs are missing or cannot be compared."""
    results = load_results(folder)
    if results.missing:
        shown = names(results.missing[:MOST_NAMED]) + (" and more" if len(results.missing) > MOST_NAMED else "")
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


def _do(
    experiment: Experiment,
    planned: Sequence[Planned],
    folder: Path,
    workers: Workers,
    watch: Watch,
    git_commit: str,
    before: Sequence[Planned] = (),
    chosen: str = "",
) -> dict[str, str]:
    """Perform what is not there yet; reasons of failures by place."""
    _kept(folder, Index(experiment.filename, experiment.text, (*before, *planned), chosen))
    left = [run for run in planned if not finished(folder, run)]
    watch.begin(len(planned), len(planned) - len(left))
    tasks = [Task(run, experiment.case(run.variant, run.facet), git_commit) for run in left]
    failed = {}
    with closing(workers(tasks, watch)) as results:
        for worked in results:
            place = worked.task.place
            if worked.files is None:
                failed[place] = worked.failure
            else:
                write_run(folder, worked.task.planned, worked.files)
            watch.end(place, worked.failure)
    return failed


def _kept(folder: Path, index: Index) -> Index:
    write_index(folder, index)
    return index


def _value(measures: Measures, run: Planned, measure: str) -> float:
    value = getattr(measures, measure)
    if value is None:
        raise LabError(f"tune.minimise: {run.variant} has no {measure} on seed {run.seed}")
    return float(value)

"""Many runs: which belong to an experiment, which are still to be done, and the best of those that tune.

What is finished stays finished: a sweep that was stopped goes on where it stood, because a run is known by the digest
of all that decides its result.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

import numpy as np

from joulie.lab.analysis.compare import over_same_time
from joulie.lab.analysis.measures import Measures
from joulie.lab.experiment.definition import Experiment
from joulie.lab.model.refusals import LabError
from joulie.lab.runs.store import Index, Planned, finished, read_run, write_index, write_run
from joulie.lab.runs.workers import Task, Worked


class Workers(Protocol):
    """Where tasks are performed: this process, its children, or a Dask cluster."""

    def __call__(self, tasks: Sequence[Task], watch: Watch) -> Generator[Worked, None, None]: ...


class Watch(Protocol):
    """What is told how far the runs are."""

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

"""From a folder of stored results to what a report shows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from joulie.errors import InputError
from joulie.lab.analysis.claims import broken_claims
from joulie.lab.experiment.definition import Experiment, parse_experiment
from joulie.lab.report.facts import facts, source_of
from joulie.lab.report.figures.distributions import Delays, groups
from joulie.lab.report.page import Facet, Material
from joulie.lab.runs.comparison import comparisons
from joulie.lab.runs.store import JOBS, StoredRun, load_results

FAMILY = "family"
JOB_COLUMNS = ("submit_s", "start_s", "slowdown", "performance", FAMILY)
MEDIAN_OF = "facility_kwh"

Runs = Mapping[str, Mapping[int, StoredRun]]  # by variant and seed


def material(folder: Path, seed: int | None = None, experiment: Experiment | None = None) -> Material:
    """LabError where the results cannot be compared, or are not those of the experiment; without one, of the folder's.

    `seed` is the one whose course is drawn.
    """
    results = load_results(folder)
    if experiment is None:
        experiment = parse_experiment(results.index.text, results.index.filename, folder, was_run=True)
    compared = comparisons(experiment, folder)
    if seed is not None and seed not in experiment.seeds:
        raise InputError(f"--seed {seed}: {folder} has none of it: there are {', '.join(map(str, experiment.seeds))}")
    first = results.runs[compared[0].facet][compared[0].baseline][compared[0].seeds[0]]
    facets = []
    for comparison in compared:
        by_variant = {variant.name: results.runs[comparison.facet][variant.name] for variant in comparison.variants}
        drawn = typical(by_variant[comparison.baseline]) if seed is None else seed
        facets.append(
            Facet(
                comparison,
                drawn,
                {name: by_seed[drawn].series for name, by_seed in by_variant.items()},
                {name: _delays(by_seed) for name, by_seed in by_variant.items()},
            )
        )
    file_name, again = experiment.filename, shlex.quote(folder.resolve().name or "results")
    return Material(
        name=experiment.name,
        question=experiment.question,
        claim=experiment.claim,
        checked=len(experiment.claims),
        broken=broken_claims(experiment.claims, compared),
        facets=facets,
        file_name=file_name,
        file_text=experiment.text,
        facts=facts(results, experiment),
        commands=[
            f"joulie lab sweep {shlex.quote(file_name)} --results {again}",
            f"joulie lab report {again}" + (f" --seed {seed}" if seed is not None else ""),
        ],
        source=source_of(first.provenance, experiment),
    )


def typical(by_seed: Mapping[int, StoredRun]) -> int:
    """The seed in the middle by energy: neither the best nor the worst is shown as if it were the rule."""
    ordered = sorted(by_seed, key=lambda seed: (getattr(by_seed[seed].measures, MEDIAN_OF), seed))
    return ordered[(len(ordered) - 1) // 2]


def _delays(by_seed: Mapping[int, StoredRun]) -> Delays:
    """Run by run, so that no more than one table is in memory."""
    found = Delays()
    for run in by_seed.values():
        columns, families = _job_columns(run)
        wait_s = columns["start_s"] - columns["submit_s"]
        chosen = groups(families, columns[FAMILY], columns["performance"].astype(np.bool_))
        found.add(chosen, wait_s, columns["slowdown"])
    return found


def _job_columns(run: StoredRun) -> tuple[dict[str, np.ndarray], list[str]]:
    """The few that are needed, families as codes: names of a million jobs would fill the memory."""
    import pyarrow
    import pyarrow.parquet

    path = run.folder / JOBS
    try:
        table = pyarrow.parquet.read_table(path, columns=list(JOB_COLUMNS), read_dictionary=[FAMILY])
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if missing := set(JOB_COLUMNS) - set(table.column_names):
        raise InputError(f"{path}: has no column {min(missing)}")
    coded = table.column(FAMILY).unify_dictionaries().combine_chunks()
    columns = {name: table.column(name).to_numpy() for name in JOB_COLUMNS if name != FAMILY}
    return {**columns, FAMILY: coded.indices.to_numpy()}, coded.dictionary.to_pylist()

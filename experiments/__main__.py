"""`make experiments`: run the gallery, keep its numbers, write its page, and fail where a claim does not follow."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import click

from experiments.gallery.numbers import files, kept_of, write_kept
from experiments.gallery.page import PAGE, page_with_results, what_does_not_follow
from joulie.cli.lab.shared import ProgressBars, results_folder
from joulie.lab.experiment.definition import Experiment, read_experiment
from joulie.lab.experiment.digests import git_commit
from joulie.lab.runs.comparison import comparisons
from joulie.lab.runs.store import load_results
from joulie.lab.runs.sweep import sweep
from joulie.lab.runs.workers import Children


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these; default: all")
    parser.add_argument("--short", action="store_true", help="quick forms that claim nothing and keep nothing")
    parser.add_argument("--workers", type=int, help="processes; default: one a core")
    parser.add_argument("--results", type=Path, default=Path("results"), help="where all of each run goes")
    asked = parser.parse_args(argv)
    chosen = files(tuple(asked.names))
    if unknown := set(asked.names) - {path.stem for path in chosen}:
        parser.error(f"there is no {min(unknown)}: there are {', '.join(path.stem for path in files())}")
    failed: list[str] = []
    for path in chosen:
        experiment = read_experiment(path, short=asked.short)
        folder = asked.results / results_folder(experiment, None).name
        if not _swept(experiment, folder, asked.workers, failed):
            continue
        if asked.short:
            for made in comparisons(experiment, folder):
                click.echo(f"{path.stem}: {f'{made.facet}: ' if made.facet else ''}{made.summary}")
            continue
        write_kept(path, kept_of(path, experiment, load_results(folder)))
        click.echo(f"{path.stem}: done; to look at it: joulie lab report {folder}")
        failed += what_does_not_follow(path)
    if not asked.short and chosen:
        PAGE.write_text(page_with_results(), encoding="utf-8")
    for line in failed:
        click.echo(line, err=True)
    return int(bool(failed))


def _swept(experiment: Experiment, folder: Path, workers: int | None, failed: list[str]) -> bool:
    with ProgressBars() as bars:
        index = sweep(experiment, folder, Children(workers), bars, git_commit(Path(__file__).parent))
    failed += [f"{experiment.name}: {place}: {reason}" for place, reason in sorted(index.failed.items())]
    return not index.failed


if __name__ == "__main__":
    raise SystemExit(main())

"""The gallery of experiments says what its committed numbers say, and its runs still give the same bits."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from experiments.__main__ import main
from experiments.gallery.numbers import SHORTENED, asked_for, comparisons_of, files, kept_file, read_kept, versions
from experiments.gallery.page import PAGE, page_with_results, what_does_not_follow
from joulie.errors import InputError
from joulie.lab.experiment.definition import parse_experiment, read_experiment
from joulie.lab.model.refusals import LabError
from joulie.lab.runs.store import load_results

FILES = files()
NAMES = [path.stem for path in FILES]
MIN_SEEDS = 20
every_experiment = pytest.mark.parametrize("path", FILES, ids=NAMES)


def test_every_question_of_the_issue_has_its_experiment() -> None:
    wanted = {"policies", "caps-v100", "caps-a40", "scores", "scores-mixed", "telemetry", "heat", "my_policy"}
    assert wanted <= set(NAMES)


@every_experiment
def test_an_experiment_asks_claims_and_has_seeds_enough(path: Path) -> None:
    experiment = read_experiment(path)

    assert experiment.question.endswith("?")
    assert experiment.claim
    assert experiment.claims
    assert len(experiment.seeds) >= MIN_SEEDS
    assert len(read_experiment(path, short=True).seeds) == 1


@every_experiment
def test_the_numbers_are_those_of_the_file(path: Path) -> None:
    """A change of what is run needs new results: make experiments."""
    experiment, kept = read_experiment(path), read_kept(path)

    assert kept.asked == asked_for(experiment)
    assert {(runs.facet, runs.variant) for runs in kept.runs} == {(one.facet, one.variant) for one in experiment.cases}
    assert all(tuple(runs.seeds) == experiment.seeds for runs in kept.runs)


@every_experiment
def test_what_is_claimed_follows_from_the_numbers(path: Path) -> None:
    assert what_does_not_follow(path) == []


def test_the_page_says_what_the_numbers_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page_with_results()


@every_experiment
def test_no_run_draws_less_than_its_bound(path: Path) -> None:
    for runs in read_kept(path).runs:
        assert all(above is not None and above >= 0 for above in runs.measures["over_bound_pct"])


def test_a_claim_that_numbers_do_not_bear_out_is_found(tmp_path: Path) -> None:
    """The same experiment with better news: a tenth less energy for one variant on every seed."""
    path = _copied("caps-v100", tmp_path)
    kept = read_kept(path)
    better = next(runs for runs in kept.runs if runs.variant == "gpu_cap_pct=40")
    better.measures["facility_kwh"] = [0.5 * (value or 0.0) for value in better.measures["facility_kwh"]]
    kept_file(path).write_bytes(msgspec.json.encode(kept))

    assert any("gpu_cap_pct=40: facility_kwh is claimed to be: higher" in line for line in what_does_not_follow(path))


def test_a_number_in_words_that_is_not_among_the_results_is_found(tmp_path: Path) -> None:
    path = _copied("caps-v100", tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('claim = "', 'claim = "It saves 98.7 %. '), encoding="utf-8")

    assert what_does_not_follow(path) == ["caps-v100.toml: claim: 98.7 is not among the results"]


def test_numbers_of_unequal_work_are_refused(tmp_path: Path) -> None:
    kept = read_kept(_copied("caps-v100", tmp_path))
    kept.runs[-1].work[0] = "other jobs"

    with pytest.raises(LabError, match="ran different jobs on seed 1"):
        comparisons_of(kept, "gpu_cap_pct=100")


def test_results_can_be_looked_at_when_what_the_experiment_names_is_gone(tmp_path: Path) -> None:
    path = _copied("caps-v100", tmp_path)
    text = path.read_text(encoding="utf-8")
    elsewhere = tmp_path / "results"

    assert parse_experiment(text, path.name, elsewhere, was_run=True).seeds == read_experiment(path).seeds
    with pytest.raises(
        InputError, match=r"^caps-v100\.toml: gpu_cap_pct=100: HARDWARE_CATALOG_PATH: .*boards\.toml: cannot"
    ):
        parse_experiment(text, path.name, elsewhere)


def test_another_catalogue_is_another_run(tmp_path: Path) -> None:
    path = _copied("caps-v100", tmp_path)
    before = read_experiment(path).cases[0].key(1)
    boards = path.parent / "boards.toml"
    boards.write_text(boards.read_text(encoding="utf-8").replace("min_w = 100", "min_w = 150"), encoding="utf-8")
    after = read_experiment(path)

    assert after.cases[0].key(1) != before
    assert asked_for(after) != read_kept(path).asked


@pytest.mark.slow
def test_the_short_forms_run_with_one_command_and_still_give_the_committed_bits(tmp_path: Path) -> None:
    assert main(["--short", "--results", str(tmp_path)]) == 0

    changed = []
    for path in FILES:
        kept, results = read_kept(path), load_results(tmp_path / f"{path.stem}-short")
        assert len(kept.short) == len(results.index.planned)
        for run in kept.short:
            ((_, now),) = results.runs[run.facet][run.variant].items()
            assert now.measures.facility_kwh == pytest.approx(run.facility_kwh, rel=0.05)  # on any machine
            if now.provenance.digest[:SHORTENED] != run.digest and versions(now.provenance) == kept.versions:
                changed.append(f"{path.stem}: {run.facet} {run.variant}")
    assert not changed, "the lab computes something else than when these numbers were kept: make experiments"


def _copied(name: str, folder: Path) -> Path:
    (original,) = files((name,))
    shutil.copytree(original.parent, folder / "gallery", ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "gallery" / original.name

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from joulie.cli.lab import shared
from joulie.lab.experiment.definition import parse_experiment
from joulie.lab.runs.perform import Finished, files_of
from joulie.lab.runs.store import Index, Planned, write_index, write_run
from tests.lab.made import HOUR_S, jobs_table, made_measures, made_outcome, made_provenance
from tests.lab.small import SMALL, small_file
from tests.support.cli_runner import joulie

EXPERIMENT = """
question = "Does eco save?"
seeds = "1-8"
[variants]
none = {}
eco = { policy.name = "static_partition" }
"""


def stored(folder: Path, text: str = EXPERIMENT, *, eco_kwh: float = 95.0, unequal: bool = False) -> Path:
    """Results as a sweep would leave them, of runs that never were."""
    experiment = parse_experiment(text, "eco.toml", folder)
    rng = np.random.default_rng(0)
    jobs = jobs_table([0], [1])
    planned = []
    for case in experiment.cases:
        for seed in experiment.seeds:
            plan = Planned("", case.variant, seed, f"{case.variant}{seed}".ljust(64, "0"))
            mean = eco_kwh if case.variant == "eco" else 100.0
            provenance = made_provenance(
                case.variant, seed, plan.key, jobs_digest=f"{case.variant if unequal else ''}{seed}"
            )
            measures = made_measures(mean + rng.normal(0, 0.5), 2.0 + rng.normal(0, 0.01))
            outcome = made_outcome(jobs, [0], [HOUR_S])
            write_run(folder, plan, files_of(Finished(outcome, measures, provenance, jobs.reference_s)))
            planned.append(plan)
    write_index(folder, Index("eco.toml", text, tuple(planned)))
    return folder


def test_help_of_the_lab_imports_nothing_heavy() -> None:
    asked = "import sys; from joulie.cli.main import run; code = run(sys.argv[1:]); "
    told = "print(code, sorted({'numpy', 'numba', 'scipy', 'pyarrow', 'distributed', 'rich'} & set(sys.modules)))"
    for arguments in (["--help"], ["lab", "--help"], ["lab", "sweep", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", asked + told, *arguments], capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == "0 []", arguments


@pytest.mark.parametrize("command", ["run", "sweep", "compare"])
def test_each_command_teaches_with_examples(command: str) -> None:
    done = joulie("lab", command, "--help")

    assert done.code == 0
    assert f"joulie lab {command} " in done.out.split("Examples:")[1]


def test_without_the_extra_one_line_says_what_to_install(tmp_path: Path) -> None:
    file = small_file(tmp_path)
    with patch.object(shared, "find_spec", lambda name: None if name == "numba" else object()):
        for command in ("run", "sweep", "compare"):
            done = joulie("lab", command, str(file))
            assert done.code == 1
            assert done.complaint == "joulie lab needs numba: pip install 'joulie[lab]'"


def test_compare_says_what_is_saved_and_whether_it_is_more_than_chance(tmp_path: Path) -> None:
    done = joulie("lab", "compare", str(stored(tmp_path / "eco")))

    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "Does eco save?"
    assert lines[2].startswith("Against none, eco saves ")
    assert any(line.startswith("Facility energy, kWh") for line in lines)
    assert "●" in done.out
    assert lines[-1] == "Baseline: none. Seeds: 1–8."


def test_compare_for_programs_is_one_document(tmp_path: Path) -> None:
    (made,) = joulie("lab", "compare", str(stored(tmp_path / "eco")), "-o", "json").document

    assert made["baseline"] == "none"
    assert made["seeds"] == list(range(1, 9))
    assert made["variants"][1]["differences"]["facility_kwh"]["significant"] is True
    assert made["variants"][1]["differences"]["facility_kwh"]["relative_pct"] == pytest.approx(-5, abs=1)


def test_compare_finds_results_by_the_experiment_s_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored(tmp_path / "results" / "eco")
    file = small_file(tmp_path, EXPERIMENT, "eco.toml")
    monkeypatch.chdir(tmp_path)

    assert "Against none, eco saves " in joulie("lab", "compare", str(file)).out


def test_results_of_a_file_that_was_changed_since_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(tmp_path / "results" / "eco")
    file = small_file(tmp_path, EXPERIMENT.replace("none = {}", "nothing = {}"), "eco.toml")
    monkeypatch.chdir(tmp_path)

    done = joulie("lab", "compare", str(file))

    assert done.code == 1
    assert done.complaint == "results/eco: eco.toml was changed since these results were made: sweep again"


def test_unequal_work_is_refused_not_printed(tmp_path: Path) -> None:
    done = joulie("lab", "compare", str(stored(tmp_path / "eco", unequal=True)))

    assert done.code == 1
    assert done.complaint.startswith("unequal work: 'eco' and 'none' ran different jobs on seed 1; ")


def test_a_claim_that_does_not_follow_ends_with_exit_code_1(tmp_path: Path) -> None:
    text = "claims = [{ variant = 'eco', is = 'higher' }]\n" + EXPERIMENT

    done = joulie("lab", "compare", str(stored(tmp_path / "eco", text)))

    assert done.code == 1
    assert "a claim does not follow from the numbers: eco: facility_kwh is claimed to be: higher" in done.err


def test_a_folder_without_results_is_named(tmp_path: Path) -> None:
    done = joulie("lab", "compare", str(tmp_path))

    assert done.code == 2
    assert done.complaint == f"{tmp_path}: holds no results; joulie lab sweep writes some"


def test_a_wrong_key_is_named_with_file_and_key(tmp_path: Path) -> None:
    file = small_file(tmp_path, "policy.nmae = 'none'")

    for command in ("run", "sweep", "compare"):
        done = joulie("lab", command, str(file))
        assert done.code == 2
        assert done.complaint == f"{file}: policy: Object contains unknown field `nmae`"


def test_an_unknown_variant_or_facet_is_named(tmp_path: Path) -> None:
    file = small_file(tmp_path)

    assert (
        "there is no variant 'eco': there are full, capped"
        in joulie("lab", "run", str(file), "--variant", "eco").complaint
    )
    assert "no facet 'x'" in joulie("lab", "run", str(file), "--facet", "x").complaint


def test_tuning_on_the_seeds_of_the_report_is_refused(tmp_path: Path) -> None:
    done = joulie("lab", "sweep", str(small_file(tmp_path, "tune.seeds = [4, 9]\n" + SMALL)))

    assert done.code == 1
    assert "seed 4 is used for tuning and for the report (1 such seeds)" in done.complaint


@pytest.mark.slow
@pytest.mark.xdist_group("lab_sweep")
def test_run_shows_measures_of_every_variant_and_keeps_them_where_asked(tmp_path: Path) -> None:
    file = small_file(tmp_path)

    table = joulie("lab", "run", str(file), "--keep", str(tmp_path / "kept"), env={"HOME": str(Path.home())})
    one = joulie(
        "lab", "run", str(file), "--variant", "capped", "--seed", "3", "-o", "json", env={"HOME": str(Path.home())}
    )

    assert table.code == 0, table.err
    assert table.out.splitlines()[0].split() == ["measure", "full", "capped", "unit"]
    assert "a single seed proves nothing" in table.out
    (document,) = one.document
    assert (document["variant"], document["seed"]) == ("capped", 3)
    assert document["measures"]["facility_kwh"] > document["measures"]["bound_kwh"] > 0
    kept = joulie("lab", "compare", str(tmp_path / "kept"), "-o", "json").document
    assert kept[0]["notes"][0] == "1 of at least 5 seeds: nothing can be claimed"


@pytest.mark.slow
@pytest.mark.xdist_group("lab_sweep")
def test_a_sweep_names_what_failed_and_ends_with_exit_code_1(tmp_path: Path) -> None:
    file = small_file(tmp_path, SMALL.replace("load = 0.4", "load = 1.5"))

    done = joulie("lab", "sweep", str(file), "-r", str(tmp_path / "r"), "--workers", "1", "-o", "json")

    assert done.code == 1
    assert len(done.err.splitlines()) == 4
    assert set(done.document["failed"]) == {f"{name}, seed {seed}" for name in ("full", "capped") for seed in (3, 4)}


@pytest.mark.slow
@pytest.mark.xdist_group("lab_sweep")
def test_a_terminal_shows_how_far_the_whole_and_each_run_are_with_the_time_left(tmp_path: Path) -> None:
    file = small_file(tmp_path)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "joulie", "lab", "sweep", str(file), "-r", str(tmp_path / "r")]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=theirs, env={**os.environ, "COLUMNS": "100", "TERM": "xterm"}
    ) as process:
        os.close(theirs)
        shown = b""
        while part := _read(ours):
            shown += part
    os.close(ours)

    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert process.returncode == 0, text
    assert re.search(r"all runs .* \d/4 +\d+ % \d:\d\d:\d\d", text)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other end is closed
        return b""

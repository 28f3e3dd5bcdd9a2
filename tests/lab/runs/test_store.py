from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import joulie
from joulie.errors import InputError
from joulie.lab.experiment.digests import code_files, jobs_digest, key_of, outcome_digest
from joulie.lab.model.setup import RunSetup, TraceSetup, WeatherSetup
from joulie.lab.runs.perform import Finished, files_of
from joulie.lab.runs.store import (
    INDEX,
    RUNS,
    Index,
    Planned,
    finished,
    load_results,
    write_index,
    write_run,
)
from joulie.lab.traces.formats.philly import RUNTIMES
from tests.lab.made import HOUR_S, jobs_table, made_measures, made_outcome, made_provenance

JOBS = jobs_table([0, 60], [1, 2], performance=(1,))
OUTCOME = made_outcome(JOBS, [0, 60], [HOUR_S, 3 * HOUR_S])
PLANNED = Planned("", "eco / 70 %", 7, "abcdef0123456789" * 4)


def a_run(variant: str = "eco / 70 %", seed: int = 7) -> Finished:
    provenance = made_provenance(
        variant,
        seed,
        PLANNED.key,
        digest=outcome_digest(OUTCOME),
        jobs_digest=jobs_digest(JOBS),
        remarks="one\ntwo",
    )
    return Finished(OUTCOME, made_measures(), provenance, JOBS.reference_s)


def stored(folder: Path) -> None:
    write_run(folder, PLANNED, files_of(a_run()))
    write_index(folder, Index("caps.toml", "seeds = [7]", (PLANNED,)))


def test_what_is_stored_is_read_back_exactly(tmp_path: Path) -> None:
    stored(tmp_path)

    run = load_results(tmp_path).runs[""]["eco / 70 %"][7]

    assert run.measures == made_measures()
    assert run.provenance == a_run().provenance
    assert run.jobs["start_s"].tolist() == [0.0, 60.0]
    assert run.jobs["family"].tolist() == ["cpu_analytics", "cpu_analytics"]
    assert run.jobs["performance"].tolist() == [False, True]
    assert run.jobs["node"].tolist() == ["node-00000", "node-00000"]
    assert run.jobs["slowdown"] == pytest.approx([1.0, (3 * 3600 - 60) / 7200])
    assert run.series["it_w"].tolist() == OUTCOME.series["it_w"].tolist()


def test_a_run_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    files = files_of(a_run())
    broken = {**files, "series.parquet": None}

    with pytest.raises(TypeError):
        write_run(tmp_path, PLANNED, broken)  # type: ignore[arg-type]

    assert not finished(tmp_path, PLANNED)
    assert list((tmp_path / RUNS).iterdir()) == []


def test_a_run_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    stored(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / RUNS).rglob("*.parquet")}

    write_run(tmp_path, PLANNED, files_of(a_run()))

    assert {path: path.stat().st_mtime_ns for path in (tmp_path / RUNS).rglob("*.parquet")} == before
    assert len(before) == 3


def test_runs_that_are_planned_and_not_there_are_missing(tmp_path: Path) -> None:
    stored(tmp_path)
    other = Planned("", "none", 7, "f" * 64)
    write_index(tmp_path, Index("caps.toml", "", (PLANNED, other)))

    results = load_results(tmp_path)

    assert results.missing == (other,)
    assert list(results.runs[""]) == ["eco / 70 %"]


def test_a_folder_without_results_or_with_broken_ones_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no results; joulie lab sweep writes some"):
        load_results(tmp_path)
    (tmp_path / INDEX).write_text("{")
    with pytest.raises(InputError, match=r"experiment\.json: cannot be read: "):
        load_results(tmp_path)
    stored(tmp_path)
    next((tmp_path / RUNS).rglob("run.parquet")).write_bytes(b"PAR")
    with pytest.raises(InputError, match=r"run\.parquet: cannot be read: "):
        load_results(tmp_path)


def test_the_result_s_digest_sees_every_bit_but_not_the_computer_s_speed() -> None:
    later = replace(OUTCOME, end_s=np.nextafter(OUTCOME.end_s, np.inf))
    slower = replace(OUTCOME, counted=replace(OUTCOME.counted, wall_s=99.0, decision_cpu_s=9.0))
    hotter = replace(OUTCOME, counted=replace(OUTCOME.counted, throttled_s=1.0))

    assert outcome_digest(slower) == outcome_digest(OUTCOME)
    assert len({outcome_digest(one) for one in (OUTCOME, later, hotter)}) == 3
    assert jobs_digest(JOBS) != jobs_digest(jobs_table([0, 60], [1, 2], performance=(0,)))


def test_the_key_of_a_run_sees_setup_work_seed_and_the_content_of_files(tmp_path: Path) -> None:
    air = tmp_path / "air.csv"
    air.write_text("time_s,outside_c\n0,10\n")
    moved = tmp_path / "moved.csv"
    moved.write_bytes(air.read_bytes())
    setup = RunSetup(weather=WeatherSetup(file=str(air)))
    key = key_of(setup, TraceSetup(), 1)

    assert key_of(RunSetup(weather=WeatherSetup(file=str(moved))), TraceSetup(), 1) == key
    assert key_of(setup, TraceSetup(), 2) != key
    assert key_of(setup, TraceSetup(hours=2.0), 1) != key
    assert key_of(RunSetup(), TraceSetup(), 1) != key
    air.write_text("time_s,outside_c\n0,11\n")
    assert key_of(setup, TraceSetup(), 1) != key
    air.unlink()
    with pytest.raises(InputError, match=r"weather\.file: .*air\.csv: cannot be read: No such file"):
        key_of(setup, TraceSetup(), 1)


def test_the_key_sees_the_file_that_a_trace_has_beside_it(tmp_path: Path) -> None:
    arrivals, run_times = tmp_path / "arrivals.csv", tmp_path / RUNTIMES
    arrivals.write_text("vc,arrival_s,gpus\na,0,1\n")
    run_times.write_text("runtime\n100\n")
    key = key_of(RunSetup(), TraceSetup(file=str(arrivals)), 1)
    assert key_of(RunSetup(), TraceSetup(file=str(arrivals)), 1) == key

    run_times.write_text("runtime\n200\n")

    assert key_of(RunSetup(), TraceSetup(file=str(arrivals)), 1) != key
    run_times.unlink()
    with pytest.raises(InputError, match=rf"^trace\.file: .*{RUNTIMES}: cannot be read: No such file"):
        key_of(RunSetup(), TraceSetup(file=str(arrivals)), 1)


def test_the_key_sees_all_of_joulie_that_results_are_computed_with() -> None:
    """Whatever the sources behind a key import is behind the key as well, but for what cannot change a result."""
    without_results = {"__init__.py", "errors.py", "cluster/files/yaml_documents.py"}  # text in, the setup out
    known = set(code_files()) | without_results
    root = Path(joulie.__file__).parent
    unseen = {
        (name, imported)
        for name, path in code_files().items()
        for imported in re.findall(r"^\s*(?:from|import) joulie\.([\w.]+)", path.read_text(), re.MULTILINE)
        for file in [imported.replace(".", "/")]
        if not {f"{file}.py", f"{file}/__init__.py"} & known and (root / file.split("/", maxsplit=1)[0]).exists()
    }
    assert unseen == set()
    assert {"sources/trend.py", "sources/facility.py", "plugins.py", "lab/simulation/engine.py"} <= known
    assert not any(name.startswith("lab/report/") for name in known)

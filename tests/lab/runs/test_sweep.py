from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from joulie.lab.model.refusals import LabError
from joulie.lab.runs import perform as performing
from joulie.lab.runs.comparison import comparisons
from joulie.lab.runs.store import RUNS, load_results, read_index
from joulie.lab.runs.sweep import sweep
from joulie.lab.runs.workers import Children, Dask, here
from tests.lab.small import SMALL, Watched, dask_cluster, digests, small_experiment, small_file

PATIENCE_S = 600.0

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("lab_sweep")]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small experiment, swept in one process; results for others to be compared with."""
    folder = tmp_path_factory.mktemp("alone")
    index = sweep(small_experiment(), folder, here, Watched())
    assert index.failed == {}
    return folder


def test_every_variant_runs_on_every_seed(alone: Path) -> None:
    assert set(digests(alone)) == {("", variant, seed) for variant in ("full", "capped") for seed in (3, 4)}
    assert len(set(digests(alone).values())) == 4


def test_results_carry_what_is_needed_to_run_them_again(alone: Path) -> None:
    run = load_results(alone).runs[""]["capped"][3]

    assert run.provenance.seed == 3
    assert '"gpu_cap_pct":60.0' in run.provenance.setup
    assert '"load":0.4' in run.provenance.trace
    assert run.provenance.numba
    assert read_index(alone).text == SMALL
    assert run.measures.jobs == len(run.jobs["start_s"]) > 0
    assert run.measures.slowdown_p50 >= 1.0
    assert run.measures.over_bound_pct is not None
    assert run.measures.over_bound_pct >= 0.0


def test_many_processes_give_the_same_bits_as_one(alone: Path, tmp_path: Path) -> None:
    watched = Watched()

    index = sweep(small_experiment(), tmp_path, Children(2), watched)

    assert index.failed == {}
    assert digests(tmp_path) == digests(alone)
    assert watched.begun == [(4, 0)]
    assert len(watched.ended) == 4


def test_a_dask_cluster_of_two_workers_gives_the_same_bits(alone: Path, tmp_path: Path) -> None:
    with dask_cluster(2) as cluster:
        index = sweep(small_experiment(), tmp_path, Dask(cluster.scheduler_address), Watched())

    assert index.failed == {}
    assert digests(tmp_path) == digests(alone)


def test_an_address_without_a_scheduler_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"--dask tcp://127\.0\.0\.1:9: no Dask scheduler answers there"):
        sweep(small_experiment(), tmp_path, Dask("tcp://127.0.0.1:9", patience_s=1.0), Watched())


def test_what_is_finished_is_not_run_again(alone: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in alone.rglob("*.parquet")}
    watched = Watched()

    sweep(small_experiment(), alone, here, watched)

    assert watched.begun == [(4, 4)]
    assert watched.ended == []
    assert {path: path.stat().st_mtime_ns for path in alone.rglob("*.parquet")} == before


def test_another_setting_is_another_run(alone: Path, tmp_path: Path) -> None:
    changed = small_experiment(SMALL.replace("policy.cpu_cap_pct = 60", "policy.cpu_cap_pct = 70"))
    sweep(small_experiment(), tmp_path, here, Watched())
    watched = Watched()

    sweep(changed, tmp_path, here, watched)

    assert watched.begun == [(4, 2)], "the baseline is the same"
    assert digests(tmp_path)["", "full", 3] == digests(alone)["", "full", 3]
    assert digests(tmp_path)["", "capped", 3] != digests(alone)["", "capped", 3]


def test_stopped_in_the_middle_and_resumed_gives_the_same_bits(tmp_path: Path) -> None:
    text = SMALL.replace("seeds = [3, 4]", "seeds = '3-14'")
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    sweep(small_experiment(text), whole, here, Watched())
    file = small_file(tmp_path, text)
    command = [sys.executable, "-m", "joulie", "lab", "sweep", str(file), "-r", str(stopped), "--workers", "2"]

    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until_s = time.monotonic() + PATIENCE_S
    while not list(stopped.glob(f"{RUNS}/[!.]*")):
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < until_s
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 130
    assert said == "joulie: stopped; finished runs are stored, and the same command resumes with the rest\n"
    done = {path: path.stat().st_mtime_ns for path in stopped.rglob("*.parquet")}
    assert 0 < len(done) // 3 < 24, "it was stopped in the middle"
    assert not list(stopped.glob(f"{RUNS}/.unfinished-*"))
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)
    assert digests(stopped) == digests(whole)
    assert len(digests(stopped)) == 24
    assert {path: path.stat().st_mtime_ns for path in done} == done


OWN = """
import sys
import numpy as np
from joulie.control.policies import Choice

class Broken:
    def rank(self, view):
        raise RuntimeError("command line: " + repr([name for name in sys.modules if name.startswith("joulie.cli")]))

class Fullest:
    def rank(self, view):
        return -view.free_cores

class AllEco:
    name = "all_eco"
    def plan(self, view):
        return {node.name: Choice("eco", "always") for node in view.nodes}

class GpusFull:
    name = "gpus_full"
    def plan(self, view):
        plan = AllEco().plan(view)
        return plan | {view.nodes[at].name: Choice("performance", "kept") for at in (0, -1)}
"""


def test_schedulers_and_policies_of_ones_own_lie_beside_the_experiment(alone: Path, tmp_path: Path) -> None:
    (tmp_path / "own_code_here.py").write_text(OWN)
    text = SMALL.replace("capped = {", 'mine = { scheduler = "own_code_here:Fullest" }\ncapped = {')
    text += 'eco = { policy.name = "own_code_here:GpusFull" }\n'

    index = sweep(small_experiment(text, tmp_path), tmp_path / "results", Children(2), Watched())

    assert index.failed == {}
    runs = load_results(tmp_path / "results").runs[""]
    assert runs["full"][3].provenance.digest == digests(alone)["", "full", 3]
    assert runs["mine"][3].provenance.digest != digests(alone)["", "full", 3]
    assert runs["eco"][3].series["eco_nodes"].max() == 3, "all but two of five"
    assert runs["eco"][3].measures.transitions > 0


def test_work_that_never_ends_is_refused_with_the_reason(tmp_path: Path) -> None:
    """Performance-only pods wait for ever where every node is capped."""
    (tmp_path / "own_code_eco.py").write_text(OWN)
    text = SMALL.replace("capped = {", 'eco = { policy.name = "own_code_eco:AllEco" }\ncapped = {')

    index = sweep(small_experiment(text, tmp_path), tmp_path / "results", here, Watched())

    assert sorted(index.failed) == ["eco, seed 3", "eco, seed 4"]
    reason = index.failed["eco, seed 3"]
    assert re.match(r"unfinished queue: \d+ of \d+ jobs did not end, the first is ", reason), "the place is said once"


def test_a_run_that_fails_is_named_the_others_go_on_and_children_know_no_command_line(tmp_path: Path) -> None:
    (tmp_path / "own_code_there.py").write_text(OWN)
    text = SMALL.replace("capped = {", 'broken = { scheduler = "own_code_there:Broken" }\ncapped = {')

    index = sweep(small_experiment(text, tmp_path), tmp_path / "results", Children(2), Watched())

    assert sorted(index.failed) == ["broken, seed 3", "broken, seed 4"]
    assert index.failed["broken, seed 3"].endswith("command line: []"), index.failed
    results = load_results(tmp_path / "results")
    assert set(results.runs[""]) == {"full", "capped"}
    with pytest.raises(
        LabError, match=r"2 of 6 runs are missing \(broken on seed 3, broken on seed 4\): sweep again; broken"
    ):
        comparisons(small_experiment(text), tmp_path / "results")


def test_work_that_comes_too_fast_is_refused_before_it_runs(tmp_path: Path) -> None:
    index = sweep(small_experiment(SMALL.replace("load = 0.4", "load = 1.3")), tmp_path, here, Watched())

    assert len(index.failed) == 4
    assert index.failed["full, seed 3"].startswith("unstable queue: the jobs ask for ")


def test_a_run_below_its_bound_stops_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_high(*given: Any) -> float:
        return 1e15

    monkeypatch.setattr(performing, "_bound_j", too_high)

    with pytest.raises(AssertionError, match=r"full, seed 3: .* is below the lower bound"):
        sweep(small_experiment(), tmp_path, here, Watched())


def test_unequal_work_is_refused_when_results_are_compared(tmp_path: Path) -> None:
    experiment = small_experiment(SMALL.replace("capped = {", "capped = { trace.hours = 2, "))
    sweep(experiment, tmp_path, here, Watched())

    with pytest.raises(LabError, match="unequal work: 'capped' and 'full' ran different jobs on seed 3"):
        comparisons(experiment, tmp_path)


def test_the_best_of_several_is_chosen_on_seeds_that_are_not_reported(tmp_path: Path) -> None:
    text = SMALL.replace("capped = {", "lower = { policy.gpu_cap_pct = 50, policy.cpu_cap_pct = 50 }\ncapped = {")
    experiment = small_experiment("tune = { seeds = [91, 92], among = ['lower', 'capped'] }\n" + text)

    index = sweep(experiment, tmp_path, here, Watched())

    results = load_results(tmp_path)
    means = {
        variant: sum(run.measures.facility_kwh for run in by_seed.values())
        for variant, by_seed in results.tuning[""].items()
    }
    assert index.chosen == min(means, key=means.__getitem__)
    assert set(results.runs[""]) == {"full", index.chosen}
    (made,) = comparisons(experiment, tmp_path)
    assert made.seeds == (3, 4)
    assert f"{index.chosen} was the best of 2 by facility_kwh on seeds 91–92" in made.notes[0]


def test_who_tunes_counts_energy_until_all_are_done(tmp_path: Path) -> None:
    """By what it draws until its own end, the one that is done first would be the best."""
    text = """
seeds = [91]
tune = { seeds = "1-3", among = ["full", "capped"] }
[trace]
hours = 1
load = 0.4
gpu_share = 1
duration_scale = 0.2
[cluster]
nodes = [{ count = 4, gpu = "H100 SXM", gpus = 8 }]
[variants]
full = {}
capped = { policy = { name = "uniform", gpu_cap_pct = 50 } }
"""

    index = sweep(small_experiment(text), tmp_path, here, Watched())

    tuned = {name: list(by_seed.values()) for name, by_seed in load_results(tmp_path).tuning[""].items()}
    own = {name: sum(run.measures.facility_kwh for run in runs) for name, runs in tuned.items()}
    assert own["full"] < own["capped"]
    assert index.chosen == "capped"


def test_half_a_result_is_computed_anew(tmp_path: Path) -> None:
    sweep(small_experiment(), tmp_path, here, Watched())
    next((tmp_path / "runs").glob("full.*/run.parquet")).unlink()

    sweep(small_experiment(), tmp_path, here, Watched())

    assert comparisons(small_experiment(), tmp_path)


def test_results_of_other_code_or_files_are_told_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "air.csv").write_text("time_s,outside_c\n0,10\n")
    experiment = small_experiment("weather.file = 'air.csv'\n" + SMALL, tmp_path)
    sweep(experiment, tmp_path / "out", here, Watched())
    said = "made by other code or from other files than are there now"

    assert not any(said in note for note in comparisons(experiment, tmp_path / "out")[0].notes)
    (tmp_path / "air.csv").write_text("time_s,outside_c\n0,35\n")
    assert said in comparisons(experiment, tmp_path / "out")[0].notes[0]
    (tmp_path / "air.csv").unlink()
    assert said in comparisons(experiment, tmp_path / "out")[0].notes[0]

"""User code: what a run's key names is what is run, wherever and after whatever."""

from __future__ import annotations

import os
import py_compile
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from joulie.errors import PluginError
from joulie.lab.experiment.definition import Case, parse_experiment
from joulie.lab.model.setup import PolicySetup, RunSetup
from joulie.lab.runs.perform import perform
from joulie.lab.runs.processes import isolated
from joulie.lab.runs.store import load_results
from joulie.lab.runs.sweep import sweep
from joulie.lab.runs.workers import Dask, here
from joulie.lab.simulation.user_code import given, given_policy
from joulie.lab.simulation.user_sources import own_modules
from tests.lab.simulation.own_calls import capped, capped_and_dice, scheduler
from tests.lab.small import SMALL, Watched, dask_cluster, digests, small_experiment
from tests.support.cli_runner import joulie

POLICY = """
from joulie.control.policies import Choice
import beside_it

class Own:
    name = "own"
    def plan(self, view):
        from package_beside.inner import REST
        return {
            node.name: Choice("eco" if place % 5 in beside_it.CAPPED else REST, "x")
            for place, node in enumerate(view.nodes)
        }

own = Own()
"""
TEXT = SMALL.split("[variants]", maxsplit=1)[0].replace('"uniform"', '"a_policy:Own"').replace('baseline = "full"', "")


def written(folder: Path, capped: str = "(1,)") -> Path:
    (folder / "package_beside").mkdir(parents=True, exist_ok=True)
    (folder / "a_policy.py").write_text(POLICY)
    (folder / "beside_it.py").write_text(f"CAPPED = {capped}\n")
    (folder / "package_beside" / "inner.py").write_text("from .deeper import REST\n")
    (folder / "package_beside" / "deeper.py").write_text("REST = 'performance'\n")
    return folder


def case_of(folder: Path, name: str = "a_policy:Own") -> Case:
    return parse_experiment(f"policy.name = {name!r}", "a.toml", folder).cases[0]


def capped_of(folder: Path) -> Any:
    return isolated(case_of(folder).own, capped, "a_policy:Own")


def test_everything_that_it_imports_from_beside_it_is_in_the_key(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "another.py").write_text("x = 1\n")
    names = {"a_policy", "beside_it", "package_beside", "package_beside.inner", "package_beside.deeper"}
    assert set(case_of(tmp_path).own) == names
    key = case_of(tmp_path).key(1)

    (tmp_path / "another.py").write_text("x = 2\n")
    assert case_of(tmp_path).key(1) == key, "nothing imports it"
    for edited in ("a_policy.py", "beside_it.py", "package_beside/inner.py", "package_beside/deeper.py"):
        before = (tmp_path / edited).read_text()
        (tmp_path / edited).write_text(f"{before}# edited\n")
        assert case_of(tmp_path).key(1) != key, edited
        (tmp_path / edited).write_text(before)
    assert case_of(tmp_path).key(1) == key
    assert case_of(written(tmp_path / "moved")).key(1) == key, "a folder can be moved"


def test_what_is_imported_already_or_cached_beside_it_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = written(tmp_path / "one"), written(tmp_path / "two", "(3,)")
    monkeypatch.syspath_prepend(str(one))
    mine = import_module("beside_it")
    py_compile.compile(str(one / "beside_it.py"))
    try:
        assert capped_of(one) == (1,)
        assert capped_of(two) == (3,)
        times = (one / "beside_it.py").stat()
        (one / "beside_it.py").write_text("CAPPED = (2,)\n")
        os.utime(one / "beside_it.py", ns=(times.st_atime_ns, times.st_mtime_ns))
        assert capped_of(one) == (2,)
        assert sys.modules["beside_it"] is mine, "afterwards all is as it was"
        assert "a_policy" not in sys.modules
    finally:
        del sys.modules["beside_it"]


def test_the_code_is_that_of_when_the_experiment_was_read(tmp_path: Path) -> None:
    case = case_of(written(tmp_path))
    for file in (tmp_path / "a_policy.py", tmp_path / "beside_it.py"):
        file.unlink()

    assert isolated(case.own, capped, "a_policy:Own") == (1,)


def test_objects_modules_and_dice_are_new_in_every_run(tmp_path: Path) -> None:
    case, before = case_of(written(tmp_path)), random.getstate()
    first = isolated(case.own, capped_and_dice, "a_policy:own")
    second = isolated(case.own, capped_and_dice, "a_policy:own")
    assert first == second
    assert first[0] == (1,)
    assert random.getstate() == before
    assert "beside_it" not in sys.modules


def test_runs_in_several_threads_change_nothing_about_each_other(tmp_path: Path) -> None:
    cases = [case_of(written(tmp_path / name, f"({name},)")) for name in "123"]
    with ThreadPoolExecutor() as threads:
        found = threads.map(lambda case: isolated(case.own, capped_and_dice, "a_policy:own"), cases)
        seen, dice = zip(*found, strict=True)
    assert seen == ((1,), (2,), (3,))
    assert len(set(dice)) == 1


def test_a_name_of_pythons_own_is_told_from_ones_own(tmp_path: Path) -> None:
    (tmp_path / "profile.py").write_text("P = 1\n")

    with pytest.raises(PluginError, match=r"; profile is a module of Python's own: call yours otherwise$"):
        given("policy", "profile:P", "plan")


def test_packages_in_any_folder_are_neighbours_and_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "lib"
    (folder / "other_one").mkdir(parents=True)
    (folder / "other_one" / "__init__.py").write_text("")
    (folder / "other_one-1.0.dist-info").mkdir()
    (folder / "lone_policy.py").write_text("import other_one\n")
    monkeypatch.syspath_prepend(str(folder))

    found = own_modules(RunSetup(policy=PolicySetup("lone_policy:P")), tmp_path)

    assert set(found) == {"lone_policy"}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("__import__('beside_it')", r"beside_it\.py: its changes would go unnoticed: .* as in: import beside_it"),
        ("import importlib; importlib.import_module('beside_it')", r"beside_it\.py: its changes would go unnoticed"),
    ],
)
def test_a_module_that_the_key_does_not_see_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, said: str
) -> None:
    written(tmp_path)
    (tmp_path / "sly.py").write_text(f"{source}\nclass Sly:\n    def rank(self, view): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    own = own_modules(RunSetup(scheduler="sly:Sly"), tmp_path)

    with pytest.raises(PluginError, match=said):
        isolated(own, scheduler, "sly:Sly")

    assert "beside_it" not in sys.modules


def test_a_module_that_is_nowhere_is_named(tmp_path: Path) -> None:
    said = (
        r"^policy nowhere:P cannot be loaded: there is no nowhere\.py beside the experiment, nor is nowhere installed"
    )
    assert case_of(tmp_path, "nowhere:P").own == {}
    with pytest.raises(PluginError, match=said):
        given_policy("nowhere:P")


def test_code_that_is_installed_counts_with_its_package_and_not_with_its_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "site-packages"
    info = place / "night_shift-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: night-shift\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[joulie.policies]\nnight_shift = night_shift.policy:policy\n")
    (place / "neighbour.py").write_text("x = 1\n")
    (place / "night_shift").mkdir()
    (place / "night_shift" / "__init__.py").write_text("")
    (place / "night_shift" / "policy.py").write_text("import neighbour\nfrom . import hours\nclass policy: ...\n")
    (place / "night_shift" / "hours.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(place))

    assert set(case_of(tmp_path, "night_shift").own) == {"night_shift", "night_shift.policy", "night_shift.hours"}
    assert own_modules(RunSetup(policy=PolicySetup("queue_aware_v1")), tmp_path) == {}, "Joulie's own"


LEAVES_TRACES = """
import random
from joulie.control.policies import Choice

asked = 0

class Counts:
    name = "counts"
    times = 0

    def __init__(self):
        self.times = 0

    def plan(self, view):
        global asked
        asked += 1
        self.times += 1
        Counts.times += 1
        turn = asked + self.times + Counts.times + random.randrange(3)
        return {
            node.name: Choice("eco" if turn // 20 % 2 and place else "performance", "x")
            for place, node in enumerate(view.nodes)
        }

kept = Counts()
"""


@pytest.mark.slow
@pytest.mark.xdist_group("lab_sweep")
@pytest.mark.parametrize("name", ["leaves_traces:kept", "leaves_traces:Counts"])
def test_no_run_sees_what_an_earlier_one_left_behind(tmp_path: Path, name: str) -> None:
    (tmp_path / "leaves_traces.py").write_text(LEAVES_TRACES)
    case = small_experiment(TEXT.replace("a_policy:Own", name), tmp_path).cases[0]
    runs = [perform(case, seed) for seed in (4, 3, 4)]

    assert runs[0].measures.transitions > 0
    assert runs[0].provenance.digest == runs[2].provenance.digest != runs[1].provenance.digest


@pytest.mark.slow
@pytest.mark.xdist_group("lab_sweep")
def test_a_file_that_is_edited_during_a_sweep_is_noticed(tmp_path: Path) -> None:
    air = tmp_path / "air.csv"
    air.write_text("time_s,outside_c\n0,10\n")
    experiment = small_experiment(f"weather.file = 'air.csv'\n{SMALL}", tmp_path)

    class Edits(Watched):
        def end(self, place: str, failure: str) -> None:
            super().end(place, failure)
            air.write_text("time_s,outside_c\n0,30\n")

    index = sweep(experiment, tmp_path / "r", here, Edits())

    assert len(index.failed) == 3
    assert set(index.failed.values()) == {
        "a file that it reads was changed since the sweep began, or is another one there: sweep again"
    }


@pytest.mark.slow
@pytest.mark.xdist_group("lab_sweep")
def test_dask_runs_the_code_that_the_key_names(tmp_path: Path) -> None:
    """Edited between two sweeps, and of the same name in another folder; workers have threads, and live on."""
    one, two = written(tmp_path / "one"), written(tmp_path / "two", "(3, 4)")
    results = [tmp_path / "first", tmp_path / "edited", tmp_path / "other"]
    experiments = []
    with dask_cluster(2, threads=2) as cluster:
        for folder, result in zip((one, one, two), results, strict=True):
            experiments.append(small_experiment(TEXT, folder))
            assert sweep(experiments[-1], result, Dask(cluster.scheduler_address), Watched()).failed == {}
            (one / "beside_it.py").write_text("CAPPED = (2,)\n")  # no longer and no shorter than before

    for experiment, result in zip(experiments, results, strict=True):
        sweep(experiment, tmp_path / "here" / result.name, here, Watched())
        assert digests(result) == digests(tmp_path / "here" / result.name)
    assert len({digest for result in results for digest in digests(result).values()}) == 6
    keys = {run.key for result in results for run in load_results(result).index.planned}
    assert len(keys) == 6


def test_a_run_says_of_which_variant_a_policy_failed(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(
        "class P:\n    name = 'p'\n    def plan(self, view):\n        raise ValueError('oops')\n"
    )
    (tmp_path / "a.toml").write_text(
        "[variants]\nfine = {}\nmine = { policy.name = 'failing:P' }\n[trace]\nhours = 1\n"
    )

    done = joulie("lab", "run", str(tmp_path / "a.toml"), "--variant", "mine")

    assert done.code == 1
    assert done.complaint.endswith("a.toml: mine: policy p failed: ValueError: oops")

"""What would look fair and is not: other yardsticks, one trace as many, caps that were not held, another file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from joulie.catalogue.lookup import Catalogue
from joulie.lab.analysis.capacity import kinds, loads
from joulie.lab.analysis.compare import Entry, compare
from joulie.lab.analysis.measures import KNOWN
from joulie.lab.analysis.trace_summary import summarise
from joulie.lab.experiment.definition import Experiment, parse_experiment
from joulie.lab.experiment.digests import key_of
from joulie.lab.model.jobs import JobTable
from joulie.lab.model.refusals import LabError, refuse_unstable
from joulie.lab.model.setup import ClusterSetup, NodeGroup, PolicySetup, RunSetup
from joulie.lab.report.drawing.style import variant_styles
from joulie.lab.report.figures.against_baseline import distance, pareto
from joulie.lab.report.page import page
from joulie.lab.report.reading import material
from joulie.lab.runs.comparison import comparisons
from joulie.lab.runs.perform import perform
from joulie.lab.runs.store import load_results
from joulie.lab.runs.sweep import sweep
from joulie.lab.runs.workers import here
from joulie.lab.simulation.unheld_caps import not_held
from tests.lab.made import HOUR_S, jobs_table, made_measures
from tests.lab.report.report_results import POLICIES, store
from tests.lab.small import Watched
from tests.support.cli_runner import joulie

H100, L40S = '[{ count = 1, gpu = "H100 SXM", gpus = 8 }]', '[{ count = 1, gpu = "L40S", gpus = 4 }]'


def read(text: str, folder: Path) -> Experiment:
    return parse_experiment(text, "fair.toml", folder)


def boards_trace(folder: Path, gpus: int = 1) -> None:
    jobs = [
        {
            "type": "job",
            "jobId": f"j{number}",
            "submitTimeOffsetSec": 900 * number,
            "podTemplate": {"requests": {"cpu": "4", "nvidia.com/gpu": str(gpus)}},
            "work": {"gpuUnits": 300 * gpus},
        }
        for number in range(5)
    ]
    (folder / "boards.jsonl").write_text("".join(json.dumps(job) + "\n" for job in jobs))


def other_boards(folder: Path, baseline: str, variant: str) -> Experiment:
    text = "seeds = 1\ntrace.file = 'boards.jsonl'\n[variants]\n"
    return read(f"{text}base = {{ cluster.nodes = {baseline} }}\nother = {{ cluster.nodes = {variant} }}\n", folder)


# One yardstick


def test_slower_boards_do_not_hide_behind_a_yardstick_of_their_own(tmp_path: Path) -> None:
    boards_trace(tmp_path)
    base, other = (perform(case, 1) for case in other_boards(tmp_path, H100, L40S).cases)
    spent = [run.outcome.end_s - run.outcome.jobs.submit_s for run in (base, other)]

    assert base.measures.slowdown_p99 == pytest.approx(1.0)
    assert other.measures.slowdown_p99 == pytest.approx(float(np.max(spent[1] / spent[0])))
    assert other.measures.slowdown_p99 > 2
    assert (base.measures.late_jobs, other.measures.late_jobs) == (0, 5)


def test_a_run_is_known_by_its_yardstick_and_otherwise_as_ever(tmp_path: Path) -> None:
    boards_trace(tmp_path)
    base, other = other_boards(tmp_path, H100, L40S).cases
    alone = other_boards(tmp_path, L40S, H100).cases[0]

    assert base.key(1) == key_of(base.setup, base.trace, 1)
    assert (alone.setup, alone.yardstick) == (other.setup, None)
    assert other.key(1) != alone.key(1), "kept measures must not be taken for those of another comparison"


def test_variants_with_the_baseline_s_nodes_have_no_other_yardstick(tmp_path: Path) -> None:
    experiment = read("[variants]\na = {}\nb = { plant.sleep = true, policy.name = 'uniform' }\n", tmp_path)

    assert [case.yardstick for case in experiment.cases] == [None, None]


def test_a_job_that_the_baseline_s_nodes_cannot_hold_has_no_slowdown_to_compare(tmp_path: Path) -> None:
    boards_trace(tmp_path, gpus=8)

    with pytest.raises(LabError, match="other, seed 1: job j0 fits nowhere on the baseline's cluster"):
        perform(other_boards(tmp_path, L40S, H100).cases[1], 1)


# One trace is one trace


SWF = "seeds = 5\ntrace.file = 'a.swf'\n[cluster]\nnodes = [{ count = 2 }]\n[variants]\nmost = { scheduler = 'most' }\n"


def swf_trace(folder: Path) -> None:
    rest = "-1 -1 -1 -1 -1 1 1 1 1 1 1 -1 -1"
    lines = (f"{number} {300 * number} 0 {400 + 90 * number} 64 {rest}" for number in range(1, 9))
    (folder / "a.swf").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("block_hours", "on", "of", "told"),
    [
        ("0", "a.swf alone: ", "all of", "every seed replays a.swf"),
        ("'auto'", "block bootstraps of a.swf alone: ", "each a block bootstrap of", "every seed is a block bootstrap"),
    ],
)
def test_seeds_of_one_file_are_not_taken_for_many_traces(
    tmp_path: Path, block_hours: str, on: str, of: str, told: str
) -> None:
    swf_trace(tmp_path)
    drawn = f"trace.block_hours = {block_hours}\n{SWF}"
    experiment = read(drawn + "capped = { policy = { name = 'uniform', cpu_cap_pct = 60 } }\n", tmp_path)
    sweep(experiment, tmp_path / "out", here, Watched())

    (made,) = comparisons(experiment, tmp_path / "out")
    runs = load_results(tmp_path / "out").runs[""]["most"].values()

    assert len({run.provenance.jobs_digest for run in runs}) > 1, "classes are drawn, if nothing else"
    assert made.summary.startswith(f"On {on}")
    assert f"5 paired seeds, {of} this one trace)" in made.summary
    (note,) = [note for note in made.notes if note.startswith(told)]
    assert note.endswith("what is found holds for this trace, and nothing is said of others")
    assert f"5 seeds, 1 to 5, {of} a.swf alone" in page(material(tmp_path / "out"))


def test_several_seeds_of_a_file_are_drawn_from_it_and_one_seed_replays_it(tmp_path: Path) -> None:
    swf_trace(tmp_path)
    several, one, made = (
        read(text, tmp_path).cases[0].trace for text in (SWF, SWF.replace("seeds = 5", "seeds = 1"), "seeds = 5")
    )

    assert (several.block_hours, one.block_hours, made.block_hours) == ("auto", 0, 0)


def test_every_sentence_about_one_trace_says_so() -> None:
    def runs(kwh: float) -> dict[int, Entry]:
        return {seed: Entry(made_measures(kwh + seed / 100), f"drawn {seed}") for seed in range(6)}

    for kwh in (90, 100, 110):
        for drawn, on in ((False, "On a.swf alone: "), (True, "On block bootstraps of a.swf alone: ")):
            every = {"none": runs(100), "a": runs(kwh), "b": runs(kwh)}
            few = {name: dict(list(by_seed.items())[:3]) for name, by_seed in every.items()}
            for several in (every, few, {"none": runs(100)}):
                made = compare(several, "none", replayed="a.swf", drawn=drawn)
                assert all(one.verdict.startswith(on) for one in made.variants[1:])
                assert made.summary.startswith(on)


@pytest.mark.parametrize("name", ["a.swf", "a.jsonl", "azure.csv"])
def test_tuning_on_the_jobs_that_are_reported_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n")
    text = f"seeds = '101-106'\ntrace.file = '{name}'\ntune = {{ seeds = '1-5', among = ['b'] }}\n"
    text += "[variants]\na = {}\nb = {}\n"

    with pytest.raises(
        LabError, match=rf"^fair\.toml: tune: every seed comes from {name}, so a setting would be reported"
    ):
        read(text, tmp_path)


def test_tuning_where_seeds_draw_the_sizes_of_jobs_is_taken(tmp_path: Path) -> None:
    (tmp_path / "philly.csv").write_text("vc,arrival_s,gpus\na,0,1\n")

    assert read("seeds = '6-9'\ntrace.file = 'philly.csv'\ntune.seeds = '1-5'\n", tmp_path).tune_seeds[0] == 1


# Caps that were not held


CLUSTER = ClusterSetup(nodes=[NodeGroup(2), NodeGroup(1, gpu="H100 SXM", gpus=8)])


def test_a_cap_below_what_hardware_can_hold_is_told_with_what_was_held() -> None:
    def said(**policy: float) -> list[str]:
        return not_held(RunSetup(CLUSTER, policy=PolicySetup("uniform", **policy)), Catalogue())

    assert said(gpu_cap_pct=50, cpu_cap_pct=60) == []
    assert said(gpu_cap_pct=10) == ["its GPU cap of 10 % was held at 40 %, the least of H100 SXM"]
    (line,) = said(cpu_cap_pct=5)
    assert line.startswith("its CPU cap of 5 % was held at 36.7")
    assert line.endswith(" %, the least of EPYC 9654")


def test_caps_that_a_policy_s_settings_ask_for_are_told_by_profile() -> None:
    setup = RunSetup(CLUSTER, policy=PolicySetup("static_partition"), settings={"GPU_ECO_CAP_PCT_OF_MAX": 20})

    assert not_held(setup, Catalogue()) == ["its eco GPU cap of 20 % was held at 40 %, the least of H100 SXM"]
    assert not_held(RunSetup(CLUSTER, settings={"GPU_ECO_CAP_PCT_OF_MAX": 20}), Catalogue()) == [], "no node is eco"
    assert not_held(setup, Catalogue(), was_eco=False) == []


def test_what_was_held_stands_in_sentences_notes_and_report(tmp_path: Path) -> None:
    text = "seeds = 5\ntrace.file = 'boards.jsonl'\npolicy.name = 'uniform'\n[cluster]\nnodes = " + H100
    boards_trace(tmp_path)
    experiment = read(text + "\n[variants]\nfull = {}\nlow = { policy.gpu_cap_pct = 10 }\n", tmp_path)
    sweep(experiment, tmp_path / "out", here, Watched())
    held = "its GPU cap of 10 % was held at 40 %, the least of H100 SXM"

    (made,) = comparisons(experiment, tmp_path / "out")
    said = page(material(tmp_path / "out")).replace("\N{NO-BREAK SPACE}", " ")

    assert made.variants[1].verdict.endswith(f" But {held}.")
    assert f"low: {held}" in made.notes
    assert f"| low ({held}) |" in said, "also where a table is copied into a paper"
    assert f"policy.gpu_cap_pct = 10.0 ({held})" in said


# Results of another file


def test_a_report_is_refused_where_the_file_asks_for_other_runs_by_now(tmp_path: Path) -> None:
    folder = store(tmp_path / "policies")
    file = tmp_path / "policies.toml"
    asked = ("lab", "report", str(file), "--results", str(folder))

    file.write_text(POLICIES.replace("gpu_cap_pct = 60", "gpu_cap_pct = 70"))
    done = joulie(*asked)
    assert done.code == 1
    assert done.complaint == f"{folder}: policies.toml was changed since these results were made: sweep again"
    assert not (folder / "report.html").exists()

    file.write_text("# A comment\n" + POLICIES.replace("Which policy", "Which one of these"))
    assert joulie(*asked).code == 0
    assert "Which one of these saves energy" in (folder / "report.html").read_text()
    assert joulie("lab", "compare", str(file), "--results", str(folder)).code == 0


def test_another_first_variant_is_another_baseline(tmp_path: Path) -> None:
    folder = store(tmp_path / "policies")
    file = tmp_path / "policies.toml"
    file.write_text(POLICIES.replace("none = {}\n", "") + "none = {}\n")

    assert "was changed" in joulie("lab", "compare", str(file), "--results", str(folder)).complaint


# A queue that only grows


def offered(jobs: JobTable, *groups: NodeGroup, anywhere: bool = False) -> dict[str, float]:
    cluster = ClusterSetup(nodes=list(groups), cpu_work_on_gpu_nodes=anywhere)
    return loads(jobs, cluster, kinds(cluster, Catalogue()), Catalogue())


BOARDS = NodeGroup(1, gpu="H100 SXM", gpus=8)


def test_cores_that_boards_keep_from_others_make_a_queue_unstable() -> None:
    jobs = jobs_table([HOUR_S * place / 2 for place in range(21)], [1] * 21, cores=150, gpus=1)

    found = offered(jobs, BOARDS)

    assert found["GPUs"] < 0.5
    assert found["cores of GPU nodes"] == pytest.approx(19.5 * 150 / (10 * 192)), "the last two are not done by then"
    with pytest.raises(LabError, match="unstable queue: the jobs ask for 152 % of what all cores of GPU nodes can do"):
        refuse_unstable(found, "a, seed 1")


def test_pods_of_more_than_half_a_node_need_one_each() -> None:
    jobs = jobs_table([HOUR_S * place for place in range(11)], [1.5] * 11, cores=100, gpus=1)

    found = offered(jobs, BOARDS)

    assert found["cores of GPU nodes"] < 1.0
    with pytest.raises(
        LabError, match="145 % of what all GPU nodes, where no two pods of more than half the cores fit, can do"
    ):
        refuse_unstable(found, "a, seed 1")


def test_cpu_work_of_pods_with_boards_is_done_beside_the_boards() -> None:
    jobs = jobs_table([0, HOUR_S], [1, 1], cores=8, gpus=1)
    jobs.cpu_units[:] = 8 * HOUR_S / 2

    for found in (offered(jobs, BOARDS), offered(jobs, BOARDS, anywhere=True), offered(jobs, BOARDS, NodeGroup(1))):
        refuse_unstable(found, "a, seed 1")


def test_one_long_job_is_no_queue() -> None:
    """On one of three nodes, while the others come and go within an hour."""
    jobs = jobs_table([0, 600, HOUR_S], [20, 0.1, 0.1], cores=150, gpus=1)

    refuse_unstable(offered(jobs, NodeGroup(3, gpu="H100 SXM", gpus=8)), "a, seed 1")


def test_boards_that_wait_for_cpu_work_are_held_all_the_same() -> None:
    jobs = jobs_table([HOUR_S * place for place in range(11)], [0.1] * 11, cores=8, gpus=8)
    jobs.cpu_units[:] = 8 * 2 * HOUR_S

    with pytest.raises(LabError, match="190 % of what all GPUs of GPU nodes can do"):
        refuse_unstable(offered(jobs, BOARDS), "a, seed 1")


def test_a_summary_of_a_trace_says_what_is_scarce() -> None:
    jobs = jobs_table([HOUR_S * place / 2 for place in range(21)], [1] * 21, cores=150, gpus=1)

    assert "cores of GPU nodes" in (summarise(jobs, ClusterSetup(nodes=[BOARDS])).offered_load or {})


def test_hours_that_jobs_are_drawn_for_count_also_before_the_first_and_after_the_last() -> None:
    jobs = jobs_table([HOUR_S, 2 * HOUR_S], [1, 1], cores=192, gpus=0)
    cluster = ClusterSetup(nodes=[NodeGroup(1)])
    groups = kinds(cluster, Catalogue())

    assert loads(jobs, cluster, groups, Catalogue())["CPUs"] == pytest.approx(2.0)
    assert loads(jobs, cluster, groups, Catalogue(), hours=4)["CPUs"] == pytest.approx(0.5)


# Nodes that sleep


def test_nodes_that_sleep_only_when_all_work_is_done_never_cost_more_than_nodes_that_do_not(tmp_path: Path) -> None:
    text = "seeds = 5\n[trace]\nhours = 1\nload = 0.7\ngpu_share = 0\nduration_scale = 0.05\n[cluster]\n"
    text += "nodes = [{ count = 4 }]\n[variants]\nawake = {}\n"
    experiment = read(text + "later = { plant = { sleep = true, sleep_after_s = 7200 } }\n", tmp_path)
    sweep(experiment, tmp_path / "out", here, Watched())

    (made,) = comparisons(experiment, tmp_path / "out")

    assert -5 < (made.variants[1].differences["facility_kwh"].relative_pct or 0) < 0
    assert made.variants[1].estimates["wakes"].mean == 0
    assert any(note.endswith("and empty nodes sleep") for note in made.notes)


# What is too small to be a saving


def test_a_difference_that_is_shown_as_nothing_is_not_called_a_saving() -> None:
    def runs(kwh: float) -> dict[int, Entry]:
        return {seed: Entry(made_measures(kwh), f"jobs {seed}") for seed in range(20)}

    made = compare({"none": runs(100.0), "a": runs(99.97), "b": runs(100.02)}, "none")

    assert made.variants[1].differences["facility_kwh"].significant
    assert made.variants[1].verdict.startswith(
        "Against none, a makes a difference of less than 0.05 % in energy (-0.0 %"
    )
    assert made.summary == "No variant changes energy by 0.05 % or more."


# What plots say


def test_the_distance_to_the_bound_is_the_table_s() -> None:
    """A mean of ratios is not the ratio of means."""
    found = [(110.0, 100.0, 10.0), (10.0, 5.0, 100.0)]
    entries = {
        seed: Entry(made_measures(it_kwh=it_kwh, bound_kwh=bound_kwh, over_bound_pct=over_pct), f"jobs {seed}")
        for seed, (it_kwh, bound_kwh, over_pct) in enumerate(found)
    }
    made = compare({"none": entries}, "none")

    figure = distance(made, variant_styles(["none"]))

    assert figure is not None
    assert made.variants[0].estimates["over_bound_pct"].mean == pytest.approx(55.0)
    assert "Nearest: “none”, +55.0 %." in figure.caption


def test_no_caption_speaks_of_one_weather_where_there_are_two(tmp_path: Path) -> None:
    text = "seeds = 5\n[trace]\nhours = 1\njobs = 3\nduration_scale = 0.1\n[cluster]\nnodes = [{ count = 1 }]\n"
    experiment = read(text + "[variants]\nmild = {}\nhot = { weather.mean_c = 35 }\n", tmp_path)
    sweep(experiment, tmp_path / "out", here, Watched())

    said = page(material(tmp_path / "out"))

    assert "5 seeds, the same jobs in both runs." in said
    assert "Air outside is that of “mild”; not all have the same." in said


def test_the_plot_s_bound_holds_for_every_variant() -> None:
    """Other nodes, or nodes that sleep, have another bound."""
    runs = {
        name: {seed: Entry(made_measures(100.0, bound_kwh=bound_kwh), f"jobs {seed}") for seed in range(5)}
        for name, bound_kwh in (("none", 60.0), ("asleep", 30.0))
    }

    figure = pareto(compare(runs, "none"), variant_styles(runs))

    assert figure is not None
    assert "No schedule and no caps can take IT equipment below 30.0 kWh" in figure.caption


def test_two_peaks_of_different_averaging_say_so() -> None:
    assert KNOWN["peak_kw"].label != KNOWN["peak_it_kw"].label
    assert "recorded" in KNOWN["peak_kw"].label
    assert "plant step" in KNOWN["peak_it_kw"].label

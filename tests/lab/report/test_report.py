"""What a report says and refuses, without a browser."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.errors import InputError
from joulie.lab.experiment.definition import parse_experiment
from joulie.lab.model.refusals import LabError
from joulie.lab.report.drawing.axes import Axis, duration_axis, hours_axis, linear_axis, log_axis
from joulie.lab.report.drawing.markup import Markup, tag
from joulie.lab.report.drawing.plot import averaged
from joulie.lab.report.drawing.style import variant_styles
from joulie.lab.report.figures.distributions import ALL_JOBS, Distribution
from joulie.lab.report.page import page, write_report
from joulie.lab.report.reading import material, typical
from joulie.lab.report.tables import Table, as_latex, as_markdown, short_table
from joulie.lab.runs.comparison import comparisons
from joulie.lab.runs.store import load_results
from joulie.lab.runs.sweep import sweep
from joulie.lab.runs.workers import here
from tests.lab.report.report_results import EFFECTS, POLICIES, Effect, store
from tests.lab.small import Watched, small_experiment
from tests.support.cli_runner import joulie

VALUES = st.lists(st.floats(-1e9, 1e9, allow_nan=False), min_size=1, max_size=20)
DELAYS = st.lists(st.floats(0, 1e8, allow_nan=False), min_size=1, max_size=200)


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store(tmp_path_factory.mktemp("results") / "policies")


# What it says


def test_the_sentence_that_sums_it_up_and_every_verdict_are_the_comparisons_own(policies: Path) -> None:
    found = material(policies)
    comparison = found.facets[0].comparison
    again = comparisons(parse_experiment(POLICIES, "policies.toml", policies, was_run=True), policies)
    assert (comparison,) == again
    said = page(found).replace("\N{NO-BREAK SPACE}", " ")
    for words in (comparison.summary, *(variant.verdict for variant in comparison.variants[1:])):
        assert str(tag("i", words))[3:-4] in said


def test_no_difference_is_called_no_significant_difference(tmp_path: Path) -> None:
    text = POLICIES.replace('capped = { policy.name = "uniform", policy.gpu_cap_pct = 60 }', "")
    folder = store(tmp_path / "equal", text, {name: Effect() for name in EFFECTS})
    found = material(folder)
    assert "no significant difference" in found.facets[0].comparison.summary.lower()
    said = page(found)
    assert "o significant difference" in said
    assert "No variant is shown to save energy without more slowdown." in said


def test_few_seeds_claim_nothing_and_the_limit_stands_on_top(tmp_path: Path) -> None:
    folder = store(tmp_path / "few", POLICIES.replace("101-106", "101-103"))
    said = page(material(folder))
    assert "Nothing can be claimed from 3 seeds" in said
    assert said.index('class="limits"') < said.index("<main>")
    assert "*</td>" not in said  # no star: nothing is significant


def test_one_variant_on_one_seed_is_shown_without_differences(tmp_path: Path) -> None:
    folder = store(tmp_path / "alone", 'name = "alone"\nseeds = [7]\n')
    said = page(material(folder))
    assert "there is nothing to compare it with" in said
    assert 'id="over-time"' in said
    assert 'id="paired"' not in said
    assert "nan" not in said.lower().replace("nanmin", "")


def test_what_differs_between_comparisons_gets_a_section_each_and_a_plot_of_all(tmp_path: Path) -> None:
    text = POLICIES.replace("[variants]", '[facets]\n"trace.load" = [0.4, 0.8]\n\n[variants]')
    said = page(material(store(tmp_path / "loads", text)))
    assert 'id="facets"' in said
    for place in range(2):
        for figure in ("pareto", "paired", "bound", "over-time", "waits", "slowdowns-by-group"):
            assert said.count(f'id="{figure}-{place}"') == 1
    assert "load=0.8" in said


def test_the_same_results_give_the_same_file_with_no_path_of_this_machine(policies: Path, tmp_path: Path) -> None:
    for name in ("one.html", "two.html"):
        write_report(material(policies), tmp_path / name)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()
    assert str(policies.parent) not in (tmp_path / "one.html").read_text()


def test_the_report_tells_how_to_run_it_again(policies: Path) -> None:
    found = material(policies)
    said = page(found)
    assert found.commands[0] == "joulie lab sweep policies.toml --results policies"
    assert str(tag("i", POLICIES))[3:-4] in said
    facts = dict(found.facts)
    assert "40 nodes" in facts["Cluster"]
    assert facts["Variant capped"] == "policy.name = uniform, policy.gpu_cap_pct = 60.0"
    assert facts["Seeds"].startswith("101–106")
    assert "joulie 0.8.0" in facts["Versions"]


def test_claims_are_checked_against_the_numbers_where_users_read_them(policies: Path, tmp_path: Path) -> None:
    assert "made in words alone" in page(material(policies))
    true = '[[claims]]\nvariant = "eco"\nis = "lower"\n'
    held = store(tmp_path / "held", POLICIES + true)
    said = page(material(held))
    assert said.index("The numbers bear it out.") < said.index("<main>")
    assert joulie("lab", "report", str(held)).code == 0
    broken = store(tmp_path / "broken", POLICIES + true + '[[claims]]\nvariant = "twin"\nis = "lower"\n')
    assert "The numbers do not bear it out:" in page(material(broken))
    ended = joulie("lab", "report", str(broken))
    assert ended.code == 1
    assert "twin: facility_kwh is claimed to be: lower; the runs say: no significant difference" in ended.err
    assert (broken / "report.html").exists()


def test_work_from_a_file_is_named_in_the_source_of_every_plot(tmp_path: Path) -> None:
    text = POLICIES.replace("[variants]", '[trace]\nfile = "jobs.csv"\nformat = "philly"\n\n[variants]')
    found = material(store(tmp_path / "philly", text))
    assert "work drawn as block bootstraps of jobs.csv (Microsoft’s Philly trace)" in found.source
    assert page(found).count(found.source) == 8  # figures; the last line of the page begins with a capital


def test_the_course_that_is_drawn_is_the_one_in_the_middle_or_the_one_asked_for(policies: Path) -> None:
    runs = load_results(policies).runs[""]["none"]
    energy = {seed: run.measures.facility_kwh for seed, run in runs.items()}
    middle = typical(runs)
    assert sum(value < energy[middle] for value in energy.values()) == 2  # of six the third
    assert material(policies).facets[0].seed == middle
    asked = material(policies, seed=104).facets[0]
    assert asked.seed == 104
    assert np.array_equal(asked.series["eco"]["it_w"], load_results(policies).runs[""]["eco"][104].series["it_w"])
    with pytest.raises(InputError, match=r"--seed 7: .* 101, 102"):
        material(policies, seed=7)


@pytest.mark.slow
@pytest.mark.xdist_group("lab_sweep")
def test_runs_of_the_real_engine_make_a_report(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    assert sweep(small_experiment(), folder, here, Watched()).failed == {}
    facet = material(folder).facets[0]
    runs = load_results(folder).runs[""]
    assert list(facet.delays) == ["full", "capped"]
    for name, by_seed in runs.items():
        waits = np.concatenate([run.jobs["start_s"] - run.jobs["submit_s"] for run in by_seed.values()])
        assert facet.delays[name].wait_s[ALL_JOBS].jobs == len(waits)
        assert facet.delays[name].wait_s[ALL_JOBS].mean == pytest.approx(float(np.mean(waits)))
    assert joulie("lab", "report", str(folder)).code == 0
    said = (folder / "report.html").read_text()
    assert all(f'id="{figure}"' in said for figure in ("pareto", "bound", "over-time", "slowdowns-by-group"))
    assert "GPU cap, mean over nodes (% of maximum)" in said


# What it refuses


def test_results_with_a_missing_run_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    folder = store(tmp_path / "part", leave_out=1)
    with pytest.raises(LabError, match="1 of 24 runs are missing"):
        material(folder)
    ended = joulie("lab", "report", str(folder))
    assert ended.code == 1
    assert "capped on seed 106" in ended.complaint
    assert not (folder / "report.html").exists()


def test_a_folder_without_results_and_a_place_that_cannot_be_written_end_with_one_line(
    policies: Path, tmp_path: Path
) -> None:
    ended = joulie("lab", "report", str(tmp_path))
    assert ended.code == 2
    assert "holds no results" in ended.complaint
    target = tmp_path / "nowhere" / "report.html"
    ended = joulie("lab", "report", str(policies), "-o", str(target))
    assert ended.code == 2
    assert ended.complaint == f"{target}: cannot be written: No such file or directory"


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    folder = store(tmp_path / "damaged")
    table = next((folder / "runs").glob("eco.101.*")) / "jobs.parquet"
    table.write_bytes(b"not a table")
    with pytest.raises(InputError, match=r"eco\.101.*jobs\.parquet: cannot be read"):
        material(folder)


def test_the_command_writes_the_file_and_says_what_it_says(policies: Path, tmp_path: Path) -> None:
    target = tmp_path / "shown.html"
    ended = joulie("lab", "report", str(policies), "-o", str(target))
    assert ended.code == 0
    assert ended.out.splitlines() == [material(policies).facets[0].comparison.summary, f"report: {target}"]
    assert target.read_text().startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [target]


# Its parts


def test_text_is_escaped_and_markup_is_not() -> None:
    evil = '"><script>alert(1)</script>&'
    assert tag("b", evil, title=evil) == (
        '<b title="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;">'
        '"&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;</b>'
    )
    assert tag("p", tag("b", "x"), None) == "<p><b>x</b></p>"
    assert isinstance(tag("p"), Markup)


@given(VALUES, st.booleans())
def test_a_linear_axis_holds_all_values_and_has_ticks_inside(values: list[float], zero: bool) -> None:
    axis = linear_axis("Power", "kW", values, zero=zero)
    _check(axis, values)
    assert axis.title == "Power (kW)"
    assert len({words for _, words in axis.ticks}) == len(axis.ticks)
    if zero:
        assert axis.low <= 0 <= axis.high


@given(st.floats(1, 1e9))
def test_axes_of_time_and_of_factors_reach_the_longest(longest: float) -> None:
    _check(duration_axis("Wait", longest), [1.0, longest])
    _check(log_axis("Slowdown", "×", 1.0, longest), [1.0, longest])
    _check(hours_axis(longest), [0.0, longest])


def _check(axis: Axis, values: list[float]) -> None:
    assert all(axis.low <= value <= axis.high for value in values)
    assert axis.ticks
    slack = 1e-6 * (axis.high - axis.low)
    assert all(axis.low - slack <= tick <= axis.high + slack for tick, _ in axis.ticks)
    placed = axis.place(np.asarray(sorted(values)))
    assert np.all(np.diff(placed) >= 0)
    assert np.all((placed >= 0) & (placed <= 1))


@given(DELAYS, st.floats(0.01, 1))
def test_quantiles_of_a_distribution_are_those_of_the_jobs_within_a_percent(delays: list[float], share: float) -> None:
    kept = Distribution()
    kept.add(np.asarray(delays[: len(delays) // 2]))
    kept.add(np.asarray(delays[len(delays) // 2 :]))
    true = max(1.0, float(np.quantile(delays, share, method="inverted_cdf")))
    assert math.isclose(kept.quantile(share), true, rel_tol=0.01)
    assert kept.jobs == len(delays)
    values, shares = kept.above()
    assert np.all(np.diff(shares) <= 0)
    for value, part in zip(values, shares, strict=True):
        assert np.mean(np.asarray(delays) > value * 1.01) <= part + 1e-9
        assert part <= np.mean(np.maximum(delays, 1.0) > value / 1.01) + 1e-9


def test_averaging_keeps_the_mean_and_short_series_as_they_are() -> None:
    xs, ys = np.arange(2_000.0), np.random.default_rng([1]).normal(size=2_000)
    short, means = averaged(xs, ys, 100)
    assert len(short) == 100
    assert math.isclose(float(np.mean(means)), float(np.mean(ys)), abs_tol=1e-12)
    assert all(np.array_equal(*pair) for pair in zip(averaged(xs[:50], ys[:50]), (xs[:50], ys[:50]), strict=True))


def test_sixteen_variants_differ_by_marker_alone_and_sixty_four_by_dash_and_marker() -> None:
    every = list(variant_styles(map(str, range(64))).values())
    assert len({(style.marker, style.open) for style in every[:16]}) == 16
    assert len({(style.dash, style.marker) for style in every}) == 64


def test_tables_for_papers_hold_the_numbers_and_escape_the_names(policies: Path) -> None:
    table = short_table(material(policies).facets[0].comparison)
    energy = material(policies).facets[0].comparison.variants[1].estimates["facility_kwh"].mean
    markdown, latex = as_markdown(table).splitlines(), as_latex(table).splitlines()
    assert len(markdown) == 2 + 4
    assert {line.count("|") for line in markdown} == {len(table.head) + 1}
    assert f"| {energy:,.1f} |" in markdown[3]
    assert f" & {energy:,.1f} & " in latex[5]
    assert all(line.count("&") == len(table.head) - 1 for line in latex[4:8])
    assert "−" not in "".join(latex)
    evil = Table(["Variant", "n"], [["a|b_c\n& 50 % {x} \\", "1"]])
    assert as_markdown(evil).splitlines()[2] == r"| a\|b\_c & 50 % {x} \\ | 1 |"
    assert as_latex(evil).splitlines()[4] == r"a|b\_c \& 50 \% \{x\} \textbackslash{} & 1 \\"

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from joulie.lab.analysis.compare import Comparison, Entry, compare
from joulie.lab.analysis.measures import Measures
from joulie.lab.model.refusals import LabError
from tests.lab.made import made_measures

SEEDS = range(101, 121)


def entries(runs: dict[int, Measures], work: str = "same") -> dict[int, Entry]:
    return {seed: Entry(measures, f"{work}-{seed}") for seed, measures in runs.items()}


def noise(scale: float, stream: int) -> dict[int, float]:
    rng = np.random.default_rng(stream)
    return {seed: float(value) for seed, value in zip(SEEDS, rng.normal(0, scale, len(SEEDS)), strict=True)}


def runs(energy: float, slowdown: float = 2.0, stream: int = 0, wobble: float = 0.5) -> dict[int, Entry]:
    """Runs whose days differ much, and among each other little."""
    day, own = noise(10, 0), noise(wobble, stream)
    return entries({seed: made_measures(energy + day[seed] + own[seed], slowdown + own[seed] / 50) for seed in SEEDS})


def two(baseline: dict[int, Entry], variant: dict[int, Entry]) -> Comparison:
    return compare({"none": baseline, "eco": variant}, "none")


def test_differences_are_paired_and_their_interval_is_students() -> None:
    before, after = runs(100, stream=1), runs(97, stream=2)
    differences = [after[seed].measures.facility_kwh - before[seed].measures.facility_kwh for seed in SEEDS]
    expected = stats.ttest_1samp(differences, 0)
    interval = expected.confidence_interval(0.95)

    found = two(before, after).variants[1].differences["facility_kwh"]

    assert found.mean == pytest.approx(np.mean(differences))
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.by_seed == pytest.approx(differences)
    assert found.significant


def test_the_sentence_names_energy_and_delay_together() -> None:
    made = two(runs(100, 2.0, 1), runs(97, 2.3, 2))

    verdict = made.variants[1].verdict

    assert verdict.startswith("Against none, eco saves 3.")
    assert "energy and makes p99 slowdown 1" in verdict
    assert "worse (20 paired seeds)" in verdict
    assert made.summary == verdict


def test_no_difference_is_said_to_be_none() -> None:
    made = two(runs(100, 2.0, 1), runs(100, 2.0, 2))

    assert made.summary.startswith("eco against none: no significant difference (energy ")
    assert made.summary.count(", not inferior by 5 %;") == 2


def test_what_is_not_significant_but_may_be_large_is_said_to_be() -> None:
    made = two(runs(100, 2.0, 1, wobble=0.01), runs(97, 2.1, 2, wobble=60))

    found = made.variants[1].differences["slowdown_p99"]
    assert not found.significant
    assert made.summary.startswith("eco against none: no significant difference (energy -")
    assert made.summary.count(", may be worse by more than 5 %;") == 2


def test_runs_are_held_against_the_bound_of_the_freest_variant() -> None:
    asleep = {seed: made_measures(90.0, bound_kwh=8.0, over_bound_pct=800.0) for seed in SEEDS}
    awake = {seed: made_measures(100.0) for seed in SEEDS}

    made = compare({"awake": entries(awake), "asleep": entries(asleep)}, "awake")

    bounds = [variant.estimates["bound_kwh"].mean for variant in made.variants]
    assert bounds == [8.0, 8.0]
    assert made.variants[0].estimates["over_bound_pct"].mean == pytest.approx(100 * (80 / 8 - 1))
    assert made.variants[1].estimates["over_bound_pct"].mean == pytest.approx(800.0)
    assert "all variants are held against one lower bound, that of asleep, which has the most freedom" in made.notes


def test_the_load_of_cpus_and_gpus_is_told_apart() -> None:
    loaded = entries({seed: made_measures(cpu_load_pct=24.6, gpu_load_pct=60.1) for seed in SEEDS})

    (note,) = two(loaded, loaded).notes
    assert note.endswith("can do uncapped: CPUs 25 %, GPUs 60 %")


def test_more_energy_and_better_delay_are_said_as_such() -> None:
    made = two(runs(97, 2.3, 1), runs(100, 2.0, 2))

    assert "eco uses 3." in made.summary
    assert "more energy and makes p99 slowdown" in made.summary
    assert "better" in made.summary


def test_few_seeds_claim_nothing_however_clear_they_look() -> None:
    few = {"none": dict(list(runs(100).items())[:4]), "eco": dict(list(runs(50, stream=2).items())[:4])}

    made = compare(few, "none")

    assert "nothing can be claimed from 4 seeds" in made.summary
    assert not made.variants[1].differences["facility_kwh"].significant
    assert made.notes == ("4 of at least 5 seeds: nothing can be claimed",)


def test_one_seed_has_means_and_no_intervals() -> None:
    made = compare({"none": entries({1: made_measures(100)}), "eco": entries({1: made_measures(90)})}, "none")

    found = made.variants[1].differences["facility_kwh"]
    assert (found.mean, found.low, found.p_value) == (-10.0, None, None)
    assert made.variants[0].estimates["facility_kwh"].low is None


def test_the_run_that_ends_earlier_idles_on_until_the_other_ends() -> None:
    quick = {seed: made_measures(100.0, metered_h=8.0, idle_kw=3.0) for seed in range(6)}
    slow = {seed: made_measures(104.0, metered_h=10.0, idle_kw=3.0) for seed in range(6)}

    made = compare({"quick": entries(quick), "slow": entries(slow)}, "quick")
    found = made.variants[1].differences

    assert found["facility_kwh"].baseline == pytest.approx(100.0 + 2 * 3.0)
    assert found["facility_kwh"].mean == pytest.approx(-2.0), "less energy over the same ten hours"
    assert found["it_kwh"].baseline == pytest.approx(80.0 + 2 * 3.0 / 1.25)
    assert found["kwh_per_1000_device_hours"].baseline == pytest.approx(106.0)
    assert found["slowdown_p99"].mean == 0.0
    assert made.variants[0].estimates["facility_kwh"].mean == pytest.approx(100.0), "its own, until its last job"
    assert made.notes == (
        "energy is compared over the same time: the run of a pair that ends first idles on until the other ends",
    )


def test_where_nodes_sleep_both_count_until_the_last_of_them_does() -> None:
    """Else one that keeps nodes up at its end would have them for nothing."""
    until_asleep = {"idle_kw": 3.0, "settling_kwh": 5.0, "settled_h": 1.5}
    quick = {seed: made_measures(100.0, metered_h=8.0, **until_asleep) for seed in range(6)}
    slow = {seed: made_measures(104.0, metered_h=10.0, idle_kw=3.0, settled_h=1.0) for seed in range(6)}

    made = compare({"quick": entries(quick), "slow": entries(slow)}, "quick")
    found = made.variants[1].differences["facility_kwh"]

    assert found.baseline == pytest.approx(100.0 + 3 * 3.0 + 5.0)
    assert found.variant == pytest.approx(104.0 + 1 * 3.0)
    assert made.notes[0].endswith("until the other ends and empty nodes sleep")


def test_a_variant_that_takes_long_changes_nothing_about_the_others() -> None:
    slow = entries({seed: made_measures(150, metered_h=50.0) for seed in SEEDS})
    alone = two(runs(100, stream=1), runs(97, stream=2)).variants[1].differences["facility_kwh"]

    beside = compare({"none": runs(100, stream=1), "eco": runs(97, stream=2), "slow": slow}, "none")

    assert beside.variants[1].differences["facility_kwh"].by_seed == alone.by_seed


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.0005, 0.2), min_size=1, max_size=6))
def test_p_values_are_corrected_as_holm_says(wanted: list[float]) -> None:
    shift = noise(1.0, 3)
    variants = {"none": runs(100, wobble=0)}
    for place, size in enumerate(wanted):
        variants[f"v{place}"] = entries(
            {seed: made_measures(variants["none"][seed].measures.facility_kwh + size + shift[seed]) for seed in SEEDS}
        )
    made = compare(variants, "none")

    found = [variant.differences["facility_kwh"] for variant in made.variants[1:]]
    raw = np.array([one.p_value for one in found], dtype=float)
    order = np.argsort(raw, kind="stable")
    expected = np.minimum(1, np.maximum.accumulate(raw[order] * (len(raw) - np.arange(len(raw)))))
    assert [found[place].p_holm for place in order] == pytest.approx(expected)


def test_many_variants_without_effect_are_not_called_significant_by_chance() -> None:
    """40 variants that do nothing: at 5 % each, two would look significant without a correction."""
    variants = {"none": runs(100, wobble=0.5), **{f"v{place}": runs(100, stream=place) for place in range(1, 41)}}

    made = compare(variants, "none")

    assert sum(one.differences["facility_kwh"].p_value < 0.05 for one in made.variants[1:]) >= 1  # type: ignore[operator]
    assert not any(one.differences["facility_kwh"].significant for one in made.variants[1:])
    assert made.summary.startswith("No significant difference in energy or p99 slowdown between none and any of 40")


def test_the_summary_of_several_variants_names_those_that_save_for_nothing() -> None:
    made = compare(
        {"none": runs(100, 2.0, 1), "eco": runs(95, 2.5, 2), "free": runs(98, 2.0, 3), "bad": runs(110, 2.0, 4)}, "none"
    )

    assert made.summary.startswith(
        "2 of 3 variants save energy; with a p99 slowdown not inferior by 5 %: free. "
        "The most: Against none, eco saves 5."
    )


def test_unequal_work_is_refused() -> None:
    other = entries({seed: made_measures() for seed in SEEDS}, work="other")
    with pytest.raises(LabError, match="unequal work: 'eco' and 'none' ran different jobs on seed 101"):
        two(runs(100), other)


def test_unequal_seeds_are_refused() -> None:
    fewer = {seed: entry for seed, entry in runs(100).items() if seed != 107}
    with pytest.raises(
        LabError, match="unequal work: 'eco' has no run of seed 107, so there is nothing to pair it with"
    ):
        two(runs(100), fewer)
    with pytest.raises(LabError, match="'none' has no run of seed 107"):
        two(fewer, runs(100))
    with pytest.raises(LabError, match="unequal work: there is no run of the baseline 'none'"):
        compare({"eco": runs(100)}, "none")


def test_equal_jobs_on_every_seed_limit_what_is_found() -> None:
    same = {seed: Entry(made_measures(100 + seed % 3), "one trace") for seed in SEEDS}

    assert compare({"none": same, "eco": same}, "none").notes == (
        "every seed ran the same jobs: what is found holds for this trace, and nothing is said of others",
    )


def test_measures_that_a_run_lacks_are_left_out() -> None:
    made = two(runs(100, stream=1), runs(97, stream=2))

    assert "kwh_per_1000_gpu_hours" not in made.variants[0].estimates
    assert "kwh_per_1000_gpu_hours" not in made.variants[1].differences


def test_a_rounding_error_is_no_difference() -> None:
    before = runs(100, stream=1)
    after = entries({seed: made_measures(one.measures.facility_kwh * (1 + 1e-13)) for seed, one in before.items()})

    found = two(before, after).variants[1].differences["facility_kwh"]

    assert (found.mean, found.significant) == (0.0, False)

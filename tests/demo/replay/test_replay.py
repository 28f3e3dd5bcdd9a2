"""The replays behind the demo's claim: the same bits for the same seed, the same work both ways, energy conserved."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import msgspec
import pytest

from joulie.cli.demo.summary import settings_given
from joulie.demo.live.interface import DemoOptions
from joulie.demo.replay.replay import Replay, ReplayError, compared
from joulie.demo.replay.results import ReplayComparison, Replayed, UnequalWorkError, compare
from joulie.demo.scenario.day import MORNING, NIGHT
from joulie.demo.scenario.jobs import jobs_of_scene
from joulie.demo.settings import replay_settings
from joulie.demo.summary import NOTHING_PCT, comparison_lines
from joulie.model.names import PERFORMANCE
from joulie.simulator.loads import chances
from tests.support.cli_runner import joulie

OPERATOR, EXTENDER = replay_settings({}, None)


def night(*, with_joulie: bool) -> Replay:
    return Replay(7, NIGHT, joulie=with_joulie, operator=OPERATOR, extender=EXTENDER)


@pytest.fixture(scope="module")
def comparison() -> ReplayComparison:
    return compared(7, NIGHT, OPERATOR, EXTENDER)


@pytest.mark.parametrize("with_joulie", [True, False])
def test_the_same_seed_gives_the_same_bits(with_joulie: bool) -> None:
    first, second = (night(with_joulie=with_joulie).run() for _ in range(2))
    assert msgspec.json.encode(first) == msgspec.json.encode(second)


@pytest.mark.slow
def test_the_same_bits_come_out_of_another_process_with_other_hashes() -> None:
    command = [sys.executable, "-m", "joulie", "demo", "replay", "--scene", "night", "-o", "json"]
    answers = {
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True, timeout=120
        ).stdout
        for seed in ("1", "2")
    }
    assert len(answers) == 1


def test_both_ways_do_all_jobs_in_the_same_time(comparison: ReplayComparison) -> None:
    a, b = comparison.with_joulie, comparison.without_joulie
    jobs = jobs_of_scene(7, NIGHT)
    assert a.jobs == b.jobs == len(jobs)
    assert a.core_hours == b.core_hours == pytest.approx(sum(job.cores * job.duration_s for job in jobs) / 3600)
    assert a.gpu_hours == b.gpu_hours == pytest.approx(sum(job.gpus * job.duration_s for job in jobs) / 3600)
    assert a.metered_s == b.metered_s == max(a.makespan_s, b.makespan_s)


def test_the_plant_counted_the_work_that_the_jobs_were_asked_for(comparison: ReplayComparison) -> None:
    """It counts what cores really did: a pod uses part of what it asks for, and its last step is a whole one."""
    asked = (
        sum(job.cores * job.duration_s * _use(job.key, job.workload_class) for job in jobs_of_scene(7, NIGHT)) / 3600
    )
    for one in (comparison.with_joulie, comparison.without_joulie):
        assert 0.99 * asked < one.plant_core_hours < 1.06 * asked


def _use(key: str, workload_class: str) -> float:
    low, high = (0.85, 1.0) if workload_class == PERFORMANCE else (0.45, 0.85)
    return low + (high - low) * chances(7, key)[0]


def test_energy_is_conserved(comparison: ReplayComparison) -> None:
    for way in (True, False):
        replay = night(with_joulie=way)
        result = replay.run()
        fleet, cooling = replay._simulation.fleet, replay._simulation.facility.cooling
        assert float(fleet.node_energy_j.sum()) / 3.6e6 == pytest.approx(result.it_kwh, rel=1e-9)
        stored_j = (cooling.capacity_j_per_c * (cooling.inlet_c - cooling.settings.setpoint_c)).sum()
        gained_j = (cooling.it_energy_j + cooling.fan_energy_j - cooling.removed_j).sum()
        assert stored_j == pytest.approx(gained_j, rel=1e-6, abs=1e3)
        assert 0 < result.it_kwh < result.facility_kwh
        assert result.facility_kwh_until_done == result.facility_kwh
    assert comparison.without_joulie.facility_kwh >= comparison.without_joulie.facility_kwh_until_done


def test_without_joulie_nothing_is_capped_and_nothing_decided() -> None:
    replay = night(with_joulie=False)
    result = replay.run()
    assert not replay._simulation.fleet.cpus.cap_is_set.any()
    assert not replay._simulation.fleet.gpus.cap_is_set.any()
    assert (result.policy, result.transitions) == (None, 0)


def test_with_joulie_eco_nodes_are_capped_and_performance_pods_stay_off_them() -> None:
    replay = Replay(7, MORNING, joulie=True, operator=OPERATOR, extender=EXTENDER)
    steering = replay._joulie
    assert steering is not None
    seen_capped = checked = 0
    while replay._has_work:
        replay._turn()
        seen_capped = max(seen_capped, int(replay._simulation.fleet.cpus.cap_is_set.sum()))
        for work in replay._progress.running.values():
            if work.job.workload_class == PERFORMANCE:
                checked += 1
                state = steering.board.class_of(steering.board.index[work.node])
                # Draining nodes keep the pods that they have; an eco node never holds one.
                assert state in ("performance", "draining"), (work.job.key, work.node)
    assert seen_capped >= 20
    assert checked > 100


def test_a_comparison_at_unequal_work_is_refused(comparison: ReplayComparison) -> None:
    other = msgspec.structs.replace(comparison.without_joulie, jobs=comparison.without_joulie.jobs - 1)
    with pytest.raises(UnequalWorkError, match="same work"):
        compare(comparison.with_joulie, other)
    shorter = msgspec.structs.replace(comparison.without_joulie, metered_s=1.0)
    with pytest.raises(UnequalWorkError, match="same time"):
        compare(comparison.with_joulie, shorter)


def test_the_verdict_says_it_when_joulie_saves_nothing_or_costs_energy(comparison: ReplayComparison) -> None:
    def verdict(saved_pct: float) -> str:
        return "\n".join(comparison_lines([msgspec.structs.replace(comparison, saved_pct=saved_pct)]))

    assert "Joulie saved nothing worth naming" in verdict(NOTHING_PCT / 2)
    assert "Joulie saved nothing worth naming" in verdict(-NOTHING_PCT / 2)
    assert "Joulie cost 3.0 % more energy" in verdict(-3.0)
    assert "Joulie saved 3.0 %" in verdict(3.0)
    assert "One seed (7) is one throw of the dice" in verdict(3.0)


def test_the_verdict_names_the_price(comparison: ReplayComparison) -> None:
    slower = msgspec.structs.replace(comparison.with_joulie, slowdown_p99=9.0)
    dear = msgspec.structs.replace(comparison, with_joulie=slower, longer_s=40.0, saved_pct_until_done=-5.0)
    said = "\n".join(comparison_lines([dear]))
    assert "all work was done 40 s later" in said
    assert "the slowest pods took 9.00 ×" in said
    assert "metered only until each was done it took 5.0 % more energy" in said


@pytest.mark.slow
def test_each_number_of_a_comparison_comes_out_of_its_own_command(comparison: ReplayComparison) -> None:
    for flag, expected in (("--with", comparison.with_joulie), ("--without", comparison.without_joulie)):
        until = f"{expected.metered_s:g}"
        outcome = joulie("demo", "replay", "--scene", "night", flag, "--meter-until", until, "-o", "json")
        assert (outcome.code, outcome.err) == (0, "")
        assert msgspec.convert(outcome.document, Replayed) == expected
    both = joulie("demo", "replay", "--scene", "night", "-o", "json")
    assert msgspec.convert(both.document, ReplayComparison) == comparison


def test_the_policy_and_the_environment_count() -> None:
    outcome = joulie(
        "demo", "replay", "--scene", "night", "--with", "--policy", "static_partition", "-o", "json",
        env={"STATIC_HP_FRAC": "1"},
    )  # fmt: skip
    document = outcome.document
    assert document["policy"] == "static_partition"
    assert document["transitions"] == 0  # all nodes were performance before, and stay so


@pytest.mark.slow
def test_more_seeds_are_compared_and_averaged() -> None:
    table = joulie("demo", "replay", "--seeds", "3", "--scene", "day").out
    assert "With other dice, day: " in table
    assert "(seed 8)" in table
    assert "(seed 9)" in table
    found = joulie("demo", "replay", "--seeds", "3", "--scene", "day", "-o", "json").document
    average = sum(one["savedPct"] for one in found) / 3
    assert [one["seed"] for one in found] == [7, 8, 9]
    assert f"On average of all 3: {average:+.1f} %" in table


def test_wrong_wishes_are_refused_in_one_line() -> None:
    assert "'nan' is not a number" in joulie("demo", "--speed", "nan").complaint
    assert "'nan' is not a number" in joulie("demo", "replay", "--with", "--meter-until", "nan").complaint
    assert "options of replay go after it" in joulie("demo", "--seed", "8", "replay").complaint
    assert "the scenes are day, morning" in joulie("demo", "replay", "--scene", "dusk").complaint
    assert "--meter-until needs" in joulie("demo", "replay", "--meter-until", "60").complaint
    assert "--seeds compares" in joulie("demo", "replay", "--seeds", "2", "--with").complaint
    unknown = joulie("demo", "replay", "--scene", "night", "--policy", "magic")
    assert unknown.code == 2
    assert "POLICY_TYPE='magic'" in unknown.complaint


def test_settings_in_the_environment_are_part_of_the_command_that_repeats_the_numbers() -> None:
    env = {
        "STATIC_HP_FRAC": "0.5",
        "TWIN_STALENESS_THRESHOLD": "90s",
        "POLICY_TYPE": "static_partition",
        "HOME": "/nowhere",
    }
    options = DemoOptions(20.0, 7, NIGHT, None)
    assert settings_given(options, {"RECONCILE_INTERVAL": "5s", "HOME": "/nowhere"}) == []
    assert {"POLICY_TYPE=static_partition", "STATIC_HP_FRAC=0.5"} < set(settings_given(options, env))
    chosen = DemoOptions(20.0, 7, NIGHT, "rule_swap_v1")
    assert sorted(settings_given(chosen, env)) == ["STATIC_HP_FRAC=0.5", "TWIN_STALENESS_THRESHOLD=90s"]
    assert settings_given(chosen, {"STATIC_HP_FRAC": "0.5; true"}) == ["STATIC_HP_FRAC='0.5; true'"]


@pytest.mark.slow
def test_performance_pods_that_may_run_nowhere_end_the_replay_with_a_word() -> None:
    plan = replace(OPERATOR.decision.plan, policy_type="static_partition", static_hp_frac=0.0)
    operator = replace(OPERATOR, decision=replace(OPERATOR.decision, plan=plan))
    with pytest.raises(ReplayError, match="jobs still wait after 8 h"):
        Replay(7, NIGHT, joulie=True, operator=operator, extender=EXTENDER).run()

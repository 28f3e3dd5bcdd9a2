"""The summary of a demo: what the live run measured, and what the replays show. Pure: lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from joulie.demo.live.interface import DemoMeasurements
from joulie.demo.replay.feed_cut import FeedCutComparison
from joulie.demo.replay.results import ReplayComparison, Replayed
from joulie.demo.scenario.feed_meter import FeedCut
from joulie.demo.scenario.feed_words import drawn_words, kw, limit_words, measured_cut_lines, speed_words

NOTHING_PCT = 0.5  # a smaller difference is not worth naming


def measured_lines(measured: DemoMeasurements, speed: float) -> list[str]:
    """What the processes did while they ran."""
    pue = measured.facility_kwh / measured.it_kwh if measured.it_kwh else 1.0
    lines = [
        f"This run measured, in {clock(measured.elapsed_s)} of simulated time at {speed:g} × speed:",
        f"  energy  {measured.it_kwh:.2f} kWh for IT, {measured.facility_kwh:.2f} kWh with cooling (PUE {pue:.2f})",
        (
            f"  work    {measured.done} pods done ({measured.core_hours:.0f} core-hours, {measured.gpu_hours:.1f} "
            f"GPU-hours), {measured.running} running, {measured.waiting} waiting"
        ),
    ]
    if measured.done:
        lines.append(
            f"  pace    a pod took {measured.slowdown_p50:.2f} × its uncapped time (half of them), "
            f"{measured.slowdown_p99:.2f} × (99 of 100)"
        )
    return [*lines, *measured_cut_lines(measured.cuts, speed)]


def replay_introduction(seed: int) -> list[str]:
    return [
        "That was Joulie alone, stopped in the middle of work, so it says nothing about savings. For that the same",
        f"pods (seed {seed}) were replayed to the end of all work, with Joulie and without (no caps, LeastAllocated),",
        "on the same nodes, in the same weather, without the story's dead agent, pin and power budgets. kWh are of IT",
        "and cooling; before a slash: with Joulie.",
    ]


def comparison_lines(comparisons: Sequence[ReplayComparison]) -> list[str]:
    """A row for each scene of the first seed, with Joulie before the slash, a verdict, and what other seeds say."""
    seed = comparisons[0].seed
    first = [one for one in comparisons if one.seed == seed]
    columns = ("with", "without", "saved", "it is done", "done after", "slowdown p50", "p99")
    widths = (8, 9, 9, 12, 16, 15, 14)
    lines = [
        f"  {'':<10}{'kWh until both are done':>26}{'each until':>12}",
        f"  {'scene':<10}" + "".join(f"{name:>{width}}" for name, width in zip(columns, widths, strict=True)),
    ]
    for one in first:
        a, b = one.with_joulie, one.without_joulie
        times = f"{clock(a.makespan_s)} / {clock(b.makespan_s)}"
        half = f"{a.slowdown_p50:.2f} / {b.slowdown_p50:.2f}"
        worst = f"{a.slowdown_p99:.2f} / {b.slowdown_p99:.2f}"
        lines.append(
            f"  {one.scene:<10}{a.facility_kwh:>8.2f}{b.facility_kwh:>9.2f}{one.saved_pct:>+7.1f} %"
            f"{one.saved_pct_until_done:>+10.1f} %{times:>16}{half:>15}{worst:>14}"
        )
    return [*lines, *verdict(first), *other_seeds(comparisons)]


def verdict(comparisons: Sequence[ReplayComparison]) -> list[str]:
    """In plain words, also where the result is poor."""
    lines = []
    for one in comparisons:
        what = "the whole day" if one.scene == "day" else f"the {one.scene}"
        if one.saved_pct >= NOTHING_PCT:
            said = f"Joulie saved {one.saved_pct:.1f} % ({one.saved_kwh:.2f} kWh)"
        elif one.saved_pct > -NOTHING_PCT:
            said = "Joulie saved nothing worth naming"
        else:
            said = f"Joulie cost {-one.saved_pct:.1f} % more energy ({-one.saved_kwh:.2f} kWh)"
        lines.append(f"  In {what} {said}{_price(one)}.")
    return lines


def replayed_lines(replayed: Replayed) -> list[str]:
    """One replay for people."""
    who = f"with Joulie ({replayed.policy})" if replayed.joulie else "without Joulie"
    return [
        (
            f"{replayed.scene}, seed {replayed.seed}, {who}: {replayed.facility_kwh:.2f} kWh with cooling, "
            f"{replayed.it_kwh:.2f} kWh for IT, in {clock(replayed.metered_s)}"
        ),
        (
            f"  work      {replayed.jobs} pods, {replayed.core_hours:.1f} core-hours, "
            f"{replayed.gpu_hours:.1f} GPU-hours, all done after {clock(replayed.makespan_s)}"
        ),
        (
            f"  slowdown  {replayed.slowdown_p50:.3f} (half), {replayed.slowdown_p99:.2f} (99 of 100), "
            f"performance pods {replayed.performance_slowdown_p99:.2f} (99 of 100)"
        ),
        (
            f"  peak      {replayed.peak_kw:.1f} kW, warmest inlet {replayed.warmest_inlet_c:.1f} °C, "
            f"{replayed.transitions} changes of state"
        ),
    ]


def feed_cut_lines(one: FeedCutComparison) -> list[str]:
    """The cut of a feed, the same work without Joulie, and the price beside the same scene without the cut."""
    cut, bare, slow, plain = one.cut, one.without_joulie, one.with_cut, one.without_cut
    held = "held" if min(one.worst_margin_w.values()) >= 0 else "did NOT hold"
    margins = ", ".join(f"{name} {kw(watts)}" for name, watts in one.worst_margin_w.items())
    in_force = f"within {cut.in_force_s:.0f} s" if cut.in_force_s is not None else "never"
    shared = f"within {cut.shared_again_s:.0f} s" if cut.shared_again_s is not None else "not"
    return [
        f"{one.scene}, seed {one.seed}: {limit_words(cut)}, for {cut.lasted_s:.0f} s",
        f"  limits    {held} at every step of {one.step_s:g} s; smallest margin: {margins}",
        f"  drawn     {kw(cut.drawn_before_w)} before, in the cut {drawn_words(cut)}",
        f"  in force  on every device {in_force}, and shared again {shared}; agents have no network here",
        f"  without   Joulie the same work draws up to {kw(bare.highest_w)}, {_above(bare)}",
        f"  cost      {speed_words(cut)}",
        (
            f"            a pod took {slow.slowdown_p50:.3f} × its uncapped time (half of them), "
            f"{slow.slowdown_p99:.2f} × (99 of 100)"
        ),
        (
            f"            without the cut {plain.slowdown_p50:.3f} × and {plain.slowdown_p99:.2f} ×; all work was done "
            f"{_later(slow.makespan_s - plain.makespan_s)}"
        ),
    ]


def other_seeds(comparisons: Sequence[ReplayComparison]) -> list[str]:
    """How far the result of the first comparison depends on the dice."""
    first = comparisons[0]
    saved_pct = {one.seed: one.saved_pct for one in comparisons if one.scene == first.scene}
    if len(saved_pct) == 1:
        return [f"One seed ({first.seed}) is one throw of the dice: --seeds 5 compares more before you believe it."]
    listed = ", ".join(f"{saved:+.1f} % (seed {seed})" for seed, saved in saved_pct.items() if seed != first.seed)
    average = sum(saved_pct.values()) / len(saved_pct)
    return [f"  With other dice, {first.scene}: {listed}. On average of all {len(saved_pct)}: {average:+.1f} %."]


def clock(seconds: float) -> str:
    """`40:05`."""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}"


def _above(bare: FeedCut) -> str:
    if not bare.above_s:
        return "which happens to fit below the new limit"
    return f"above the new limit for {bare.above_s:.0f} s of {bare.lasted_s:.0f}"


def _later(longer_s: float) -> str:
    if abs(longer_s) < 1:
        return "at the same time"
    return f"{abs(longer_s):.0f} s {'later' if longer_s > 0 else 'earlier'} with it"


def _price(one: ReplayComparison) -> str:
    """What it cost in time, where that is noticeable."""
    prices = []
    if one.longer_s >= 1:
        prices.append(f"all work was done {one.longer_s:.0f} s later")
    a, b = one.with_joulie, one.without_joulie
    if a.slowdown_p99 > 1.05 * b.slowdown_p99:
        prices.append(f"the slowest pods took {a.slowdown_p99:.2f} × instead of {b.slowdown_p99:.2f} × their time")
    if one.saved_pct_until_done <= -NOTHING_PCT:
        prices.append(f"metered only until each was done it took {-one.saved_pct_until_done:.1f} % more energy")
    return f"; {'; '.join(prices)}" if prices else ""

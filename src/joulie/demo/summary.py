"""The end of a demo in words: what the live run measured, and what the replays say. Pure: lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from joulie.demo.looking import Measured
from joulie.demo.outcome import Comparison, Replayed

NOTHING_PCT = 0.5  # a smaller difference is not worth naming


def measured_lines(measured: Measured, speed: float) -> list[str]:
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
    return lines


def replay_introduction(seed: int) -> list[str]:
    return [
        "That was Joulie alone, stopped in the middle of work, so it says nothing about savings. For that the same",
        f"pods (seed {seed}) were replayed to the end of all work, with Joulie and without (no caps, LeastAllocated),",
        "on the same nodes, in the same weather, without the story's dead agent and pin. kWh are of IT and cooling;",
        "before a slash: with Joulie.",
    ]


def comparison_lines(comparisons: Sequence[Comparison]) -> list[str]:
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


def verdict(comparisons: Sequence[Comparison]) -> list[str]:
    """In plain words, also where there is nothing to be proud of."""
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


def other_seeds(comparisons: Sequence[Comparison]) -> list[str]:
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


def _price(one: Comparison) -> str:
    """What it cost in time, where anybody would feel it."""
    prices = []
    if one.longer_s >= 1:
        prices.append(f"all work was done {one.longer_s:.0f} s later")
    a, b = one.with_joulie, one.without_joulie
    if a.slowdown_p99 > 1.05 * b.slowdown_p99:
        prices.append(f"the slowest pods took {a.slowdown_p99:.2f} × instead of {b.slowdown_p99:.2f} × their time")
    if one.saved_pct_until_done <= -NOTHING_PCT:
        prices.append(f"metered only until each was done it took {-one.saved_pct_until_done:.1f} % more energy")
    return f"; {'; '.join(prices)}" if prices else ""

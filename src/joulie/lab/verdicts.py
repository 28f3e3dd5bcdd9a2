"""A comparison in words: what a variant saves and what it costs, or that nothing can be said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from joulie.lab.compare import Compared, Difference

ENERGY, DELAY = "facility_kwh", "slowdown_p99"
FEWEST_SEEDS = 5


def verdict(name: str, baseline: str, differences: Mapping[str, Difference], seeds: int) -> str:
    """Energy and delay in one sentence, never one without the other."""
    energy, delay = differences[ENERGY], differences[DELAY]
    if seeds < FEWEST_SEEDS:
        return (
            f"{name} against {baseline}: nothing can be claimed from {_counted(seeds, 'seed')}, at least "
            f"{FEWEST_SEEDS} are needed (in these: energy {_plain(energy)}, p99 slowdown {_plain(delay)})."
        )
    if not energy.significant and not delay.significant:
        return (
            f"{name} against {baseline}: no significant difference "
            f"(energy {_signed(energy)}, p99 slowdown {_signed(delay)}; {seeds} paired seeds)."
        )
    return f"Against {baseline}, {name} {_of_energy(energy)} and {_of_delay(delay)} ({seeds} paired seeds)."


def summary(variants: Sequence[Compared], seeds: int) -> str:
    """The sentence on top of a report. The first variant is the baseline."""
    baseline, *others = variants
    if not others:
        return f"{baseline.name} alone was run ({_counted(seeds, 'seed')}): there is nothing to compare it with."
    if len(others) == 1:
        return others[0].verdict
    if seeds < FEWEST_SEEDS:
        return f"Nothing can be claimed from {_counted(seeds, 'seed')}: at least {FEWEST_SEEDS} are needed."
    saving = sorted(
        (one for one in others if one.differences[ENERGY].significant and one.differences[ENERGY].mean < 0),
        key=lambda one: one.differences[ENERGY].mean,
    )
    if saving:
        free = [one.name for one in saving if not _worse(one.differences[DELAY])]
        shown = "not shown to make p99 slowdown worse"
        without = f"; {shown}: {', '.join(free)}" if free else "; all of them make p99 slowdown worse"
        return f"{len(saving)} of {len(others)} variants save energy{without}. The most: {saving[0].verdict}"
    costly = [one.name for one in others if one.differences[ENERGY].significant]
    if costly:
        more = ", ".join(costly)
        return f"No variant saves energy against {baseline.name}, and {more} used more ({seeds} paired seeds)."
    if any(one.differences[DELAY].significant for one in others):
        told = [one.verdict for one in others if one.differences[DELAY].significant]
        return f"No variant makes a significant difference in energy. {told[0]}"
    return (
        f"No significant difference in energy or p99 slowdown between {baseline.name} and any of "
        f"{len(others)} variants ({seeds} paired seeds)."
    )


def _of_energy(energy: Difference) -> str:
    if not energy.significant:
        return f"makes no significant difference in energy ({_signed(energy)})"
    return f"saves {_size(energy)} energy" if energy.mean < 0 else f"uses {_size(energy)} more energy"


def _of_delay(delay: Difference) -> str:
    if not delay.significant:
        return f"makes no significant difference in p99 slowdown ({_signed(delay)})"
    return f"makes p99 slowdown {_size(delay)} {'better' if delay.mean < 0 else 'worse'}"


def _worse(delay: Difference) -> bool:
    return delay.significant and delay.mean > 0


def _size(found: Difference) -> str:
    """`3.1 % [2.2, 4.0]`, whatever its sign."""
    ends = sorted(abs(value) for value in (found.relative_low_pct, found.relative_high_pct) if value is not None)
    return f"{_pct(abs(found.relative_pct or 0.0))} % [{', '.join(_pct(end) for end in ends)}]"


def _signed(found: Difference) -> str:
    """`-0.3 % [-1.1, +0.5]`."""
    if found.relative_pct is None or found.relative_low_pct is None or found.relative_high_pct is None:
        return f"{found.mean:+.3g}"
    return f"{found.relative_pct:+.1f} % [{found.relative_low_pct:+.1f}, {found.relative_high_pct:+.1f}]"


def _plain(found: Difference) -> str:
    return f"{found.mean:+.3g}" if found.relative_pct is None else f"{found.relative_pct:+.1f} %"


def _pct(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"

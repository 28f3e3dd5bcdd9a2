"""A comparison in words: what a variant saves and what it costs, or that nothing can be said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from joulie.lab.analysis.measures import KNOWN

if TYPE_CHECKING:
    from joulie.lab.analysis.compare import Compared, Difference

ENERGY, DELAY = "facility_kwh", "slowdown_p99"
MIN_SEEDS = 5
TOO_SMALL_PCT = 0.05  # shown as 0.0 %
MARGIN_PCT = 5.0  # worse by less than this is not inferior


class Basis(NamedTuple):
    """What a sentence rests on."""

    seeds: int
    trace: str = ""  # the one that all seeds come from
    drawn: bool = False  # each seed is a block bootstrap of it; else they replay it

    @property
    def paired(self) -> str:
        share = ", each a block bootstrap of this one trace" if self.drawn else ", all of this one trace"
        return f"{self.seeds} paired seeds{share if self.trace else ''}"

    def told(self, sentence: str) -> str:
        """With what it is true of: one trace says nothing of others."""
        if not self.trace:
            return sentence
        return f"On {'block bootstraps of ' if self.drawn else ''}{self.trace} alone: {sentence}"


def verdict(name: str, baseline: str, differences: Mapping[str, Difference], basis: Basis, aside: str = "") -> str:
    """Energy and delay in one sentence, never one without the other."""
    return _verdict(name, baseline, differences, basis) + (f" But {aside}." if aside else "")


def _verdict(name: str, baseline: str, differences: Mapping[str, Difference], basis: Basis) -> str:
    energy, delay = differences[ENERGY], differences[DELAY]
    if basis.seeds < MIN_SEEDS:
        return basis.told(
            f"{name} against {baseline}: nothing can be claimed from {_counted(basis.seeds, 'seed')}, at least "
            f"{MIN_SEEDS} are needed (in these: energy {_plain(energy)}, p99 slowdown {_plain(delay)})."
        )
    if not energy.significant and not delay.significant:
        return basis.told(
            f"{name} against {baseline}: no significant difference "
            f"(energy {_bounded(energy)}; p99 slowdown {_bounded(delay)}; {basis.paired})."
        )
    return basis.told(f"Against {baseline}, {name} {_of_energy(energy)} and {_of_delay(delay)} ({basis.paired}).")


def summary(variants: Sequence[Compared], basis: Basis) -> str:
    """The sentence on top of a report. The first variant is the baseline."""
    baseline, *others = variants
    if not others:
        alone = f"{baseline.name} alone was run ({_counted(basis.seeds, 'seed')})"
        return basis.told(f"{alone}: there is nothing to compare it with.")
    if len(others) == 1:
        return others[0].verdict
    if basis.seeds < MIN_SEEDS:
        few = f"nothing can be claimed from {_counted(basis.seeds, 'seed')}"
        return basis.told(f"{few[0] if basis.trace else 'N'}{few[1:]}: at least {MIN_SEEDS} are needed.")
    saving = sorted(
        (one for one in others if saves(one.differences[ENERGY])),
        key=lambda one: one.differences[ENERGY].mean,
    )
    if saving:
        free = [one.name for one in saving if not_inferior(one.differences[DELAY])]
        without = f"; with a p99 slowdown not inferior by {MARGIN_PCT:g} %: {', '.join(free) or 'none of them'}"
        how_many = basis.told(f"{len(saving)} of {len(others)} variants save energy{without}.")
        return f"{how_many} The most: {saving[0].verdict}"
    costly = [one.name for one in others if counts(one.differences[ENERGY])]
    if costly:
        more = ", ".join(costly)
        return basis.told(f"No variant saves energy against {baseline.name}, and {more} used more ({basis.paired}).")
    traces = any(one.differences[ENERGY].significant for one in others)
    slower = [one for one in others if counts(one.differences[DELAY])]
    if traces or slower:
        none = f"changes energy by {TOO_SMALL_PCT} % or more" if traces else "makes a significant difference in energy"
        return basis.told(f"No variant {none}.") + (f" {slower[0].verdict}" if slower else "")
    return basis.told(
        f"No significant difference in energy or p99 slowdown between {baseline.name} and any of "
        f"{len(others)} variants ({basis.paired})."
    )


def counts(found: Difference) -> bool:
    """Whether it is more than chance, and more than nothing as numbers are shown."""
    return found.significant and (found.relative_pct is None or abs(found.relative_pct) >= TOO_SMALL_PCT)


def saves(energy: Difference) -> bool:
    return counts(energy) and energy.mean < 0


def worse(delay: Difference) -> bool:
    return counts(delay) and delay.mean > 0


def worst_end_pct(found: Difference) -> float | None:
    """How much worse than the baseline it may be: the end of its 95 % interval on that side."""
    higher_is_better = KNOWN[found.measure].better == "higher"
    end = found.relative_low_pct if higher_is_better else found.relative_high_pct
    return None if end is None else -end if higher_is_better else end


def not_inferior(found: Difference, margin_pct: float = MARGIN_PCT) -> bool:
    """Whether the whole interval is better than this much worse: that no difference was found does not show it."""
    worst = worst_end_pct(found)
    return worst is not None and worst <= margin_pct


def _of_energy(energy: Difference) -> str:
    if not counts(energy):
        return f"makes {_no_difference(energy)} in energy ({_bounded(energy)})"
    return f"saves {_size(energy)} energy" if energy.mean < 0 else f"uses {_size(energy)} more energy"


def _of_delay(delay: Difference) -> str:
    if not counts(delay):
        return f"makes {_no_difference(delay)} in p99 slowdown ({_bounded(delay)})"
    return f"makes p99 slowdown {_size(delay)} {'better' if delay.mean < 0 else 'worse'}"


def _no_difference(found: Difference) -> str:
    return f"a difference of less than {TOO_SMALL_PCT} %" if found.significant else "no significant difference"


def _size(found: Difference) -> str:
    """`3.1 % [2.2, 4.0]`, whatever its sign."""
    ends = sorted(abs(value) for value in (found.relative_low_pct, found.relative_high_pct) if value is not None)
    return f"{_pct(abs(found.relative_pct or 0.0))} % [{', '.join(_pct(end) for end in ends)}]"


def _signed(found: Difference) -> str:
    """`-0.3 % [-1.1, +0.5]`."""
    if found.relative_pct is None or found.relative_low_pct is None or found.relative_high_pct is None:
        return f"{found.mean:+.3g}"
    return f"{found.relative_pct:+.1f} % [{found.relative_low_pct:+.1f}, {found.relative_high_pct:+.1f}]"


def _bounded(found: Difference) -> str:
    """`+25.0 % [-16.0, +66.0], may be worse by more than 5 %`: what is not significant may still be large."""
    if worst_end_pct(found) is None:
        return _signed(found)
    said = "not inferior by" if not_inferior(found) else "may be worse by more than"
    return f"{_signed(found)}, {said} {MARGIN_PCT:g} %"


def _plain(found: Difference) -> str:
    return f"{found.mean:+.3g}" if found.relative_pct is None else f"{found.relative_pct:+.1f} %"


def _pct(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"

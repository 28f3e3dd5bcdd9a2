"""The numbers as a table for the page, and the same as Markdown and LaTeX for a paper."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from joulie.lab.analysis.compare import Compared, Comparison
from joulie.lab.analysis.measures import KNOWN
from joulie.lab.report.drawing.markup import Markup, joined, tag
from joulie.lab.report.drawing.number_format import ABSENT, measured, relative, solid
from joulie.lab.report.figures.against_baseline import ENERGY, SLOWDOWN

# Columns of the short table, with headings that leave room; a change stands behind the measure that it is of.
SHORT = {
    "kwh_per_1000_cpu_hours": "kWh / 1,000 core-h",
    "kwh_per_1000_gpu_hours": "kWh / 1,000 GPU-h",
    ENERGY: "facility kWh",
    "arriving_kwh": "… while jobs arrive",
    "slowdown_p50": "median slowdown (×)",
    SLOWDOWN: "p99 slowdown (×)",
    "bounded_slowdown_p99": "p99 bounded slowdown (×)",
    "wait_p99_s": "p99 wait (s)",
    "late_jobs": "late jobs",
    "peak_kw": "peak kW",
    "pue": "PUE",
}
WITH_CHANGE = (ENERGY, SLOWDOWN)
FOOTNOTE = (
    "Means over seeds; a change is against the baseline, paired by seed, with its 95 % confidence interval. "
    "* significant: the interval leaves out 0, and p < 0.05 after Holm’s correction for the number of variants. "
    "A change of energy is over the same time: the run that ends earlier idles on until the other ends, too, so it "
    "can differ from the quotient of the means."
)
LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "−": "$-$",
    "×": "$\\times$",
    "≤": "$\\le$",
    "–": "--",
    "<": "$<$",
    ">": "$>$",
}


@dataclass(frozen=True, slots=True)
class Table:
    """Words in rows; the first column names, the others hold numbers."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def short_table(comparison: Comparison) -> Table:
    """One row a variant, what one would print."""
    present = [name for name in SHORT if any(name in one.estimates for one in comparison.variants)]
    changes = WITH_CHANGE if len(comparison.variants) > 1 else ()
    head = ["Variant"]
    for name in present:
        head.append(SHORT[name])
        if name in changes:
            head.append("change (%)")
    rows = []
    for variant in comparison.variants:
        beside = ["baseline"] if changes and variant.name == comparison.baseline else []
        beside += [variant.aside] if variant.aside else []
        row = [f"{variant.name} ({'; '.join(beside)})" if beside else variant.name]
        for name in present:
            row.append(_mean(variant, name))
            if name in changes:
                row.append(_change(variant, name).replace(" %", ""))
        rows.append(row)
    return Table(head, rows)


def full_table(comparison: Comparison) -> Table:
    """One row a measure, all there are."""
    head = ["Measure"]
    for variant in comparison.variants:
        head.append(variant.name)
        if variant.differences:
            head.append(f"change by {variant.name}")
    rows = []
    for name in KNOWN:
        if any(name in one.estimates for one in comparison.variants):
            row = [_heading(name)]
            for variant in comparison.variants:
                row.append(_mean(variant, name))
                if variant.differences:
                    row.append(_change(variant, name))
            rows.append(row)
    return Table(head, rows)


def as_html(table: Table, name: str, footnote: str) -> Markup:
    """Wide ones scroll by themselves."""
    head = tag("tr", *(tag("th", words, scope="col") for words in table.head))
    rows = [
        tag("tr", tag("th", row[0], scope="row"), *(tag("td", solid(words)) for words in row[1:])) for row in table.rows
    ]
    whole = tag("table", tag("thead", head), tag("tbody", joined(rows)), aria_label=name)
    scrolled = tag("div", whole, class_="wide", tabindex="0", role="group", aria_label=name)
    return joined([scrolled, tag("p", footnote, class_="source")])


def as_markdown(table: Table) -> str:
    """GitHub's tables."""
    lines = [table.head, ["---", *["---:"] * (len(table.head) - 1)], *table.rows]
    escaped = ([words if line is lines[1] else _markdown(words) for words in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


def as_latex(table: Table) -> str:
    """For the package booktabs."""
    rows = [" & ".join(map(_latex, row)) + r" \\" for row in table.rows]
    return "\n".join(
        [
            rf"\begin{{tabular}}{{l{'r' * (len(table.head) - 1)}}}",
            r"\toprule",
            " & ".join(map(_latex, table.head)) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _heading(measure: str) -> str:
    known = KNOWN[measure]
    return f"{known.label} ({known.unit})" if known.unit else known.label


def _mean(variant: Compared, measure: str) -> str:
    found = variant.estimates.get(measure)
    return measured(measure, found.mean, unit=False) if found else ABSENT


def _change(variant: Compared, measure: str) -> str:
    found = variant.differences.get(measure)
    return relative(found) if found else ABSENT


def _markdown(words: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", " ".join(words.split()))


def _latex(words: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in " ".join(words.split()))

"""The page: the answer first, then what it rests on, then how to get it again. No request leaves it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from joulie.lab.analysis.compare import Comparison
from joulie.lab.report.drawing.figure import Figure, draw
from joulie.lab.report.drawing.markup import Markup, joined, tag
from joulie.lab.report.drawing.number_format import solid
from joulie.lab.report.drawing.style import tones_css, variant_styles
from joulie.lab.report.figures.across_facets import across_facets
from joulie.lab.report.figures.against_baseline import distance, paired, pareto
from joulie.lab.report.figures.delays import delays
from joulie.lab.report.figures.distributions import Delays
from joulie.lab.report.figures.over_time import Series, over_time
from joulie.lab.report.tables import FOOTNOTE, as_html, as_latex, as_markdown, full_table, short_table
from joulie.lab.traces.atomic_file import whole_file

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Facet:
    """One comparison with what its plots show. Everything by variant, the baseline first."""

    comparison: Comparison
    seed: int  # the one whose course is drawn
    series: Mapping[str, Series]
    delays: Mapping[str, Delays]  # over all seeds


@dataclass(frozen=True, slots=True)
class Material:
    """One experiment."""

    name: str
    question: str
    claim: str  # in words
    checked: int  # claims in numbers
    broken: Sequence[str]  # why some of them do not follow
    facets: Sequence[Facet]
    file_name: str  # the experiment's file
    file_text: str
    facts: Sequence[tuple[str, str]]  # how it was run, in the order shown
    commands: Sequence[str]  # to run it again
    source: str  # of every plot: by which version, from which measurements


def page(material: Material) -> str:
    """The whole file. Its own style and script are named by their hashes: nothing else may run or load."""
    style = HERE.joinpath("report.css").read_text(encoding="utf-8") + tones_css()
    script = HERE.joinpath("report.js").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    title = f"{material.name} · Joulie lab"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Markup(style)),
    )
    body = tag("body", _top(material), _main(material), _foot(material), tag("script", Markup(script)))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _top(material: Material) -> Markup:
    notes = dict.fromkeys(note for facet in material.facets for note in facet.comparison.notes)
    several = len(material.facets) > 1
    answers = [
        tag("p", tag("span", f"{facet.comparison.facet}: ") if several else None, solid(facet.comparison.summary))
        for facet in material.facets
    ]
    return tag(
        "header",
        tag("div", _mark(), tag("h1", material.name), class_="brand"),
        tag("p", material.question, class_="question") if material.question else None,
        tag("div", *answers, class_="answer several" if several else "answer", id="answer"),
        _claim(material),
        tag("ul", *(tag("li", note) for note in notes), class_="limits") if notes else None,
        _contents(material),
    )


def _claim(material: Material) -> Markup | None:
    """What the experiment's file claims, and whether the numbers say so too."""
    if not material.claim and not material.checked:
        return None
    one_trace = any(facet.comparison.trace for facet in material.facets)
    if material.broken:
        verdict = "The numbers do not bear it out:"
    elif material.checked:
        verdict = "The numbers bear it out" + (", for this one trace alone." if one_trace else ".")
    else:
        verdict = "It is made in words alone, so nothing checks it."
    reasons = tag("ul", *(tag("li", solid(reason)) for reason in material.broken)) if material.broken else None
    words = tag("p", f"Claim: {material.claim or 'as the file gives it in numbers'} ", tag("strong", verdict))
    return tag("div", words, reasons, class_="claim broken" if material.broken else "claim", id="claim")


def _contents(material: Material) -> Markup:
    links = [(f"#facet-{place}", facet.comparison.facet) for place, facet in enumerate(material.facets)]
    if len(links) == 1:
        links = [(f"#{figure.key}", figure.heading) for figure in _figures(material.facets[0], "")]
    links.append(("#how", "How it was run"))
    return tag(
        "nav", tag("ul", *(tag("li", tag("a", words, href=to)) for to, words in links)), aria_label="On this page"
    )


def _main(material: Material) -> Markup:
    comparisons = [facet.comparison for facet in material.facets]
    names = variant_styles(variant.name for variant in comparisons[0].variants)
    overall = across_facets(comparisons, names)
    sections = [_facet(facet, place, material) for place, facet in enumerate(material.facets)]
    source = f"Source: {material.source}; experiment “{material.name}”, {_seeds(comparisons[0])}."
    first = joined([tag("h2", "Side by side"), draw(overall, source)]) if overall else None
    return tag("main", first, *sections, _how(material))


def _facet(facet: Facet, place: int, material: Material) -> Markup:
    several = len(material.facets) > 1
    comparison, suffix = facet.comparison, f"-{place}" if several else ""
    said = [variant.verdict for variant in comparison.variants if variant.verdict]
    figures = []
    for figure in _figures(facet, suffix):
        which = f"seed {facet.seed}" if figure.key.startswith("over-time") else _seeds(comparison)
        where = f", {comparison.facet}" if comparison.facet else ""
        figures.append(draw(figure, f"Source: {material.source}; experiment “{material.name}”{where}, {which}."))
    pictures = (
        tag(
            "details",
            tag("summary", f"{len(figures)} figures: {comparison.facet}"),
            *figures,
            open=place == 0,
            class_="pictures",
        )
        if several
        else joined([tag("h2", "In pictures"), *figures])
    )
    return tag(
        "section",
        tag("h2", comparison.facet if several else "In numbers", id=f"facet-{place}"),
        _numbers(facet, suffix),
        tag("ul", *(tag("li", solid(words)) for words in said), class_="verdicts card") if len(said) > 1 else None,
        pictures,
        aria_labelledby=f"facet-{place}",
    )


def _figures(facet: Facet, suffix: str) -> Iterator[Figure]:
    names = variant_styles(variant.name for variant in facet.comparison.variants)
    found = [
        pareto(facet.comparison, names),
        paired(facet.comparison, names),
        distance(facet.comparison, names),
        over_time(facet.series, names, facet.seed) if facet.series else None,
        *(delays(facet.delays, names, len(facet.comparison.seeds)) if facet.delays else ()),
    ]
    for figure in found:
        if figure is not None:
            yield Figure(figure.key + suffix, figure.heading, figure.plots, figure.caption, figure.styles)


def _numbers(facet: Facet, suffix: str) -> Markup:
    short, full = short_table(facet.comparison), full_table(facet.comparison)
    return tag(
        "div",
        as_html(short, "Variants and what they come to", f"{FOOTNOTE} {_seeds(facet.comparison)}."),
        _paper(f"markdown{suffix}", "As Markdown", as_markdown(short)),
        _paper(f"latex{suffix}", "As LaTeX", as_latex(short)),
        tag(
            "details",
            tag("summary", f"All {len(full.rows)} measures"),
            as_html(full, "All measures", FOOTNOTE),
            class_="more",
        ),
        class_="card",
    )


def _paper(key: str, name: str, text: str) -> Markup:
    button = tag("button", "Copy", type="button", data_copies=key, hidden=True)
    shown = tag("pre", text, id=key, tabindex="0", role="group", aria_label=name)
    return tag("details", tag("summary", name), shown, button, class_="paper")


def _how(material: Material) -> Markup:
    facts = joined(joined([tag("dt", name), tag("dd", value)]) for name, value in material.facts)
    return tag(
        "section",
        tag("h2", "How it was run", id="how"),
        tag(
            "div",
            tag("dl", facts, class_="facts"),
            tag("h3", "Run it again"),
            tag("pre", "\n".join(material.commands), tabindex="0", role="group", aria_label="Commands"),
            _paper("experiment-file", f"The experiment’s file, {material.file_name}", material.file_text),
            class_="card",
        ),
        aria_labelledby="how",
    )


def _foot(material: Material) -> Markup:
    return tag("footer", tag("p", f"{material.source[:1].upper()}{material.source[1:]}."))


def _seeds(comparison: Comparison) -> str:
    """20 seeds, 101 to 120; or each of them. And what they share, if not even jobs are others."""
    seeds = comparison.seeds
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    in_a_row = seeds == tuple(range(seeds[0], seeds[-1] + 1))
    which = f"{seeds[0]} to {seeds[-1]}" if in_a_row else ", ".join(map(str, seeds))
    of = "each a block bootstrap of" if comparison.drawn else "all of"
    return f"{len(seeds)} seeds, {which}" + (f", {of} {comparison.trace} alone" if comparison.trace else "")


def _mark() -> Markup:
    return tag(
        "svg",
        tag("rect", width=24, height=24, rx=6, fill="#0072b2"),
        tag("path", d="M13.4 3.5 6.2 13.4h4.5l-1 7.1 7.9-10.6h-4.9z", fill="#fff"),
        viewBox="0 0 24 24",
        aria_hidden="true",
    )


def write_report(material: Material, target: Path) -> None:
    """One HTML file. InputError where it cannot be written."""
    content = page(material).encode()
    with whole_file(target) as file:
        file.write(content)

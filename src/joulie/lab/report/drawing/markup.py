"""HTML and SVG as values: what is not markup already is text and gets escaped, so no name can inject anything."""

from __future__ import annotations

import html
from collections.abc import Iterable

VOID = frozenset({"meta", "link", "br", "hr", "input", "col"})


class Markup(str):
    """Text that is markup already; only `tag`, `joined` and the report's own files make it."""

    __slots__ = ()


Attribute = str | float | bool | None


def tag(element: str, /, *children: str | None, **attributes: Attribute) -> Markup:
    """An element. `class_` and `for_` stand for the reserved words, `stroke_width` for `stroke-width`."""
    opening = "".join(_attribute(name, value) for name, value in attributes.items())
    if element in VOID:
        return Markup(f"<{element}{opening}>")
    return Markup(f"<{element}{opening}>{joined(children)}</{element}>")


def joined(children: Iterable[str | None]) -> Markup:
    """One after the other; `None` is nothing."""
    return Markup("".join(_inner(child) for child in children if child is not None))


def _inner(child: str) -> str:
    return child if isinstance(child, Markup) else html.escape(child, quote=False)


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return f' {name}="{html.escape(number(value) if isinstance(value, int | float) else value)}"'


def number(value: float) -> str:
    """A coordinate: hundredths of a pixel are plenty."""
    return f"{value:.2f}".rstrip("0").rstrip(".")

"""Signs between code and documents point somewhere: functions that a page walks through, headings that code names."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module

import pytest

from tests.docs_pages.blocks import ROOT, pages

_FUNCTION = re.compile(r"`(joulie(?:\.\w+)+):([\w.]+)`")
_SIGN = re.compile(r"(docs/[\w/-]+\.md),\s+(?:#\s+)?'([^']+)'")
_HEADING = re.compile(r"(?m)^#+ (.+?)(?: \{#[\w-]+\})?$")
ARCHITECTURE = "docs/architecture.md"
WALKS = sorted(
    {(path.relative_to(ROOT).as_posix(), *found) for path in pages() for found in _FUNCTION.findall(path.read_text())}
)


def signs() -> list[tuple[str, str, str]]:
    """Every reference of a source file to a heading."""
    files = (path for folder in ("src", "tests", "bench", "soak", "testbed") for path in (ROOT / folder).rglob("*.py"))
    return sorted(
        (path.relative_to(ROOT).as_posix(), *found) for path in files for found in _SIGN.findall(path.read_text())
    )


@pytest.mark.parametrize(("page", "module", "function"), WALKS)
def test_a_function_that_a_page_names_exists(page: str, module: str, function: str) -> None:
    assert callable(reduce(getattr, function.split("."), import_module(module))), f"{page}: {module}:{function}"


def test_the_architecture_walks_through_all_four_shells() -> None:
    packages = {module.split(".")[1] for page, module, _ in WALKS if page == ARCHITECTURE}
    assert {"operator", "control", "extender", "agent", "lab"} <= packages


def test_a_heading_that_code_refers_to_exists() -> None:
    headings = {page: set(_HEADING.findall((ROOT / page).read_text())) for page in {page for _, page, _ in signs()}}
    lost = [f"{file}: {page}, {heading!r}" for file, page, heading in signs() if heading not in headings[page]]
    assert not lost, "; ".join(lost)

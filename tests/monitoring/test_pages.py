"""Runbooks and the guide speak of metrics, settings and commands that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from joulie.cli.commands import TABLE
from joulie.settings import COMPONENTS, describe
from tools.generate.metrics_reference import metrics_of_processes, metrics_page

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [DOCS / "how-to" / "monitoring.md", *sorted((DOCS / "runbooks").glob("*.md"))]
EXPORTED = {name for metrics in metrics_of_processes().values() for name, *_ in metrics}
SETTINGS = {setting.variable for settings in COMPONENTS.values() for setting in describe(settings, {})}
each_page = pytest.mark.parametrize("page", [page.read_text() for page in PAGES], ids=[page.stem for page in PAGES])


@each_page
def test_a_page_names_only_metrics_that_are_exported(page: str) -> None:
    assert set(re.findall(r"\bjoulie_\w+(?!\w*…)", page)) <= EXPORTED


@each_page
def test_a_page_names_only_settings_that_there_are(page: str) -> None:
    assert set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)", page)) <= SETTINGS


@each_page
def test_a_page_names_only_commands_that_there_are(page: str) -> None:
    assert set(re.findall(r"(?:^|`|\| )joulie ([a-z]+)", page, re.MULTILINE)) <= set(TABLE)


def test_the_reference_has_every_metric_of_every_process_once() -> None:
    sections = metrics_page().split("\n## ")[1:]
    for (process, metrics), section in zip(metrics_of_processes().items(), sections, strict=True):
        assert section.startswith(process.capitalize())
        for name, kind, meaning, _ in metrics:
            assert section.count(f"| `{name}` | {kind} |") == 1, name
            assert meaning.replace("<", "&lt;") in section, name

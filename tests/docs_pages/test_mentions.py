"""What the documents name within a sentence exists: commands and their options, settings, metrics, files, targets."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from joulie.cli.commands import root
from joulie.settings import COMPONENTS, describe
from tests.docs_pages.blocks import ROOT, SHELL, all_blocks, pages
from tools.generate.metrics_reference import metrics_of_processes

_FENCED = re.compile(r"(?ms)^( *)```.*?^\1```$")
_CODE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
_METRIC = re.compile(r"\bjoulie_[a-z_]+[a-z]\b(?![*…])")
_SERIES = re.compile(r"_(?:bucket|sum|count)$")
_SETTING = re.compile(r"\b[A-Z]+(?:_[A-Z]+)+\b")
# In capitals, and no settings of Joulie's.
OTHERS = {
    *("XDG_CACHE_HOME", "NO_COLOR", "CLUSTER_ARGS", "LC_ALL", "NODE_NAME", "POD_NAME", "POD_NAMESPACE"),
    *("SYS_ADMIN", "CAP_SYS_ADMIN", "CAP_DAC_OVERRIDE"),
}
# Plans of the day they were written; what they name may have changed since.
HISTORY = re.compile(r"docs/adr/\d")

Mention = tuple[str, str]


def mentions() -> list[Mention]:
    """Every piece of inline code, with its page."""
    found = []
    for path in pages():
        page = path.relative_to(ROOT).as_posix()
        if not HISTORY.match(page):
            text = _FENCED.sub("", path.read_text(encoding="utf-8"))
            found += [(page, " ".join(code.split())) for code in _CODE.findall(text)]
    return found


MENTIONS = mentions()
COMMANDS = sorted({mention for mention in MENTIONS if re.match(r"(?:kubectl )?joulie [a-z]", mention[1])})


def examples_of_help() -> list[Mention]:
    """What `joulie COMMAND --help` shows under Examples, without the remarks beside."""
    page = "docs/reference/cli.md"
    parts = re.findall(r"(?m)^  Examples:\n((?:    .+\n)+)", (ROOT / page).read_text(encoding="utf-8"))
    lines = [re.split(r" {2,}", line.strip())[0] for part in parts for line in part.splitlines()]
    return [(page, line) for line in lines if "joulie" in line]


@pytest.mark.parametrize(("page", "text"), [*COMMANDS, *examples_of_help()])
def test_a_command_in_a_sentence_exists_with_its_options(page: str, text: str) -> None:
    command: click.Command = root
    (after,) = re.findall(r"\bjoulie ([^|>;&]*)", text)[-1:]
    words = shlex.split(re.sub(r"[…'\"\\]", "", after))
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(click.Context(command), words[0])
        if found is None and command is not root:
            break  # a group that also takes arguments
        assert found is not None, f"{page}: `{text}`: there is no {words[0]}"
        command, words = found, words[1:]
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help", "-h"}
    asked = {word.partition("=")[0] for word in words if word.startswith("-") and word != "-"}
    assert asked <= known, f"{page}: `{text}`"


def test_settings_that_are_named_exist() -> None:
    known = {setting.variable for component in COMPONENTS.values() for setting in describe(component, {})} | OTHERS
    shown = [(block.where, block.text) for block in all_blocks() if block.language in (*SHELL, "yaml", "text")]
    named = {(page, name) for page, text in [*MENTIONS, *shown] for name in _SETTING.findall(text)}
    assert len(named) > 40
    assert not {(page, name) for page, name in named if name not in known and not _begins_one(name, known)}


def _begins_one(name: str, known: set[str]) -> bool:
    """`TELEMETRY_*` and its like."""
    return any(one.startswith(f"{name}_") for one in known)


def test_metrics_that_are_named_exist() -> None:
    exported = {described[0] for listed in metrics_of_processes().values() for described in listed}
    named = {(page, name) for page, text in MENTIONS for name in _METRIC.findall(text)}
    assert len(named) > 20
    assert not {(page, name) for page, name in named if _SERIES.sub("", name) not in exported and name not in exported}


def test_files_that_are_named_exist() -> None:
    pattern = re.compile(r"(?:deploy|tests|src|docs|tools|bench|testbed)/[\w./-]*\w")
    named = {(page, name) for page, text in MENTIONS for name in pattern.findall(text)}
    assert named
    assert not {(page, name) for page, name in named if not _is_there(ROOT / name)}


def _is_there(path: Path) -> bool:
    return path.is_file() or (path.is_dir() and any(path.iterdir()))


def test_targets_that_are_named_exist() -> None:
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
    named = {(page, name) for page, text in MENTIONS for name in re.findall(r"^make ([a-z-]+)", text)}
    assert not {(page, name) for page, name in named if name not in targets}


def test_pages_that_link_each_other_are_all_in_the_navigation() -> None:
    listed = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    for path in Path(ROOT / "docs").rglob("*.md"):
        page = path.relative_to(ROOT / "docs").as_posix()
        assert page in listed or page.startswith("adr/"), f"{page} is missing in the navigation"

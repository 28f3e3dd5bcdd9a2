"""Every command in the documents is run as it stands, or is in the one list of those that are not, with a reason."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs_pages.blocks import LANGUAGES, ROOT, SHELL, Block, all_blocks, blocks, matches, pages
from tests.docs_pages.not_run import TABLE, applies
from tests.docs_pages.reader import Reader, needs_a_cluster, to_run

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane


def _reading(block: Block) -> str:
    """Pages one by one, runbooks together."""
    return "docs/runbooks/" if block.page.startswith("docs/runbooks/") else block.page


BLOCKS = all_blocks()
ON_A_CLUSTER = sorted({_reading(block) for block in BLOCKS if needs_a_cluster(block)})
ON_FILES = sorted({_reading(block) for block in BLOCKS if block.commands() and not needs_a_cluster(block)})
# For people whose cluster runs Joulie.
WITH_JOULIE = re.compile(r"docs/(?:runbooks/|troubleshooting\.md|how-to/(?:everyday|dashboard|budgets/feed)\.md)")


def blocks_of(reading: str) -> list[Block]:
    return [block for block in BLOCKS if _reading(block) == reading]


# --- accounted for -------------------------------------------------------------------------------------------------


def test_every_block_says_what_it_is() -> None:
    unknown = [block.where for block in BLOCKS if block.language not in LANGUAGES]
    assert not unknown, f"say one of {', '.join(LANGUAGES[:-1])}: {unknown}"
    commands = [block.where for block in BLOCKS if block.looks_like_shell and block.language not in SHELL]
    assert not commands, f"these look like commands: call them bash, or console with output: {commands}"


def test_no_fence_escapes_the_search() -> None:
    for path in pages():
        fences = re.findall(r"(?m)^ *```", path.read_text(encoding="utf-8"))
        assert len(fences) == 2 * len(blocks(path)), path


def test_every_row_of_the_list_is_still_needed() -> None:
    asked = [(block, command) for block in BLOCKS for command in block.commands()]
    idle = [row for row in TABLE if not any(applies(row, block, command) for block, command in asked)]
    assert not idle, "no page has such a command any more"


def test_the_documents_have_commands_at_all() -> None:
    assert sum(to_run(block, command) for block in BLOCKS for command in block.commands()) >= 60


# --- run -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("reading", ON_FILES)
def test_commands_on_files_do_what_the_page_shows(reading: str, tmp_path: Path) -> None:
    """Of pages that need a cluster only what shows output: their other commands belong together."""
    with Reader(tmp_path, {}) as reader:
        reader.save(blocks_of(reading))
        for block in blocks_of(reading):
            if not needs_a_cluster(block) and (block.language == "console" or reading not in ON_A_CLUSTER):
                reader.read(block)


@pytest.mark.parametrize("reading", [name for name in ON_A_CLUSTER if not WITH_JOULIE.fullmatch(name)])
def test_commands_on_a_cluster_work(
    reading: str, stock_cluster: ControlPlane, tools: dict[str, Path], tmp_path: Path
) -> None:
    _read_all(reading, stock_cluster, tools, tmp_path)


@pytest.mark.parametrize("reading", [name for name in ON_A_CLUSTER if WITH_JOULIE.fullmatch(name)])
def test_commands_on_a_cluster_with_joulie_work(
    reading: str, joulies_cluster: ControlPlane, tools: dict[str, Path], tmp_path: Path
) -> None:
    _read_all(reading, joulies_cluster, tools, tmp_path)


def _read_all(reading: str, plane: ControlPlane, tools: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    with Reader(folder, tools, plane.kubeconfig) as reader:
        reader.save(blocks_of(reading))
        for block in blocks_of(reading):
            reader.read(block)


# --- the comparison ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "printed", "agrees"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a", "b"], ["a"], False),
        (["a"], ["a", "b"], False),
        (["a", "…"], ["a", "b", "c"], True),
        (["a", "…", "c"], ["a", "b", "b", "c"], True),
        (["a", "…", "c"], ["a", "b", "d"], False),
        (["at … W"], ["at 12 W"], True),
        (["at … W"], ["at 12 V"], False),
        (["(x)"], ["(x)"], True),
    ],
)
def test_the_comparison_sees_drift(shown: list[str], printed: list[str], agrees: bool) -> None:
    assert matches(shown, printed) is agrees


def test_a_command_in_an_unmarked_block_is_noticed() -> None:
    for text in ("joulie plan\n", "$ anything\n", "A_B=1 kubectl get nodes\n", "# why\nhelm install x\n"):
        assert Block("README.md", 1, "", "", text).looks_like_shell, text
    for text in ("a ──▶ b\n", "stress = power / 4,000 W\n", "node    state\n"):
        assert not Block("README.md", 1, "", "", text).looks_like_shell, text
    assert ROOT.joinpath("README.md").is_file()

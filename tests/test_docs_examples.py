"""Every `console` example in the documents is run, and shows what the command really prints.

In a `console` block a line `$ joulie …` is a command, and what follows is its output. A line that is only `…` stands
for any number of lines, `…` within a line for any text. The commands of one document share a folder, in their order.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/how-to").glob("*.md"))]
COLUMNS = "100"

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"\$ ((?:[A-Z_]+=\S* )*joulie\b.*)")


class Example(NamedTuple):
    command: str
    shown: list[str]


def examples(text: str) -> Iterator[Example]:
    for block in _BLOCK.findall(text):
        current: Example | None = None
        for line in block.splitlines():
            match = _COMMAND.fullmatch(line)
            if match:
                if current:
                    yield current
                current = Example(match[1], [])
            elif current:
                current.shown.append(line)
        if current:
            yield current


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether the printed lines are the shown ones, `…` standing for what is left out."""
    lines = "".join("(?:.*\n)*?" if line.strip() == "…" else _pattern(line) + "\n" for line in shown)
    return re.fullmatch(lines, "".join(f"{line}\n" for line in printed)) is not None


def _pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.rstrip().split("…"))


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    scripts = Path(sys.executable).parent
    env = {
        "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "COLUMNS": COLUMNS,
    }
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_documents_have_examples_at_all() -> None:
    assert sum(len(list(examples(path.read_text()))) for path in DOCUMENTS) >= 8


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_example_prints_what_the_document_shows(document: Path, tmp_path: Path) -> None:
    for example in examples(document.read_text()):
        outcome = run(example.command, tmp_path)
        assert outcome.returncode == 0, f"$ {example.command}\n{outcome.stderr}"
        if example.shown:
            printed = [line.rstrip() for line in outcome.stdout.splitlines()]
            assert matches(example.shown, printed), "\n".join(
                [f"$ {example.command}", "shown:", *example.shown, "", "printed:", *printed]
            )


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

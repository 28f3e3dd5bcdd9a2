"""The fenced blocks of the documents, and the commands in them.

A `bash` or `sh` block holds commands. A `console` block holds commands after `$ `, each followed by what it prints: a
line that is only `…` stands for any number of lines, `…` within a line for any text. Other languages say what the block
is; a block without one is a drawing, a formula or output, never a command.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
GENERATED = frozenset(f"docs/reference/{name}.md" for name in ("api", "catalogue", "cli", "metrics", "settings"))
SHELL = ("bash", "sh", "console")
LANGUAGES = (*SHELL, "yaml", "toml", "python", "json", "promql", "text", "")
_FENCE = re.compile(r'^( *)```(\w*)(?: title="([^"]+)")?\n(.*?)^\1```$', re.MULTILINE | re.DOTALL)
_TOOLS = "joulie|make|helm|kubectl|pip|docker|curl|git|cd|export|python|python3|kwok|kube-scheduler|promtool|sed"
_LOOKS_LIKE_SHELL = re.compile(rf"(?m)^(?:\$ |(?:[A-Z_]+=\S* )*(?:{_TOOLS}) )")


class Command(NamedTuple):
    """What a reader types, and what the page shows of its output, if anything."""

    text: str
    shown: list[str]


class Block(NamedTuple):
    page: str  # from the root of the repository
    line: int
    language: str
    title: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def looks_like_shell(self) -> bool:
        return _LOOKS_LIKE_SHELL.search(self.text) is not None

    def commands(self) -> list[Command]:
        if self.language == "console":
            return _after_prompts(self.text)
        return [Command(line, []) for line in _joined(self.text)] if self.language in SHELL else []


def pages() -> list[Path]:
    """What people read and write by hand; generated pages have their tests."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in found if path.relative_to(ROOT).as_posix() not in GENERATED]


def blocks(path: Path) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    page = path.relative_to(ROOT).as_posix()
    return [
        Block(page, text[: match.start()].count("\n") + 1, match[2], match[3] or "", match[4])
        for match in _FENCE.finditer(text)
    ]


def all_blocks() -> list[Block]:
    return [block for path in pages() for block in blocks(path)]


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether the printed lines are the shown ones, `…` standing for what is left out."""
    lines = "".join("(?:.*\n)*?" if line.strip() == "…" else _pattern(line) + "\n" for line in shown)
    return re.fullmatch(lines, "".join(f"{line}\n" for line in printed)) is not None


def _pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.rstrip().split("…"))


def _joined(text: str) -> list[str]:
    """One command a line; a backslash at its end joins the next."""
    lines = text.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _after_prompts(text: str) -> list[Command]:
    commands: list[Command] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            commands.append(Command(line.removeprefix("$ "), []))
        elif commands:
            commands[-1].shown.append(line)
    return commands

"""A reader who types what a page says, in its order, and changes nothing but names and ports that stand for theirs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.docs_pages.blocks import ROOT, Block, Command, matches
from tests.docs_pages.not_run import reason_not_to_run
from tests.docs_pages.services import Services

COLUMNS = "100"
PATIENCE_S = 600.0
# Names in capitals that a reader replaces.
STANDS_FOR = {"NODE": "node-1", "POD": "train-0", "NAMESPACE": "joulie-system"}
_PLACEHOLDER = re.compile(rf"(?<![\w.])({'|'.join(STANDS_FOR)})(?![\w=])")
_NEEDS_A_CLUSTER = re.compile(
    r"\b(?:kubectl|helm)\b|localhost:|joulie (?:agent|extender)\b|"
    r"joulie (?:status|top|doctor|budget|pause|resume|pin|unpin|cleanup|operator|simulator|plan|explain|score|twin)\b"
    r"(?!.*(?:-f|--from) )"
)


def needs_a_cluster(block: Block) -> bool:
    return any(_NEEDS_A_CLUSTER.search(command.text) for command in block.commands() if to_run(block, command))


def to_run(block: Block, command: Command) -> bool:
    return reason_not_to_run(block, command) is None


class Reader:
    """Runs commands in one folder; what goes on until it is stopped is stopped at the end of the block."""

    def __init__(
        self,
        folder: Path,
        tools: Mapping[str, Path],
        kubeconfig: Path | None = None,
        *,
        runs: Callable[[Block, Command], bool] = to_run,
        also_stands_for: Mapping[str, str] | None = None,
    ) -> None:
        """`runs` says which commands this reader can run; what the page calls a thing may be called otherwise here."""
        self._folder, self._runs, self._also_stands_for = folder, runs, also_stands_for or {}
        (folder / "deploy").symlink_to(ROOT / "deploy")
        (folder / ".curlrc").write_text("fail\nsilent\nshow-error\n")  # an answer that is an error is one
        bin_folder = folder / ".bin"
        bin_folder.mkdir()
        for name, path in tools.items():
            (bin_folder / name).symlink_to(path)
        self._env = {
            "PATH": os.pathsep.join([str(bin_folder), str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
            "HOME": str(folder),
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),  # of compiled code
            "LANG": "C.UTF-8",
            "COLUMNS": COLUMNS,
            "STATE_DIR": str(folder / "state"),  # not this machine's own, where an agent may keep what it found
            "KUBECONFIG": str(kubeconfig or folder / "there-is-none"),
        }
        self._services = Services(folder, self._env)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        codes = self._services.end_all()
        if error is None:
            assert set(codes.values()) <= {0}, f"these did not end well: {codes}\n{self._services.logs()}"

    def save(self, files: Iterable[Block]) -> None:
        """The files that the page shows; a reader who looks ahead has them before the first command."""
        for block in files:
            if block.title:
                (self._folder / block.title).write_text(block.text)

    def read(self, block: Block) -> None:
        for command in block.commands():
            if self._runs(block, command):
                self._type(block, command)

    def _type(self, block: Block, command: Command) -> None:
        text = _PLACEHOLDER.sub(lambda match: STANDS_FOR[match[1]], self._services.with_ports(command.text))
        for theirs, ours in self._also_stands_for.items():
            text = text.replace(theirs, ours)
        service = self._services.named_in(text)
        if service:
            self._services.start(service, text)
            return
        outcome = subprocess.run(
            ["bash", "-o", "pipefail", "-c", text],
            cwd=self._folder,
            env=self._env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=PATIENCE_S,
        )
        story = f"{block.where}\n$ {text}\n{outcome.stdout}{outcome.stderr}"
        assert outcome.returncode == 0, f"{story}\n{self._services.logs()}"
        if command.shown:
            printed = [line.rstrip() for line in outcome.stdout.splitlines()]
            assert matches(command.shown, printed), "\n".join([story, "", "the page shows:", *command.shown])

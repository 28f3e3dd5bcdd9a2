"""State folders of agents that can be filled to the brim or made read-only: a small file system each, where allowed."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

SIZE = "1m"
IN_NAMESPACE = "SOAK_NAMESPACE"  # set where the soak has mounts of its own, which end with it
_FILLER = ".filler"


class StateFolders:
    """One folder for each agent."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.mounted = os.environ.get(IN_NAMESPACE) == "1"
        self._folders: dict[str, Path] = {}

    def of(self, agent: str) -> Path:
        if agent not in self._folders:
            folder = self.root / agent
            folder.mkdir(parents=True)
            if self.mounted:
                _run("mount", "-t", "tmpfs", "-o", f"size={SIZE}", "joulie-soak", str(folder))
            self._folders[agent] = folder
        return self._folders[agent]

    def journals(self) -> dict[Path, str]:
        """All journals that hold something, by file; other notes of an agent's are none."""
        texts = {path: path.read_text() for path in sorted(self.root.rglob("*.json"))}
        return {path: text for path, text in texts.items() if '"entries"' in text}

    def has_journal(self, agent: str) -> bool:
        """Whether the journal of the machine that this agent runs on holds something."""
        return (self.of(agent) / "restore.json").exists()

    def fill(self, agent: str) -> None:
        with contextlib.suppress(OSError), (self.of(agent) / _FILLER).open("wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 1024)

    def empty(self, agent: str) -> None:
        (self.of(agent) / _FILLER).unlink(missing_ok=True)

    def make_read_only(self, agent: str) -> None:
        _run("mount", "-o", "remount,ro", str(self.of(agent)))

    def make_writable(self, agent: str) -> None:
        _run("mount", "-o", "remount,rw", str(self.of(agent)))

    def close(self) -> None:
        if self.mounted:
            for folder in self._folders.values():
                subprocess.run(["umount", "--lazy", str(folder)], check=False, capture_output=True)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)

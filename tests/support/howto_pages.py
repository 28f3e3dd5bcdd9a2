"""The files that a how-to page shows, so that tests try exactly what a reader copies."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "how-to"
_FILE = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def files_of(page: str) -> dict[str, str]:
    """Every code block with a title, by that title."""
    return dict(_FILE.findall((FOLDER / page).read_text(encoding="utf-8")))


def install(files: dict[str, str], folder: Path) -> Path:
    """Builds the package that these files make and installs it into a folder of its own, without a network."""
    source, target = folder / "source", folder / "installed"
    source.mkdir()
    for name, text in files.items():
        (source / name).write_text(text, encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*pip, *offline, "--target", str(target), str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return target


def joulie(*arguments: str, packages: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """The command line as a person runs it, with these packages installed besides its own."""
    command = [sys.executable, "-c", "from joulie.cli.main import main; main()", *arguments]
    env = {**os.environ, "PYTHONPATH": str(packages), **env}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

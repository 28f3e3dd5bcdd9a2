"""The steps of a Dockerfile, and its build stage carried out in a folder instead of a container."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Step(NamedTuple):
    """One instruction: `COPY` and what follows it."""

    word: str
    rest: str


def stages() -> list[list[Step]]:
    """The instructions of the repository's Dockerfile, stage by stage, without what stands before the first."""
    text = re.sub(r"(?m)^\s*#.*\n", "", (ROOT / "Dockerfile").read_text()).replace("\\\n", " ")
    steps = [Step(*line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]
    found: list[list[Step]] = []
    for step in steps:
        if step.word == "FROM":
            found.append([])
        if found:
            found[-1].append(step)
    return found


def copied(stage: list[Step]) -> list[tuple[list[str], str]]:
    """What each COPY takes from the repository, and where to."""
    rests = [shlex.split(step.rest) for step in stage if step.word == "COPY" and "--from" not in step.rest]
    return [(parts[:-1], parts[-1]) for parts in rests]


def carry_out(stage: list[Step], folder: Path) -> Path:
    """Run a build stage's COPY and RUN as they stand, with absolute paths below `folder`; where `/opt` is then.

    The image's own Python is one of ours in an environment of its own.
    """
    python = folder / "python"
    subprocess.run([sys.executable, "-m", "venv", str(python)], check=True)
    environment = {
        **{name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
        "PATH": f"{python}/bin:/usr/bin:/bin",
    }
    here = folder / "src"
    here.mkdir()
    for step in stage:
        match step.word:
            case "COPY":
                _copy(shlex.split(step.rest), here)
            case "ENV":
                environment |= dict(part.split("=", 1) for part in shlex.split(step.rest))
                environment |= {"PIP_NO_CACHE_DIR": "0", "PIP_NO_COMPILE": "1"}  # what only makes it slower here
            case "RUN":
                command = re.sub(r"(?<![\w./])/(opt|wheels)\b", rf"{folder}/\1", step.rest)
                outcome = subprocess.run(
                    ["bash", "-ec", command], cwd=here, env=environment, capture_output=True, text=True, check=False
                )
                assert outcome.returncode == 0, outcome.stderr[-3000:]
            case _:
                assert step.word in ("FROM", "WORKDIR"), step
    return folder / "opt"


def _copy(parts: list[str], here: Path) -> None:
    for source in parts[:-1]:
        target = here / parts[-1]
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, target)

"""What goes into the image, by its Dockerfile and the lock; tests/image builds it."""

from __future__ import annotations

import fnmatch
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from tests.chart.charts import CHART
from tests.support.obtaining import in_ci

ROOT = CHART.parents[2]
DEVELOPMENT = {"pytest", "mypy", "ruff", "mkdocs", "hypothesis", "import-linter", "fmpy", "amdsmi", "cryptography"}


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


def locked() -> ModuleType:
    spec = importlib.util.spec_from_file_location("locked", ROOT / "deploy/image/locked.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def locked_lines(*asked: str) -> list[str]:
    """The lines that name a package and its version."""
    return [line for line in locked_text(*asked).splitlines() if "==" in line and not line.startswith(" ")]


def locked_text(*asked: str) -> str:
    command = [sys.executable, "deploy/image/locked.py", *asked]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_the_lock_gives_the_image_all_that_joulie_needs_and_no_tool_of_its_makers() -> None:
    names = {line.split("==")[0] for line in locked_lines("joulie[nvidia,podresources]")}
    assert needed_by("joulie", "nvidia") <= names
    assert not names & DEVELOPMENT


def test_every_file_of_the_image_is_checked_by_its_hash() -> None:
    text = locked_text("joulie[nvidia,podresources]")
    blocks = re.split(r"(?m)^(?=[A-Za-z0-9])", text)[1:]
    assert blocks
    assert all("--hash=sha256:" in block for block in blocks)


def test_a_package_that_the_lock_lacks_is_named_with_the_remedy() -> None:
    with pytest.raises(SystemExit, match="not in the lock: left-pad; run: make lock"):
        locked().subset((ROOT / "requirements.lock").read_text(), ["left-pad"])


def test_a_package_with_a_version_for_each_python_keeps_both() -> None:
    newer, older = ">= '3.12'", "< '3.12'"
    lock = (
        f"a==1 ; python_version {older} \\\n    --hash=x\n    # via b\n"
        f"a==2 ; python_version {newer} \\\n    --hash=y\n    # via b\n"
        "b==1 \\\n    --hash=z\n    # via\n    #   c\n    #   d\n"
        "z==1\n"
    )
    assert locked().subset(lock, ["b"]) == lock.removesuffix("z==1\n")


def test_what_is_copied_is_there_and_not_hidden_from_the_builder() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert rules[0] == "*"
    sources = [source for sources, _ in copied(stages()[0]) for source in sources]
    assert "src" in sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert any(fnmatch.fnmatch(source, rule.removeprefix("!")) for rule in rules if rule.startswith("!")), source


def test_the_image_runs_as_the_user_that_the_chart_asks_for() -> None:
    last = {step.word: step.rest for step in stages()[-1]}
    user = last["USER"].split(":")[0]
    assert f"runAsUser: {user}" in (CHART / "templates/_pods.tpl").read_text()
    assert last["ENTRYPOINT"] == '["joulie"]'


def test_nothing_secret_and_nothing_from_the_network_but_packages_goes_into_it() -> None:
    words = {step.word for stage in stages() for step in stage}
    assert words <= {"FROM", "ENV", "WORKDIR", "COPY", "RUN", "ARG", "LABEL", "USER", "ENTRYPOINT", "CMD"}
    text = (ROOT / "Dockerfile").read_text()
    assert not re.search(r"curl|wget|apt-get|--trusted-host|--index-url", text)


def test_the_base_is_pinned_by_its_digest() -> None:
    pinned = re.findall(r"(?m)^ARG PYTHON_IMAGE=(\S+)$", (ROOT / "Dockerfile").read_text())
    assert len(pinned) == 1
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", pinned[0])
    assert [stage[0].rest.split()[0] for stage in stages()] == ["${PYTHON_IMAGE}", "scratch"]


@pytest.mark.slow
@pytest.mark.usefixtures("package_index")
@pytest.mark.parametrize("processor", ["x86_64", "aarch64"])
def test_every_package_is_ready_made_for_both_processors(processor: str, tmp_path: Path) -> None:
    pinned = tmp_path / "pinned.txt"  # without hashes: then pip need not fetch what it checks
    pinned.write_text("\n".join(line.rstrip(" \\") for line in locked_lines("joulie[nvidia,podresources]")))
    version = re.search(r"PYTHON_IMAGE=python:(\d+\.\d+)", (ROOT / "Dockerfile").read_text())
    assert version is not None
    tags = [*(f"manylinux{tag}_{processor}" for tag in ("_2_28", "_2_17", "2014")), "any"]
    flags = ["--dry-run", "--no-deps", "--ignore-installed", "--only-binary=:all:", f"--python-version={version[1]}"]
    outcome = pip(*flags, *(f"--platform={tag}" for tag in tags), "--target", str(tmp_path / "t"), "-r", str(pinned))
    assert outcome.returncode == 0, outcome.stderr[-2000:]


def needed_by(name: str, extra: str = "") -> set[str]:
    """What the metadata of the installed packages say, on this platform, all the way down."""
    from packaging.requirements import Requirement

    found: set[str] = set()
    waiting = [(name, extra)]
    while waiting:
        package, its_extra = waiting.pop()
        for text in metadata.requires(package) or ():
            requirement = Requirement(text)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": its_extra}):
                continue
            normal = re.sub(r"[-_.]+", "-", requirement.name).lower()
            if normal not in found:
                found.add(normal)
                waiting.append((requirement.name, ""))
    return found


def pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))


@pytest.fixture(scope="session")
def package_index() -> None:
    """Without an index nothing can be installed: said, and in CI no excuse."""
    outcome = pip("--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--retries=1", "--timeout=10", "click")
    if outcome.returncode != 0:
        reason = f"needs a package index: {outcome.stderr.strip().splitlines()[-1]}"
        if in_ci():
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)

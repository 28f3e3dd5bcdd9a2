"""Fingerprints: of what decides a result, and of the result itself. Equal fingerprints, equal bits."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
from dataclasses import fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import joulie
from joulie.errors import InputError
from joulie.lab.analysis.measures import NOT_REPEATABLE
from joulie.lab.model.jobs import JobTable
from joulie.lab.model.outcome import Outcome
from joulie.lab.model.setup import RunSetup, TraceSetup
from joulie.lab.simulation.user_sources import OwnModules
from joulie.lab.traces.formats.philly import RUNTIMES
from joulie.lab.traces.reading import readable_format

# What computes results. Reports and commands only show them.
_SOURCES = (
    "lab",
    "plant",
    "control",
    "physics",
    "catalogue",
    "settings",
    "model",
    "sources",
    "plugins.py",
    "cluster/decoding/conversion.py",
)
_NOT_RESULTS = ("report",)
GIT_S = 20.0


def key_of(setup: RunSetup, trace: TraceSetup, seed: int, own: OwnModules | None = None) -> str:
    """Of all that decides a run: setup, work, seed, who computes it, and files and code that the setup names.

    Files count by their content, so that a folder can be moved.
    """
    parts: dict[str, Any] = {
        "setup": msgspec.to_builtins(setup, order="sorted"),
        "trace": msgspec.to_builtins(trace, order="sorted"),
        "seed": seed,
        "computed_by": computed_by(),
        "own_code": sorted((name, hashlib.sha256(module.source).hexdigest()) for name, module in (own or {}).items()),
    }
    named_files = (
        (parts["trace"], "file", "trace.file"),
        (parts["setup"]["weather"], "file", "weather.file"),
        (parts["setup"]["settings"], "HARDWARE_CATALOG_PATH", "settings.HARDWARE_CATALOG_PATH"),
    )
    for keys, name, place in named_files:
        if keys.get(name):
            keys[name] = _file_digest(keys[name], place)
    parts["run_times"] = _run_times_digest(trace)
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def jobs_digest(jobs: JobTable) -> str:
    """Of everything about the jobs but what they are called: what comes when, and how much work it is."""
    digest = hashlib.sha256()
    for field in fields(jobs):
        if field.name == "ids":
            continue
        _feed(digest, field.name, getattr(jobs, field.name))
    return digest.hexdigest()


def outcome_digest(outcome: Outcome) -> str:
    """Of everything in a result that does not depend on how fast the computer is."""
    digest = hashlib.sha256(jobs_digest(outcome.jobs).encode())
    for name in ("start_s", "end_s", "backfilled", "node", "nodes"):
        _feed(digest, name, getattr(outcome, name))
    for name, values in sorted(outcome.series.items()):
        _feed(digest, name, values)
    for field in fields(outcome.counted):
        if field.name not in NOT_REPEATABLE:
            _feed(digest, field.name, np.float64(getattr(outcome.counted, field.name)))
    if outcome.budgets is not None:
        for field in fields(outcome.budgets):
            _feed(digest, field.name, np.float64(getattr(outcome.budgets, field.name)))
    return digest.hexdigest()


@cache
def code_digest() -> str:
    """Of the sources that compute results."""
    digest = hashlib.sha256()
    for name, path in code_files().items():
        digest.update(f"{name}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def code_files() -> dict[str, Path]:
    """The sources that compute results, by their path below Joulie's own."""
    root = Path(joulie.__file__).parent
    paths = [path for one in _SOURCES for path in ([root / one] if one.endswith(".py") else (root / one).rglob("*.py"))]
    names = {path.relative_to(root).as_posix(): path for path in sorted(paths)}
    return {name: path for name, path in names.items() if not set(_NOT_RESULTS) & set(name.split("/"))}


@cache
def computed_by() -> dict[str, str]:
    """What computes results here: other versions of numpy and numba may round otherwise."""
    versions = {name: _version(name) for name in ("numpy", "numba")}
    return {"joulie": joulie.__version__, "code": code_digest(), "python": platform.python_version(), **versions}


def git_commit(folder: Path) -> str:
    """Of the repository that the folder lies in, `-dirty` where something was changed since; empty without one."""
    if (program := shutil.which("git")) is None:
        return ""
    asked = [program, "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=GIT_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""


def _run_times_digest(trace: TraceSetup) -> str:
    """Of the file that belongs to a trace of Philly; empty for the others."""
    if readable_format(trace) != "philly":
        return ""
    return _file_digest(str(Path(trace.file).parent / RUNTIMES), "trace.file")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _file_digest(path: str, key: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{key}: {path}: cannot be read: {error.strerror}") from None


def _feed(digest: Any, name: str, value: object) -> None:
    digest.update(name.encode() + b"\0")
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(value)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.data)
    else:
        digest.update(msgspec.json.encode(value))

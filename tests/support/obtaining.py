"""Programs that tests need and a machine may lack: had, or said loudly that they cannot be; in CI that is a failure."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest


class UnavailableError(Exception):
    """The program is not there and could not be had; the text says why."""


def run_tool(command: Sequence[str], folder: Path, within_s: float) -> str:
    """What a tool that fetches or unpacks prints; the last line of its complaint as an error."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=within_s, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{' '.join(command[:3])}: {error}") from error
    if done.returncode != 0:
        reason = (done.stderr.strip() or done.stdout.strip() or f"exit {done.returncode}").splitlines()[-1]
        raise UnavailableError(f"{' '.join(command[:3])}: {reason}")
    return done.stdout


def obtained(find: Callable[[], Path], config: pytest.Config, needed: str) -> Path:
    """The program; without it the test is skipped, and in CI fails."""
    capture = config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():
            return find()
    except UnavailableError as unavailable:
        if in_ci():
            pytest.fail(f"{needed}, and in CI there is no excuse: {unavailable}", pytrace=False)
        pytest.skip(f"{needed}: {unavailable}")


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("true", "1")


def say_skipped(terminalreporter: pytest.TerminalReporter, needed: str) -> None:
    """One red line at the end for all tests that were skipped for want of it."""
    reasons = [
        report.longrepr[2].removeprefix("Skipped: ").removeprefix(f"{needed}: ")
        for report in terminalreporter.getreports("skipped")
        if isinstance(report.longrepr, tuple) and needed in report.longrepr[2]
    ]
    if reasons:
        what = needed.removeprefix("needs ")
        who = "1 test that needs" if len(reasons) == 1 else f"{len(reasons)} tests that need"
        terminalreporter.write_sep("!", f"SKIPPED {who} {what}: {reasons[0]}", red=True, bold=True)

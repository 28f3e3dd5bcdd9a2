"""The test runner itself: tests of one group share a process, and so do the clusters and images that they need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import os
from pathlib import Path

import pytest

@pytest.mark.parametrize("number", range(6))
@pytest.mark.xdist_group("one")
def test_who_runs_this(number):
    Path(__file__).with_name(f"{number}.txt").write_text(os.environ["PYTEST_XDIST_WORKER"])
"""


@pytest.mark.slow
def test_a_group_runs_in_one_process(tmp_path: Path) -> None:
    (tmp_path / "test_group.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    workers = [file.read_text() for file in tmp_path.glob("*.txt")]
    assert len(workers) == 6
    assert len(set(workers)) == 1

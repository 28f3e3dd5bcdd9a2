"""What happens to these tests where no node can be had: never silence."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDY = "tests/node/test_pods.py::test_kubectl_runs_a_command_in_a_pod"


def run_pytest(programs: Path, ci: str) -> subprocess.CompletedProcess[str]:
    """A test run on a machine with these programs alone, an empty cache and no network."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTEST_"))}
    environment |= {"PATH": str(programs), "XDG_CACHE_HOME": str(programs / "cache"), "PIP_NO_INDEX": "1", "CI": ci}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", NEEDY]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("ci", ["", "true"])
def test_a_machine_that_cannot_run_one_skips_and_says_why(tmp_path: Path, ci: str) -> None:
    outcome = run_pytest(tmp_path, ci)
    assert outcome.returncode == 0, outcome.stdout
    reason = "the programs unshare, mount, umount" if os.geteuid() == 0 else "root"
    assert f"SKIPPED 1 test that needs a real node: a node needs {reason}" in outcome.stdout


@pytest.mark.usefixtures("node_parts")
def test_in_ci_a_machine_that_could_run_one_has_to(tmp_path: Path) -> None:
    for name in ("unshare", "mount", "umount", "true"):
        (tmp_path / name).symlink_to(shutil.which(name) or "")
    outcome = run_pytest(tmp_path, "true")
    assert outcome.returncode == 1
    assert "in CI there is no excuse: no apt-get and no dpkg-deb" in outcome.stdout

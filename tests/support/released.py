"""What `make release` makes, for this Python on this machine."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tools.release.__main__ import ARCHITECTURES
from tools.release.image import ROOT

REGISTRY = "registry.example/team"


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once for all tests that look at it, which is why they are one group."""
    return make_release(tmp_path_factory.mktemp("release"))


def make_release(folder: Path) -> Path:
    """All artefacts of the sources as they are, into this folder; the base image is the test bed's."""
    from testbed.image.base import NAME, base_archive
    from testbed.image.build import PACKAGES
    from testbed.image.debian import as_if_installed, unpacked

    here = f"linux-{ARCHITECTURES[platform.machine()]}"
    command = [sys.executable, "-m", "tools.release", "--into", str(folder), "--dirty", "--registry", REGISTRY]
    command += ["--platforms", here, "--pythons", f"3.{sys.version_info[1]}", "--url", "https://files.example/joulie"]
    command += ["--base", str(base_archive()), "--base-name", NAME]
    command += ["--buildah", shlex.join([*as_if_installed(unpacked(PACKAGES, complete=False)), "buildah"])]
    environment = os.environ | {"SOURCE_DATE_EPOCH": "0"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder

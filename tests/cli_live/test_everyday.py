"""Every command on the page of everyday commands works as it stands there, on a live cluster."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.cli_live.installation import ROOT, Installation

PAGE = ROOT / "docs" / "how-to" / "everyday.md"
STAND_INS = {"gpu-b2": "node-00002", "team-a/": "default/"}


def commands() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines()]


def test_every_command_of_the_page_works(there: Installation, kubectl: Path) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train-0", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    env = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), str(kubectl.parent), os.environ["PATH"]]),
        "KUBECONFIG": str(there.plane.kubeconfig),
        "HOME": str(there.folder),
    }
    assert len(commands()) >= 15
    with there.added(pod):
        for written in commands():
            line = written
            for name, stand_in in STAND_INS.items():
                line = line.replace(name, stand_in)
            outcome = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, env=env)
            assert outcome.returncode == 0, f"$ {written}\n{outcome.stdout}{outcome.stderr}"
            assert outcome.stdout, written

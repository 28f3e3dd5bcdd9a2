"""Every command on the page of everyday commands works as it stands there, on a live cluster."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.agent.chain import JOULIE
from tests.cli.installation import LEASE, ROOT, Installation

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


def _managers(there: Installation, path: str) -> set[str]:
    fields = there.plane.api.get(path)["metadata"]["managedFields"]
    return {entry["manager"] for entry in fields if entry["manager"].startswith("joulie")}


def test_every_write_names_who_made_it(there: Installation) -> None:
    node = there.names[2]
    assert there.run("pin", node, "eco", "--for", "1h").code == 0
    try:
        (pinned,) = there.plane.api.get(f"{JOULIE}/nodepowerprofiles")["items"]
        pin = f"{JOULIE}/nodepowerprofiles/{pinned['metadata']['name']}"
        there.wait_until(lambda: "status" in there.plane.api.get(pin), "the operator answers the pin")
        assert _managers(there, pin) == {"joulie-cli", "joulie-operator"}
        assert _managers(there, f"{JOULIE}/nodetwins/{node}") == {"joulie-operator", "joulie-agent"}
        assert _managers(there, f"{JOULIE}/nodehardwares/{node}") == {"joulie-agent"}
        assert _managers(there, LEASE) == {"joulie-operator"}
    finally:
        there.run("unpin", node)
        there.settle()

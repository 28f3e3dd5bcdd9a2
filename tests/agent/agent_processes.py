"""`joulie agent` as real processes, in a pod as far as they can tell: a service account's token, and no kubeconfig."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from testbed.processes import free_port
from tests.support.rights import Rights

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

# The command line as it is, but for the place where Kubernetes would have mounted the service account.
_IN_A_POD = """
import sys
from pathlib import Path
from joulie.cluster.api import credentials
credentials.in_cluster.__defaults__ = (Path(sys.argv.pop(1)),)
sys.argv[0] = "joulie"
from joulie.cli.main import main
main()
"""


class JoulieProcess:
    """Runs until the end of the block. Settings are environment variables, as in a cluster."""

    def __init__(self, command: Sequence[str], folder: Path, name: str, settings: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.log_file = folder / f"{name}.log"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "METRICS_ADDR": f"127.0.0.1:{self.port}",
            **settings,
        }
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=folder
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def stop(self, within_s: float = 30.0) -> int:
        """SIGTERM; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within_s)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def log(self) -> list[dict[str, Any]]:
        lines = self.log_file.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def page(self) -> str:
        """Its metrics; empty before it listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
                page: str = answer.read().decode()
                return page
        except OSError:
            return ""

    def cpu_s(self) -> float:
        """CPU time of the whole process so far, all its threads, user and system, to the nanosecond."""
        threads = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9

    def memory_mb(self, field: str = "VmRSS") -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (line,) = (line for line in lines if line.startswith(f"{field}:"))
        return int(line.split()[1]) * 1024 / 1e6

    def wait_until(self, condition: Callable[[], bool], timeout_s: float, what: str, every_s: float = 0.05) -> None:
        """Wait for it; with the log's end where the process ended or took too long."""
        deadline_s = time.monotonic() + timeout_s
        while not condition():
            if self.process.poll() is not None or time.monotonic() > deadline_s:
                raise AssertionError(f"still not: {what}\n{self.log_file.read_text()[-3000:]}")
            time.sleep(every_s)


class AgentProcess(JoulieProcess):
    """`joulie agent` with the rights of `deploy/rbac`."""

    def __init__(
        self,
        plane: ControlPlane,
        folder: Path,
        name: str = "agent",
        *,
        before: Sequence[str] = (),  # what it is started by: setpriv and its options
        token: str | None = None,
        **settings: str,
    ) -> None:
        account = _service_account(plane, folder / f"{name}-account", token or Rights("agent").grant(plane))
        settings = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(plane.port),
            "STATE_DIR": str(folder / f"{name}-state"),
            **settings,
        }
        super().__init__([*before, sys.executable, "-c", _IN_A_POD, str(account), "agent"], folder, name, settings)


class CommandProcess(JoulieProcess):
    """Another command of `joulie`, with a kubeconfig of all rights."""

    def __init__(self, plane: ControlPlane, folder: Path, name: str, *arguments: str, **settings: str) -> None:
        command = [sys.executable, "-m", "joulie", *arguments, "--kubeconfig", str(plane.kubeconfig)]
        super().__init__(command, folder, name, settings)


def _service_account(plane: ControlPlane, folder: Path, token: str) -> Path:
    """What Kubernetes would mount."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "token").write_text(token)
    (folder / "ca.crt").write_bytes(Path(plane.ca_file).read_bytes())
    (folder / "namespace").write_text("joulie-system")
    return folder

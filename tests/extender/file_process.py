"""`joulie extender --from FILE` as a process of its own: started, watched from outside, asked to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from testbed.processes import free_port
from tests.extender.api_objects import Body, as_objects, node, twin

READY_S = 30.0
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR")
NOW = "2026-11-01T12:00:00Z"


def small_cluster() -> list[Body]:
    names = [f"n{number}" for number in range(20)]
    states = ("performance", "eco", "draining", "")
    return as_objects(
        nodes=[node(name) for name in names],
        twins=[twin(name, states[at % 4], measured_w=30 * at) for at, name in enumerate(names)],
    )


class FromFiles:
    """Ready when the block begins, killed when it ends unless it has ended by itself."""

    def __init__(self, folder: Path, **env: str) -> None:
        cluster = folder / "cluster.json"
        cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": small_cluster()}))
        self.port, self.metrics_port = free_port(), free_port()
        self.log_file = folder / "extender.log"
        self._command = [sys.executable, "-m", "joulie", "extender", "--from", str(cluster), "--now", NOW]
        self._env = {name: value for name, value in os.environ.items() if name in _KEPT} | {
            "EXTENDER_ADDR": f"127.0.0.1:{self.port}",
            "METRICS_ADDR": f"127.0.0.1:{self.metrics_port}",
            **env,
        }

    def __enter__(self) -> Self:
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._env
            )
        deadline_s = time.monotonic() + READY_S
        while not self._ready():
            if self.process.poll() is not None or time.monotonic() > deadline_s:
                self.kill()
                raise AssertionError(f"the extender did not start: {self.log}")
            time.sleep(0.02)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def run_to_its_end(self, within_s: float = 30.0) -> subprocess.CompletedProcess[str]:
        """For one that does not start: its exit code and what it says."""
        return subprocess.run(
            self._command,
            env=self._env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=within_s,
            check=False,
        )

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Over the address for metrics, which never has TLS."""
        connection = HTTPConnection("127.0.0.1", self.metrics_port, timeout=10)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def resident_kb(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def _ready(self) -> bool:
        try:
            return self.ask("GET", "/readyz")[0] == 200
        except (OSError, HTTPException):
            return False

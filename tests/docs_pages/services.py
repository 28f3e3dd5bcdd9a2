"""Commands that go on until they are stopped: started, waited for, and ended as by Ctrl-C.

Their usual ports may be taken on this machine, so they get others, and so do commands that call them by
`localhost:PORT`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from testbed.processes import free_port

PATIENCE_S = 90.0


class Address(NamedTuple):
    """Where a process says that it is ready: its usual port, and the variable that sets another."""

    port: int
    variable: str


ADDRESSES = {
    "operator": Address(8081, "METRICS_ADDR"),
    "agent": Address(8080, "METRICS_ADDR"),
    "extender": Address(9877, "METRICS_ADDR"),
    "simulator": Address(18080, "SIM_ADDR"),
}
# These do not say when they are ready; the next command waits for them.
SILENT = r"kube-scheduler|kwok|kubectl .*port-forward"
_SERVICE = re.compile(rf"(?:[A-Z_]+=\S* +)*(?:joulie ({'|'.join(ADDRESSES)})\b|({SILENT})\b)")
_ENDS_BY_ITSELF = re.compile(r"--once|--help|agent restore")
_LOCAL = re.compile(r"\blocalhost:(\d+)")


class Services:
    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self._folder, self._env = folder, env
        self._ports = {address.port: free_port() for address in ADDRESSES.values()}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    @staticmethod
    def named_in(text: str) -> str | None:
        """Which of them this command is, if any."""
        found = _SERVICE.match(text)
        return (found[1] or found[2].split()[0]) if found and not _ENDS_BY_ITSELF.search(text) else None

    def with_ports(self, text: str) -> str:
        return _LOCAL.sub(lambda match: f"localhost:{self._ports.get(int(match[1]), match[1])}", text)

    def start(self, name: str, text: str) -> None:
        """In place of one of the same name, if that runs; returns when it is ready."""
        if name in self._running:
            self.end(name)
        address = ADDRESSES.get(name)
        port = self._ports[address.port] if address else 0
        asked_at = {"EXTENDER_ADDR": f"127.0.0.1:{free_port()}"} if name == "extender" else {}
        env = {**self._env, **asked_at, **({address.variable: f"127.0.0.1:{port}"} if address else {})}
        with (self._folder / f".{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                ["bash", "-c", text],
                cwd=self._folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline_s = time.monotonic() + PATIENCE_S
        while port and not _ready(port):
            assert self._running[name].poll() is None, f"{text} ended\n{self.logs()}"
            assert time.monotonic() < deadline_s, f"{text} is not ready\n{self.logs()}"
            time.sleep(0.1)

    def end_all(self) -> dict[str, int]:
        """The last first: an agent needs its machines to put them back. Exit codes by name."""
        return {name: self.end(name) for name in reversed(list(self._running))}

    def end(self, name: str) -> int:
        process = self._running.pop(name)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        try:
            return process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.wait()

    def logs(self) -> str:
        logs = sorted(self._folder.glob(".*.log"))
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-1500:]}" for path in logs)


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
            return True
    except OSError:  # nothing listens, or it answers that it is not ready
        return False

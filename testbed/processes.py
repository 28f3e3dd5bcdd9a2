"""Child processes that are never left behind: each is stopped by its own id, or by the watchdog if we die first."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from testbed import watchdog

STOP_GRACE_S = 10.0
_given: set[int] = set()  # by `free_port`


class ProcessFailed(Exception):  # noqa: N818 - the process failed, this reports it
    """A process ended or did not become ready; carries the tail of its log."""


class Processes:
    """All processes of one control plane, with their logs in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._children: list[Child] = []
        # Its own session: Ctrl-C in a terminal reaches us alone, and we stop the children in the right order.
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def start(self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> Child:
        """Start it with its output appended to `<name>.log`; `env` comes on top of what all children get."""
        log = self.folder / f"{name}.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,
                env={**environment(), **(env or {})},
            )
        self._tell(f"+{process.pid}")
        child = Child(name, process, log, self._tell)
        self._children.append(child)
        return child

    @property
    def pids(self) -> list[int]:
        """Of the children that run now."""
        return [child.pid for child in self._children if child.running]

    def close(self) -> None:
        """End the watchdog, which kills what is still running and removes the folder."""
        if self._watchdog.stdin:
            self._watchdog.stdin.close()
        self._watchdog.wait()

    def _tell(self, line: str) -> None:
        if self._watchdog.stdin is None:
            raise ProcessFailed("the watchdog has no pipe")
        self._watchdog.stdin.write(f"{line}\n".encode())
        self._watchdog.stdin.flush()


class Child:
    """One running process."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path, tell: Callable[[str], None]) -> None:
        self.name = name
        self.log = log
        self._process = process
        self._tell = tell

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def wait_until(self, ready: Callable[[], bool], timeout_s: float) -> None:
        """Return once `ready`. If the process ends first or the time is up: ProcessFailed, and it does not run on."""
        deadline_s = time.monotonic() + timeout_s
        while not ready():
            if not self.running:
                raise ProcessFailed(f"{self.name} ended with code {self._process.returncode}:\n{self.log_tail()}")
            if time.monotonic() > deadline_s:
                self.kill()
                raise ProcessFailed(f"{self.name} was not ready after {timeout_s:.0f} s:\n{self.log_tail()}")
            time.sleep(0.05)

    def stop(self, grace_s: float = STOP_GRACE_S) -> int:
        """Ask it to end; kill it when it has not by then. Its exit code, negative after a signal."""
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
        self._reap()
        return self._process.returncode

    def kill(self) -> None:
        """End it without a chance to say goodbye."""
        self._signal(signal.SIGKILL)
        self._reap()

    def freeze(self) -> None:
        """Stop its clock: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def log_tail(self, lines: int = 15) -> str:
        """The last lines that it wrote."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _signal(self, number: int) -> None:
        if self.running:
            self._process.send_signal(number)

    def _reap(self) -> None:
        self._process.wait()
        self._tell(f"-{self.pid}")


def free_port() -> int:
    """A free loopback port that no outgoing connection and no other test process is given.

    It need not be listened on at once, and a server may end and begin again on it.
    """
    for port in random.sample(sorted(set(_own_ports()) - _given), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            _given.add(port)  # what was given may not be listened on yet
            return port
    raise ProcessFailed("no free port was found")


def _own_ports() -> range:
    """Below what kernels take for outgoing connections; each worker of pytest-xdist has a part of its own."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    width = 12_000 // workers
    return range(20_000 + worker * width, 20_000 + (worker + 1) * width)


def environment() -> dict[str, str]:
    """Ours, less what would send loopback traffic through a proxy or point a component at another cluster."""
    unwanted = {"http_proxy", "https_proxy", "all_proxy", "kubeconfig"}
    return {name: value for name, value in os.environ.items() if name.lower() not in unwanted}

"""A demo as a process: starts it, reads its lines as they come, and knows where its parts answer."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

T = TypeVar("T")
PATIENCE_S = 180.0  # this machine may be busy
_URL = re.compile(r"http://127\.0\.0\.1:(\d+)")


class Demo:
    """One `joulie demo`, without a terminal."""

    def __init__(self, *arguments: str, **env: str) -> None:
        command = [sys.executable, "-m", "joulie", "demo", "--port", "0", "--ports", *arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "CI": "1", **env}
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._leaving = False
        self.lines: list[str] = []
        self.errors: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=pair)
            for pair in ((self.process.stdout, self.lines), (self.process.stderr, self.errors))
        ]
        for reader in self._readers:
            reader.start()

    def wait_for_line(self, part: str) -> str:
        return wait_for(
            lambda: next((line for line in list(self.lines) if part in line), None), f"a line with {part!r}"
        )

    @property
    def dashboard(self) -> str:
        return _address(self.wait_for_line("dashboard at"))

    def part(self, name: str) -> str:
        """Where a part answers: operator, agent, extender, simulator."""
        return _address(self.wait_for_line(f"  {name:<12} http"))

    @property
    def ports(self) -> list[int]:
        self.wait_for_line("more agents")
        return [int(port) for line in list(self.lines) for port in _URL.findall(line)]

    def end(self, number: int = signal.SIGINT) -> None:
        self.process.send_signal(number)

    def hurry(self, number: int = signal.SIGINT) -> None:
        """A second signal, once the first was taken: the replays are not waited for. It may have ended before."""
        wait_for(lambda: self.process.poll() is not None or self._says_that_it_waits(), "sign of ending")
        if self.process.poll() is None:
            self.process.send_signal(number)

    def _says_that_it_waits(self) -> bool:
        return any("waiting for the replays" in line for line in list(self.lines))

    def leave(self) -> None:
        """Reads its lines no more, as `head` does."""
        self._leaving = True

    def wait(self) -> int:
        code = self.process.wait(PATIENCE_S)
        for reader in self._readers:
            reader.join(PATIENCE_S)
        return code

    def children(self) -> list[int]:
        """Processes that it has started and that still run (Linux)."""
        task = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in task.read_text().split()]

    def _read(self, stream: IO[str], lines: list[str]) -> None:
        for line in stream:
            lines.append(line.rstrip("\n"))
            if self._leaving and stream is self.process.stdout:
                break
        stream.close()


@contextmanager
def running(*arguments: str, **env: str) -> Iterator[Demo]:
    demo = Demo(*arguments, **env)
    try:
        yield demo
    finally:
        if demo.process.poll() is None:
            demo.process.kill()
        demo.wait()


def wait_for(found: Callable[[], T | None], what: str) -> T:
    """What a function finds, as soon as it finds something."""
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        if result := found():
            return result
        time.sleep(0.05)
    raise AssertionError(f"no {what} within {PATIENCE_S:.0f} s")


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def get_or_none(url: str) -> str | None:
    try:
        return get(url)
    except OSError:
        return None


def sample_total(page: str, name: str) -> float:
    """The sum of a metric's series."""
    values = [float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if re.match(rf"{name}[{{ ]", line)]
    return sum(values)


def _address(line: str) -> str:
    match = _URL.search(line)
    assert match is not None, line
    return match[0]

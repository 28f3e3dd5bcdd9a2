"""A Joulie command as a process of its own, looked at from outside: its log, its CPU time, its memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parents[1]


class JoulieProcess:
    """Runs until the end of the block. Settings are environment variables, as in a cluster."""

    def __init__(self, module: str, arguments: list[str], log: Path, **settings: str) -> None:
        self.log = log
        env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **settings}
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=env,
                cwd=ROOT,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def end(self, within_s: float) -> int:
        """Told to end, it does so in time; its exit code."""
        self._process.terminate()
        return self._process.wait(within_s)

    def stop(self) -> None:
        try:
            self.end(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def wait_until(self, there: Callable[[], bool], timeout_s: float, every_s: float = 0.02) -> None:
        """Until it is so; the log's end is shown where it never is."""
        deadline_s = time.monotonic() + timeout_s
        while not there():
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                raise TimeoutError(f"it did not get there:\n{self.log.read_text()[-3000:]}")
            time.sleep(every_s)

    def bound_files(self, most: int) -> None:
        """From now on it can have no more open files than that."""
        resource.prlimit(self._process.pid, resource.RLIMIT_NOFILE, (most, most))

    def cpu_s(self) -> float:
        """CPU time of the whole process so far, all its threads, user and system, to the nanosecond."""
        threads = Path(f"/proc/{self._process.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9

    def memory_mb(self) -> float:
        """What it has now."""
        return self._status_mb("VmRSS:")

    def peak_mb(self) -> float:
        """The most memory that it has had so far."""
        return self._status_mb("VmHWM:")

    def _status_mb(self, field: str) -> float:
        status = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        (line,) = (line for line in status if line.startswith(field))
        return int(line.split()[1]) * 1024 / 1e6

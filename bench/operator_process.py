"""`joulie operator` as a process of its own, looked at from outside: its log, its CPU time, its memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class OperatorProcess:
    """Runs until the end of the block. Settings are environment variables, as in a cluster."""

    def __init__(self, kubeconfig: Path, log: Path, port: int, **settings: str) -> None:
        self._log = log
        command = [sys.executable, "-m", "joulie", "operator", "--kubeconfig", str(kubeconfig)]
        env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "METRICS_ADDR": f"127.0.0.1:{port}"}
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**env, **settings}
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def decisions(self) -> list[dict[str, Any]]:
        """The log's line of each decision so far; asking for it costs the process nothing."""
        lines = self._log.read_text().splitlines()
        records = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        return [record for record in records if record["message"] == "decided"]

    def wait_for(self, condition: Callable[[list[dict[str, Any]]], bool], timeout_s: float) -> list[dict[str, Any]]:
        """Wait until the decisions so far fulfil the condition."""
        deadline_s = time.monotonic() + timeout_s
        while not condition(decisions := self.decisions()):
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                raise TimeoutError(f"the operator did not get there:\n{self._log.read_text()[-3000:]}")
            time.sleep(0.02)
        return decisions

    def wait_for_more(self, number: int, timeout_s: float) -> None:
        """Wait for so many further decisions."""
        reached = len(self.decisions()) + number
        self.wait_for(lambda decisions: len(decisions) >= reached, timeout_s)

    def cpu_s(self) -> float:
        """CPU time of the whole process so far, all its threads, user and system, to the nanosecond."""
        threads = Path(f"/proc/{self._process.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9

    def peak_mb(self) -> float:
        """The most memory that it has had so far."""
        status = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        (line,) = (line for line in status if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 / 1e6

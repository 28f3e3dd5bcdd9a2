"""`joulie operator` as a process of its own, followed by its log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.joulie_process import JoulieProcess


class OperatorProcess(JoulieProcess):
    """Runs until the end of the block. Settings are environment variables, as in a cluster."""

    def __init__(self, kubeconfig: Path, log: Path, port: int, **settings: str) -> None:
        arguments = ["operator", "--kubeconfig", str(kubeconfig)]
        super().__init__("joulie", arguments, log, METRICS_ADDR=f"127.0.0.1:{port}", **settings)

    def decisions(self) -> list[dict[str, Any]]:
        """The log's line of each decision so far; asking for it costs the process nothing."""
        lines = self.log.read_text().splitlines()
        records = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        return [record for record in records if record["message"] == "decided"]

    def wait_for(self, condition: Callable[[list[dict[str, Any]]], bool], timeout_s: float) -> list[dict[str, Any]]:
        """Wait until the decisions so far fulfil the condition."""
        self.wait_until(lambda: condition(self.decisions()), timeout_s)
        return self.decisions()

    def wait_for_more(self, number: int, timeout_s: float) -> None:
        """Wait for so many further decisions."""
        reached = len(self.decisions()) + number
        self.wait_for(lambda decisions: len(decisions) >= reached, timeout_s)

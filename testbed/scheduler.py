"""kube-scheduler beside the control plane, with a configuration of the test's choice (an extender, for instance)."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from testbed.processes import Child, Processes, free_port

READY_S = 30.0


class Scheduler:
    """A running kube-scheduler; stops at the end of a `with`, or with its control plane."""

    def __init__(
        self,
        binary: Path,
        processes: Processes,
        kubeconfig: Path,
        config: Mapping[str, Any],
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.port = free_port()
        complete = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            **config,
        }
        complete["clientConnection"] = {
            "qps": 2000,  # its own limit of 50 would hide what a test wants to measure
            "burst": 4000,
            **config.get("clientConnection", {}),
            "kubeconfig": str(kubeconfig),
        }
        config_file = processes.folder / f"scheduler-{self.port}.json"
        config_file.write_text(json.dumps(complete))
        command = [
            str(binary),
            f"--config={config_file}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={processes.folder}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics",
        ]
        self.process: Child = processes.start("kube-scheduler", command, env)
        self.process.wait_until(self._ready, READY_S)

    def metrics(self) -> str:
        """Its metrics page."""
        return self._get("/metrics")[1]

    def stop(self) -> None:
        """Stop it by its id."""
        self.process.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _ready(self) -> bool:
        try:
            return self._get("/readyz")[0] == 200
        except (OSError, HTTPException):
            return False

    def _get(self, path: str) -> tuple[int, str]:
        # It made its certificate itself a moment ago, so there is nothing to check it against.
        unchecked = ssl.create_default_context()
        unchecked.check_hostname = False
        unchecked.verify_mode = ssl.CERT_NONE
        connection = HTTPSConnection("127.0.0.1", self.port, context=unchecked, timeout=30)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

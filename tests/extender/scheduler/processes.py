"""`joulie extender` as a process with the rights of `deploy/rbac`, and what it says over HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tests.support.rights import Rights

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

READY_S = 30.0
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR")


class RunningExtender:
    """Ready when the constructor returns; killed at the end of the block. `start` brings it back on the same port."""

    def __init__(self, plane: ControlPlane, folder: Path, *, token: str = "", wait: bool = True, **env: str) -> None:
        from testbed.credentials import write_kubeconfig
        from testbed.processes import free_port

        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_file = folder / f"extender-{self.port}.log"
        config = folder / f"extender-{self.port}.config"
        write_kubeconfig(config, plane.url, plane.ca_file, token or Rights("extender").grant(plane))
        self._command = [sys.executable, "-m", "joulie", "extender", "--kubeconfig", str(config)]
        inherited = {name: value for name, value in os.environ.items() if name in _KEPT}
        address = f"127.0.0.1:{self.port}"
        self._env = {**inherited, "EXTENDER_ADDR": address, "METRICS_ADDR": address, **env}
        self._wait = wait
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._env
            )
        if self._wait:
            try:
                wait_until(self.ready, READY_S, "the extender is ready")
            except TimeoutError:
                self.kill()
                raise

    def kill(self) -> None:
        """Without a goodbye."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def ready(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(self.log_file.read_text())
        try:
            return self.ask("GET", "/readyz")[0] == 200
        except (OSError, HTTPException):
            return False

    def classes(self) -> dict[str, str]:
        """The class of every node, as it knows it now."""
        return {node["nodeName"]: node["schedulableClass"] for node in self.scoring()}

    def scoring(self) -> list[dict[str, Any]]:
        nodes: list[dict[str, Any]] = json.loads(self.ask("GET", "/debug/scoring")[1])["nodes"]
        return nodes

    def scores(self, pod: dict[str, Any], nodes: list[str]) -> dict[str, int]:
        """As kube-scheduler would ask."""
        status, body = self.ask("POST", "/prioritize", {"Pod": pod, "Nodes": None, "NodeNames": nodes})
        assert status == 200, body
        return {item["Host"]: item["Score"] for item in json.loads(body)}

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def wait_until(condition: Callable[[], bool], timeout_s: float, what: str) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"after {timeout_s:g} s still not: {what}")
        time.sleep(0.05)

"""Operators as real processes, each with an account of its own, and the API server's audit log of what each wrote."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from tests.support.rights import NAMESPACE, Rights

if TYPE_CHECKING:
    from testbed.control_plane import ControlPlane

WRITES = ["create", "update", "patch", "delete"]
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "verbs": WRITES, "userGroups": [f"system:serviceaccounts:{NAMESPACE}"]},
        {"level": "None"},
    ],
}


class Written(NamedTuple):
    """One write that the API server received, by whom and when."""

    account: str
    verb: str
    resource: str
    name: str
    at_s: float  # when it arrived
    code: int

    @property
    def acts(self) -> bool:
        """Whether it concerns the cluster and not the election."""
        return self.resource != "leases"

    @property
    def takes_lease(self) -> bool:
        return self.resource == "leases" and self.code < 300


class AuditLog:
    """What the API server itself says: nothing about a client has to be believed."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "audit.log"
        policy = folder / "audit-policy.json"
        policy.write_text(json.dumps(POLICY))
        self.flags = [f"--audit-policy-file={policy}", f"--audit-log-path={self._file}", "--audit-log-maxsize=1000"]

    def writes(self, since_s: float = 0.0) -> list[Written]:
        """All writes of operators that arrived since then, in the order of arrival."""
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        written = [_written(line) for line in lines if line.endswith("}")]
        return sorted((one for one in written if one.at_s >= since_s), key=lambda one: one.at_s)

    def acts(self, account: str, since_s: float = 0.0) -> list[Written]:
        """Those of one account that change the cluster."""
        return [one for one in self.writes(since_s) if one.account == account and one.acts]


def _written(line: str) -> Written:
    event = json.loads(line)
    target = event["objectRef"]
    return Written(
        event["user"]["username"].rpartition(":")[2],
        event["verb"],
        target["resource"],
        target.get("name", ""),
        datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp(),
        event.get("responseStatus", {}).get("code", 0),
    )


class RunningOperator:
    """`joulie operator` in a process, with the rights of `deploy/rbac` under an account of its own name."""

    def __init__(self, plane: ControlPlane, account: str, folder: Path, port: int, **env: str) -> None:
        from testbed.credentials import write_kubeconfig

        self.account = account
        self.log_file = folder / f"{account}.log"
        config = write_kubeconfig(
            folder / f"{account}.config", plane.url, plane.ca_file, Rights("operator").grant(plane, account)
        )
        command = [sys.executable, "-m", "joulie", "operator", "--kubeconfig", str(config)]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_environment(env, port)
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def kill(self) -> float:
        """As the kernel would, without a goodbye; when."""
        at_s = time.time()
        self.process.kill()
        self.process.wait()
        return at_s

    def freeze(self) -> float:
        at_s = time.time()
        self.process.send_signal(signal.SIGSTOP)
        return at_s

    def thaw(self) -> float:
        at_s = time.time()
        self.process.send_signal(signal.SIGCONT)
        return at_s

    def ask_to_stop(self) -> float:
        at_s = time.time()
        self.process.terminate()
        return at_s

    def log(self) -> list[dict[str, object]]:
        lines = self.log_file.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


def wait_until(condition: Callable[[], bool], timeout_s: float, what: str) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"after {timeout_s:g} s still not: {what}")
        time.sleep(0.05)


def _environment(more: Mapping[str, str], port: int) -> dict[str, str]:
    """Ours without settings of Joulie's that a developer may have exported, and without any other cluster."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR")
    inherited = {name: value for name, value in os.environ.items() if name in kept}
    return {**inherited, "METRICS_ADDR": f"127.0.0.1:{port}", **more}

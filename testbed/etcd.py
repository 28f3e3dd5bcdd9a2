"""etcd, and what a test wants to do behind the API server's back: compact it, or load many objects at once."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterable, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from testbed.processes import Child, Processes, free_port

READY_S = 30.0
KEYS_PER_TRANSACTION = 500


class Etcd:
    """One member on loopback that never syncs its disk: its data is gone with the folder anyway."""

    def __init__(self, binary: Path, processes: Processes) -> None:
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        peer = f"http://127.0.0.1:{free_port()}"
        command = [
            str(binary),
            f"--data-dir={processes.folder / f'etcd-{self._port}'}",
            f"--listen-client-urls={self.url}",
            f"--advertise-client-urls={self.url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            f"--quota-backend-bytes={8 << 30}",
            f"--max-request-bytes={32 << 20}",
            f"--max-txn-ops={KEYS_PER_TRANSACTION}",
            "--log-level=warn",
        ]
        self.process: Child = processes.start("etcd", command)
        self.process.wait_until(self._healthy, READY_S)

    def revision(self) -> int:
        """The number of the last write."""
        answer = self._call("/v3/kv/range", {"key": _base64(b"/"), "count_only": True})
        return int(answer["header"]["revision"])

    def compact(self) -> int:
        """Forget every version of every object except the newest; the revision up to which history is gone.

        A write of no meaning comes first: etcd still has the state *at* the revision that it compacts, and that is not
        to be the last version that a client has seen.
        """
        self._call("/v3/kv/put", {"key": _base64(b"/testbed/compaction"), "value": ""})
        revision = self.revision()
        self._call("/v3/kv/compaction", {"revision": revision, "physical": True})
        return revision

    def put(self, entries: Iterable[tuple[str, bytes]]) -> None:
        """Write many keys, hundreds in each transaction. Only while no API server runs.

        The keys of a transaction share a revision, hence the objects a resourceVersion. An API server that starts later
        does not mind; one that watches would for a moment list some of them without the others.
        """
        waiting = iter(entries)
        while batch := list(itertools.islice(waiting, KEYS_PER_TRANSACTION)):
            puts = [{"request_put": {"key": _base64(key.encode()), "value": _base64(value)}} for key, value in batch]
            self._call("/v3/kv/txn", {"success": puts})

    def _call(self, path: str, body: Mapping[str, Any]) -> Any:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise OSError(f"etcd {path}: {answer.status}: {content.decode(errors='replace')[:300]}")
        return json.loads(content)

    def _healthy(self) -> bool:
        try:
            self.revision()
        except OSError:
            return False
        return True


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()

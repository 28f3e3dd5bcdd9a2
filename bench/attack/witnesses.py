"""Who looks on while a port is attacked: is the lease kept, are caps set, are questions answered?"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from bench.extender.client import Times

if TYPE_CHECKING:
    from testbed.api import Api

LEASE = "/apis/coordination.k8s.io/v1/namespaces/joulie-system/leases/joulie-operator"
PINS = "/apis/joulie.io/v1alpha1/nodepowerprofiles"


class Witness(threading.Thread):
    """Looks again and again until the end of the block; what it cannot see is a fault."""

    def __init__(self, look: Callable[[], None], every_s: float) -> None:
        super().__init__(daemon=True)
        self._look, self._every_s = look, every_s
        self._over = threading.Event()
        self.faults: list[str] = []
        self.looks = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while not self._over.wait(self._every_s):
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - told in the table
                self.faults.append(f"{type(error).__name__}: {error}"[:200])
            self.looks += 1


class LeaseWatch:
    """Who holds the lease, and how long it goes without being renewed."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._renewed, self._renewed_s = "", time.monotonic()
        self.holders: set[str] = set()
        self.latest_s = 0.0
        self.look()

    def look(self) -> None:
        spec = self._api.get(LEASE)["spec"]
        now_s = time.monotonic()
        self.holders.add(spec["holderIdentity"])
        self.latest_s = max(self.latest_s, now_s - self._renewed_s)
        if spec["renewTime"] != self._renewed:
            self._renewed, self._renewed_s = spec["renewTime"], now_s

    def anew(self) -> None:
        self.holders.clear()
        self.latest_s = 0.0
        self.look()


class Asked:
    """The same question on a connection that is kept; a closed one is opened again, as Go does."""

    def __init__(self, port: int, method: str, path: str, body: bytes = b"", *, kept: bool = True) -> None:
        self._port, self._question, self._kept = port, (method, path, body or None), kept
        self._connection: http.client.HTTPConnection | None = None
        self.times = Times()

    def look(self) -> None:
        began_s = time.perf_counter()
        try:
            status = self._ask()
        except (ConnectionError, http.client.HTTPException):
            status = self._ask()
        self.times.seconds.append(time.perf_counter() - began_s)
        if status != 200:
            raise ConnectionError(f"answered {status}")

    def _ask(self) -> int:
        connection, self._connection = self._connection, None
        connection = connection or http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            connection.request(*self._question)
            answer = connection.getresponse()
            answer.read()
        except BaseException:
            connection.close()
            raise
        if self._kept:
            self._connection = connection
        else:
            connection.close()
        return answer.status


class CapWatch:
    """One node that a person pins to and fro; its simulated machine tells when the cap is there."""

    def __init__(self, api: Api, node: str, simulator_port: int) -> None:
        self._api, self._node, self._port = api, node, simulator_port
        self._eco = False

    def turn(self, within_s: float) -> float:
        """Pin it to the other profile, and wait until its machine holds that; how long it took."""
        self._eco = not self._eco
        spec = {"nodeName": self._node, "profile": "eco" if self._eco else "performance"}
        kind = {"apiVersion": "joulie.io/v1alpha1", "kind": "NodePowerProfile"}
        began_s = time.monotonic()
        self._api.apply([{**kind, "metadata": {"name": f"pin-{self._node}"}, "spec": spec}])
        while self._is_capped() != self._eco:
            if time.monotonic() - began_s > within_s:
                return float("inf")
            time.sleep(0.1)
        return time.monotonic() - began_s

    def left(self) -> int:
        """Machines that are still held back."""
        return sum(node["cpu"]["capWatts"] is not None for node in json.loads(self._get("/debug/nodes")))

    def _is_capped(self) -> bool:
        cpu = json.loads(self._get(f"/state/{self._node}"))["cpu"]
        return cpu["capWatts"] is not None and cpu["capWatts"] < cpu["capRangeWatts"]["max"]

    def _get(self, path: str) -> bytes:
        """Also from a simulator that has no place for us at the first try."""
        for _ in range(20):
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                if answer.status == 200:
                    return answer.read()
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()
            time.sleep(0.1)
        raise ConnectionError(f"the simulator does not answer {path}")

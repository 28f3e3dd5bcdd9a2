"""The interface to wherever objects live: watch, write, lease. Kubernetes and memory implement it alike.

Every process sees the cluster through this port alone. Writes are small merge patches; reads are watches. One contract
suite runs against both implementations.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from joulie.errors import JoulieError
from joulie.model import names

T = TypeVar("T")
Decode = Callable[[bytes], T]  # ValueError: the object is broken, and says where
MaySend = Callable[[], bool]  # asked at the last moment before a write leaves: False, and it does not


class Resource(NamedTuple):
    """A kind of object and where the API server keeps it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", *, status: bool = False) -> str:
        """The URL path of all objects, of those of a namespace, of one, or of its status."""
        parts = [f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{namespace}")
        parts.append(self.plural)
        if name:
            parts.append(name)
        if status:
            parts.append("status")
        return "/".join(parts)


NODES = Resource("", "v1", "nodes", "Node")
PODS = Resource("", "v1", "pods", "Pod", namespaced=True)
EVENTS = Resource("", "v1", "events", "Event", namespaced=True)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True)
NODE_HARDWARE = Resource(names.GROUP, names.VERSION, "nodehardwares", "NodeHardware")
NODE_TWINS = Resource(names.GROUP, names.VERSION, "nodetwins", "NodeTwin")
NODE_POWER_PROFILES = Resource(names.GROUP, names.VERSION, "nodepowerprofiles", "NodePowerProfile")
TELEMETRY_PROFILES = Resource(names.GROUP, names.VERSION, "telemetryprofiles", "TelemetryProfile")


class Upserted(NamedTuple, Generic[T]):
    """An object is new or has changed. The key is `name`, or `namespace/name`."""

    key: str
    object: T
    version: int = 0  # a later one is larger; 0: the server's versions are no numbers


class Deleted(NamedTuple):
    """An object is gone; also found out after a gap, by listing again."""

    key: str


class Broken(NamedTuple):
    """An object that could not be decoded: it counts as absent, and the reason names the field."""

    key: str
    reason: str


class Synced(NamedTuple):
    """Everything that existed when the list was taken has been told; comes after each list."""

    total: int


Change = Upserted[T] | Deleted | Broken | Synced


class ClusterError(JoulieError):
    """The API server answered no, or not at all."""

    def __init__(self, message: str, *, status: int = 0, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status  # 0: no answer
        self.retry_after_s = retry_after_s

    @property
    def may_pass(self) -> bool:
        """Whether the same call may succeed later: no answer, too many requests, or a fault of the server."""
        return self.status in (0, 408, 429) or self.status >= 500


class SilenceError(ClusterError):
    """A stream on which nothing has come for so long that something should have."""


class NotFoundError(ClusterError):
    """404: it is not there (any more)."""


class ConflictError(ClusterError):
    """409: it is there already, or somebody else changed it."""


class Cluster(Protocol):
    """Where objects live."""

    def watch(
        self, resource: Resource, decode: Decode[T], *, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[Sequence[Change[T]]]:
        """Batches of changes for ever: first what exists and `Synced`, then what happens.

        Survives everything that passes by itself (broken connections, expired versions, a restarted API server):
        after a gap it lists again and tells the difference, deletions included. Ends only when it is closed.
        """
        ...

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> bytes:
        """One object as JSON; NotFoundError."""
        ...

    async def create(
        self, resource: Resource, body: Mapping[str, Any], *, namespace: str = "", may_send: MaySend | None = None
    ) -> bytes:
        """A new object; ConflictError where one of that name exists. A status in the body is not taken."""
        ...

    async def replace(self, resource: Resource, body: Mapping[str, Any], *, namespace: str = "") -> bytes:
        """The object as a whole; ConflictError unless its resourceVersion is still the one in the body."""
        ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str = "",
        status: bool = False,
        may_send: MaySend | None = None,
    ) -> bytes:
        """A JSON merge patch (None removes a key) of the object or of its status; NotFoundError."""
        ...

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str | None = None,
        may_send: MaySend | None = None,
    ) -> None:
        """Remove it, if its uid is still that one; NotFoundError, ConflictError."""
        ...

    async def close(self) -> None:
        """End all connections and watches."""
        ...

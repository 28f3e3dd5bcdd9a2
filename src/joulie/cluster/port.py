"""The interface to where objects live: watches and writes. `api` implements it over HTTP, `memory` without a server.

Processes see the cluster only through this port. A status is written by server-side apply, because two processes share
its list of conditions; other writes are small merge patches. Each write names its field manager. Reads are watches. One
contract suite runs against both implementations.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from joulie.errors import JoulieError
from joulie.model import names

T = TypeVar("T")
Decode = Callable[[bytes], T]  # raises a ValueError that names the field
MaySend = Callable[[], bool]  # called right before a write is sent; False cancels it


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
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True)
NODE_HARDWARE = Resource(names.GROUP, names.VERSION, "nodehardwares", "NodeHardware")
NODE_TWINS = Resource(names.GROUP, names.VERSION, "nodetwins", "NodeTwin")
NODE_POWER_PROFILES = Resource(names.GROUP, names.VERSION, "nodepowerprofiles", "NodePowerProfile")
POWER_BUDGETS = Resource(names.GROUP, names.VERSION, "powerbudgets", "PowerBudget")
TELEMETRY_PROFILES = Resource(names.GROUP, names.VERSION, "telemetryprofiles", "TelemetryProfile")


class Upserted(NamedTuple, Generic[T]):
    """An object was added or modified. The key is `name`, or `namespace/name`."""

    key: str
    object: T
    version: int = 0  # grows with each change; 0 where the server's versions are not numbers


class Deleted(NamedTuple):
    """An object was deleted; after a gap, a new list reveals it."""

    key: str


class Undecodable(NamedTuple):
    """An object that could not be decoded: it is treated as absent, and the reason names the field."""

    key: str
    reason: str


class Synced(NamedTuple):
    """Everything in the list has been delivered; sent after each list."""

    total: int


Change = Upserted[T] | Deleted | Undecodable | Synced


class ClusterError(JoulieError):
    """The API server refused a request or did not answer it."""

    def __init__(self, message: str, *, status: int = 0, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status  # 0: no answer
        self.retry_after_s = retry_after_s

    @property
    def is_transient(self) -> bool:
        """Whether the same call may succeed later: no answer, too many requests, or a server error."""
        return self.status in (0, 408, 429) or self.status >= 500


class IdleTimeoutError(ClusterError):
    """A stream has been idle for longer than a healthy one ever is."""


class NotFoundError(ClusterError):
    """404: the object does not exist (any more)."""


class ConflictError(ClusterError):
    """409: the object exists already, or another client changed it."""


class Cluster(Protocol):
    """Where objects live."""

    def watch(
        self,
        resource: Resource,
        decode: Decode[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[Sequence[Change[T]]]:
        """Batches of changes without end: first everything that exists, then `Synced`, then each change.

        Survives broken connections, expired versions and a restarted API server: after a gap it lists again and
        yields the difference, deletions included. Ends only when it is closed. No namespace means all of them.
        """
        ...

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> bytes:
        """One object as JSON; NotFoundError."""
        ...

    async def create(
        self, resource: Resource, body: Mapping[str, Any], *, namespace: str = "", may_send: MaySend | None = None
    ) -> bytes:
        """A new object; ConflictError where one of that name exists. A status in the body is ignored."""
        ...

    async def replace(self, resource: Resource, body: Mapping[str, Any], *, namespace: str = "") -> bytes:
        """Replaces the whole object; ConflictError unless its resourceVersion is still the one in the body."""
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
        """Applies a JSON merge patch (None removes a key) to the object or its status; NotFoundError."""
        ...

    async def apply_status(
        self, resource: Resource, name: str, status: Mapping[str, Any], *, may_send: MaySend | None = None
    ) -> bytes:
        """Forced server-side apply of this client's fields in the status of one of Joulie's kinds; NotFoundError.

        Fields that this client applied before and omits now are removed, unless another client owns them too.
        """
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
        """Deletes the object if it still has this uid; NotFoundError, ConflictError."""
        ...

    async def close(self) -> None:
        """Closes all connections and ends all watches."""
        ...

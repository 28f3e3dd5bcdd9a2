"""A plain, synchronous client of the API server, for setting the scene: nothing that is under test goes through it."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterable, Mapping
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

Object = Mapping[str, Any]

PATIENCE_S = 20.0
MERGE_PATCH = "application/merge-patch+json"
# What the API server gives to an object: it refuses some of it in a create, and all of it is stale in an update.
SERVERS_OWN = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink")


class ApiError(Exception):
    """An answer that is not a success."""

    def __init__(self, status: int, message: str, request: str) -> None:
        super().__init__(f"{request}: {status}: {message}")
        self.status = status
        self.message = message


class ResourcePath(NamedTuple):
    """Where the objects of one kind are, as discovery tells it."""

    prefix: str
    plural: str
    namespaced: bool
    has_status: bool

    def of(self, manifest: Object) -> str:
        """The path of the collection that this object belongs to."""
        namespace = manifest["metadata"].get("namespace", "default")
        return (
            f"{self.prefix}/namespaces/{namespace}/{self.plural}" if self.namespaced else f"{self.prefix}/{self.plural}"
        )


class Api:
    """Requests with one identity."""

    def __init__(self, url: str, ca_file: Path, token: str) -> None:
        address = urlsplit(url)
        self.host, self.port = address.hostname or "", address.port or 443
        self.token = token
        self._tls = ssl.create_default_context(cafile=str(ca_file))
        self._kinds: dict[tuple[str, str], ResourcePath] = {}

    def get(self, path: str) -> Any:
        return json.loads(self.raw("GET", path))

    def post(self, path: str, body: Object) -> Any:
        return json.loads(self.raw("POST", path, body))

    def put(self, path: str, body: Object) -> Any:
        return json.loads(self.raw("PUT", path, body))

    def patch(self, path: str, body: Object, content_type: str = MERGE_PATCH) -> Any:
        return json.loads(self.raw("PATCH", path, body, content_type))

    def delete(self, path: str) -> Any:
        return json.loads(self.raw("DELETE", path))

    def raw(
        self, method: str, path: str, body: Object | None = None, content_type: str = "", timeout_s: float = 60
    ) -> bytes:
        """The answer's bytes; ApiError unless it is a success, OSError where there is no answer.

        Asks again while the answer is 429: for seconds after a start the API server prepares its caches.
        """
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            status, content = self._once(method, path, body, content_type, timeout_s)
            if status < 300:
                return content
            if status != 429 or time.monotonic() > deadline_s:
                raise ApiError(status, _message(content), f"{method} {path}")
            time.sleep(0.1)

    def _once(
        self, method: str, path: str, body: Object | None, content_type: str, timeout_s: float
    ) -> tuple[int, bytes]:
        connection = HTTPSConnection(self.host, self.port, context=self._tls, timeout=timeout_s)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type or "application/json"}
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def apply(self, objects: Iterable[Object]) -> None:
        """Create each object or replace the one of that name, its status included."""
        for manifest in objects:
            self._apply_one(manifest)

    def resource_path(self, api_version: str, kind: str) -> ResourcePath:
        """Discovery, asked once for each API version (and again for a kind that was not there before)."""
        if (api_version, kind) not in self._kinds:
            prefix = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            resources = self.get(prefix)["resources"]
            names = {resource["name"] for resource in resources}
            for resource in resources:
                name = resource["name"]
                if "/" not in name:
                    path = ResourcePath(prefix, name, resource["namespaced"], f"{name}/status" in names)
                    self._kinds[api_version, resource["kind"]] = path
        return self._kinds[api_version, kind]

    def _apply_one(self, manifest: Object) -> None:
        resource = self.resource_path(manifest["apiVersion"], manifest["kind"])
        collection = resource.of(manifest)
        path = f"{collection}/{manifest['metadata']['name']}"
        body = without_servers_own(manifest)
        while not self._create(collection, body) and not self._replace(path, body):
            time.sleep(0.05)  # it was being deleted, and is gone by now
        if resource.has_status and manifest.get("status"):
            self.patch(f"{path}/status", {"status": manifest["status"]})

    def _create(self, collection: str, body: Object) -> bool:
        """False where there is one of that name."""
        try:
            self.post(collection, body)
        except ApiError as error:
            if error.status != 409:
                raise
            return False
        return True

    def _replace(self, path: str, body: Object) -> bool:
        """Whatever was written meanwhile: components keep writing statuses of the same object. False: it is gone."""
        while True:
            try:
                version = self.get(path)["metadata"]["resourceVersion"]
                self.put(path, {**body, "metadata": {**body["metadata"], "resourceVersion": version}})
            except ApiError as error:
                if error.status == 404:
                    return False
                if error.status != 409:
                    raise
            else:
                return True


def without_servers_own(manifest: Object) -> dict[str, Any]:
    """The object as a person would write it."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in SERVERS_OWN}
    return {**manifest, "metadata": metadata}


def _message(content: bytes) -> str:
    try:
        return str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        return content.decode(errors="replace")[:500]

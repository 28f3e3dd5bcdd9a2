"""Machines and pods that do not exist, in numbers: through the API server, or straight into etcd if that is too slow.

Objects come from `bench.clusters`: as large as real ones, of several kinds of machine, in racks, labelled as managed.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import aiohttp
import msgspec

from bench.clusters import cluster
from testbed.api import MERGE_PATCH, without_servers_own
from testbed.control_plane import ControlPlane

Manifest = dict[str, Any]

CONCURRENCY = 64
KINDS = frozenset({"Node", "NodeHardware", "Pod"})  # twins are the operator's to make


def fill(plane: ControlPlane, nodes: int = 300, pods_per_node: int = 5, kinds: Iterable[str] = KINDS) -> None:
    """Create Ready nodes with their NodeHardware, and pods: most are bound and Running, a tenth is Pending.

    About 450 writes a second; a pod and a NodeHardware take two writes each, because a status is written apart.
    """
    objects = _chosen(nodes, pods_per_node, kinds)
    plane.apply(_namespaces(objects))
    asyncio.run(create_all(plane, objects))


def load(plane: ControlPlane, nodes: int = 5_000, pods_per_node: int = 10, kinds: Iterable[str] = KINDS) -> None:
    """The same objects, written into etcd while the API server is down: many times faster, and never validated.

    For measurements with tens of thousands of objects, where making them would take longer than what is measured. Ends
    every watch, because the API server is restarted.
    """
    store(plane, _chosen(nodes, pods_per_node, kinds))


def store(plane: ControlPlane, objects: Sequence[Manifest]) -> None:
    """Any objects, written into etcd as `load` does it."""
    plane.apply(_namespaces(objects))
    entries = [
        (_etcd_key(plane, item), _stored(item)) for item in objects
    ]  # asks the API server for names of resources
    plane.stop_apiserver()
    plane.etcd.put(entries)
    plane.start_apiserver()


async def create_all(plane: ControlPlane, objects: Iterable[Manifest], concurrency: int = CONCURRENCY) -> None:
    """POST each object, then its status if it has one (a node is taken with its own). Fails at the first refusal."""
    waiting = iter(objects)
    tls = ssl.create_default_context(cafile=str(plane.ca_file))
    headers = {"Authorization": f"Bearer {plane.admin_token}"}
    connector = aiohttp.TCPConnector(limit=concurrency, ssl=tls)
    async with (
        aiohttp.ClientSession(plane.url, connector=connector, headers=headers) as session,
        asyncio.TaskGroup() as workers,
    ):
        for _ in range(concurrency):
            workers.create_task(_create_some(plane, session, waiting))


async def _create_some(plane: ControlPlane, session: aiohttp.ClientSession, waiting: Iterator[Manifest]) -> None:
    for item in waiting:
        resource = plane.api.resource_path(item["apiVersion"], item["kind"])
        path = resource.of(item)
        await _send(session, "POST", path, without_servers_own(item), "application/json")
        if resource.has_status and item["kind"] != "Node" and item.get("status"):
            status = {"status": item["status"]}
            await _send(session, "PATCH", f"{path}/{item['metadata']['name']}/status", status, MERGE_PATCH)


async def _send(session: aiohttp.ClientSession, method: str, path: str, body: Manifest, content_type: str) -> None:
    headers = {"Content-Type": content_type}
    async with session.request(method, path, data=msgspec.json.encode(body), headers=headers) as answer:
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status}: {(await answer.text())[:300]}")
        await answer.read()


def _chosen(nodes: int, pods_per_node: int, kinds: Iterable[str]) -> list[Manifest]:
    wanted = frozenset(kinds)
    return [_admissible(item) for item in cluster(nodes, pods_per_node) if item["kind"] in wanted]


def _admissible(item: Manifest) -> Manifest:
    """The API server takes a pod that asks for a GPU only if that is its limit, too."""
    if item["kind"] == "Pod":
        for container in item["spec"]["containers"]:
            asked = container["resources"]["requests"]
            devices = {name: amount for name, amount in asked.items() if "/" in name}
            container["resources"]["limits"] = {**container["resources"].get("limits", {}), **devices}
    return item


def _namespaces(objects: Iterable[Manifest]) -> list[Manifest]:
    names = sorted({item["metadata"]["namespace"] for item in objects if "namespace" in item["metadata"]})
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]


def _etcd_key(plane: ControlPlane, item: Manifest) -> str:
    metadata = item["metadata"]
    match item["kind"]:
        case "Node":
            return f"/registry/minions/{metadata['name']}"
        case "Pod":
            return f"/registry/pods/{metadata['namespace']}/{metadata['name']}"
        case kind:
            group = item["apiVersion"].split("/")[0]
            plural = plane.api.resource_path(item["apiVersion"], kind).plural
            return f"/registry/{group}/{plural}/{metadata['name']}"


def _stored(item: Manifest) -> bytes:
    """As the API server would keep it: with a uid, without a version, which is etcd's to give."""
    metadata = {key: value for key, value in item["metadata"].items() if key != "resourceVersion"}
    name = f"{item['kind']}/{metadata.get('namespace', '')}/{metadata['name']}"
    metadata |= {"uid": str(uuid5(NAMESPACE_URL, name)), "generation": 1}
    return msgspec.json.encode({**item, "metadata": metadata})

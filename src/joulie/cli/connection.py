"""A connection to a live cluster for the duration of one command; errors become one line with a next step."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import click
from msgspec import Raw

from joulie.cluster.api.cluster import LIST_TIMEOUT_S, PAGE_SIZE, KubernetesCluster, read_page
from joulie.cluster.api.credentials import Credentials, find_credentials
from joulie.cluster.api.transport import Transport
from joulie.cluster.port import ClusterError, NotFoundError, Resource
from joulie.cluster.watch.list_watch import GONE
from joulie.errors import InputError, JoulieError
from joulie.model.names import CLI_MANAGER

T = TypeVar("T")

UNAUTHORIZED, FORBIDDEN = 401, 403
_DENIED = re.compile(r'User "([^"]*)" cannot (\S+) resource "([^"]*)"(?: in API group "([^"]*)")?(.*)')


class ClusterConnection:
    """An authenticated connection: `cluster` for single objects, `list_all` for many, `call` for any other path."""

    def __init__(self, credentials: Credentials, *, timeout_s: float = 10.0) -> None:
        self.credentials = credentials
        self.cluster = KubernetesCluster(credentials, field_manager=CLI_MANAGER, timeout_s=timeout_s, connections=32)
        self.transport = Transport(credentials, timeout_s=timeout_s, connections=32)

    async def list_all(
        self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Sequence[Raw]:
        """All objects, still encoded, fetched page by page; starts over once if the paging token expires."""
        try:
            return await self._pages(resource, namespace, labels, fields)
        except ClusterError as error:
            if error.status != GONE:
                raise
        return await self._pages(resource, namespace, labels, fields)

    async def list_if_served(self, resource: Resource) -> Sequence[Raw] | None:
        """None if the API server does not know the kind."""
        try:
            return await self.list_all(resource)
        except NotFoundError:
            return None

    async def call(self, path: str) -> bytes:
        """GETs any path."""
        return await self.transport.call("GET", path)

    async def close(self) -> None:
        await self.cluster.close()
        await self.transport.close()

    async def _pages(self, resource: Resource, namespace: str, labels: str, fields: str) -> list[Raw]:
        query = {"limit": str(PAGE_SIZE)}
        query |= {key: text for key, text in (("labelSelector", labels), ("fieldSelector", fields)) if text}
        path = resource.path(namespace)
        found: list[Raw] = []
        while True:
            data = await self.transport.call("GET", path, query=query, timeout_s=LIST_TIMEOUT_S)
            try:
                page = read_page(data)
            except ValueError as error:
                raise ClusterError(f"GET {path}: the response is not a list: {error}") from None
            found += page.items
            if not page.continue_token:
                return found
            query["continue"] = page.continue_token


def on_connection(
    kubeconfig: str, context: str, work: Callable[[ClusterConnection], Awaitable[T]], *, timeout_s: float = 10.0
) -> T:
    """Returns what the work returns; any cluster error becomes one line that says what to do about it."""
    credentials = credentials_or_files(kubeconfig, context)

    async def connected() -> T:
        connection = ClusterConnection(credentials, timeout_s=timeout_s)
        try:
            return await work(connection)
        finally:
            await connection.close()

    try:
        return asyncio.run(connected())
    except ClusterError as error:
        raise JoulieError(explained(error, credentials)) from error


def credentials_or_files(kubeconfig: str, context: str) -> Credentials:
    """The credentials that kubectl would use; the error without any mentions that files work too."""
    try:
        return find_credentials(os.environ, kubeconfig=kubeconfig, context=context, home=_home())
    except InputError as error:
        if str(error).startswith("no cluster:"):
            raise InputError(f"{error}; {files_work_too()}") from None
        raise


def files_work_too() -> str:
    """How to pass objects without a cluster, using the command that was typed."""
    context = click.get_current_context(silent=True)
    command = context.command_path if context else "joulie plan"
    if not context or not any(parameter.name == "filenames" for parameter in context.command.params):
        return "this command needs a live cluster"
    return (
        f"files work too: kubectl get nodes,pods -A -o json | {command} -f -   (if Joulie is installed, get "
        "nodes,pods,nodehardwares,nodetwins,nodepowerprofiles)"
    )


def explained(error: ClusterError, credentials: Credentials) -> str:
    """One line that says what happened and what to do next."""
    if error.status == UNAUTHORIZED:
        return f"{credentials.url} rejects the credentials of {credentials.origin}: log in again, or use --context"
    if error.status == FORBIDDEN:
        return forbidden(str(error))
    if error.status == 0:
        return (
            f"{error}; is the cluster up, and is it the right one? ({credentials.origin}; use another with --context)"
        )
    return str(error)


def forbidden(message: str) -> str:
    """`… is not allowed to list pods …`, taken from the API server's message."""
    match = _DENIED.search(message)
    if match is None:
        return f"{message}; ask an administrator for that permission"
    user, verb, resource, group, where = match.groups()
    full = f"{resource}.{group}" if group else resource
    return (
        f"{user} is not allowed to {verb} {full}{where.rstrip('.')}: ask an administrator for that permission "
        f"(to check: kubectl auth can-i {verb} {full} -A)"
    )


def _home() -> Path | None:
    """From the environment only: without HOME, a command must not look up a home directory."""
    return Path(os.environ["HOME"]) if os.environ.get("HOME") else None

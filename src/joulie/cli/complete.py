"""Names of nodes and pods for tab completion: what the cluster answers within a moment, else nothing."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    import click

    from joulie.cluster.port import Resource

MOMENT_S = 2.0  # a person who pressed tab waits no longer
MOST = 500


def complete_node(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from joulie.cluster.port import NODES

    return _complete(ctx, NODES, incomplete)


def complete_pod(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from joulie.cluster.port import PODS

    return _complete(ctx, PODS, incomplete)


def _complete(ctx: click.Context, resource: Resource, incomplete: str) -> list[CompletionItem]:
    """Whatever goes wrong, the shell must not be disturbed."""
    if ctx.params.get("filenames"):
        return []
    with contextlib.suppress(Exception):
        names = _names(ctx.params.get("kubeconfig") or "", ctx.params.get("context") or "", resource)
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return []


def _names(kubeconfig: str, context: str, resource: Resource) -> list[str]:
    import asyncio

    import msgspec

    from joulie.cli.connection import Connection, on_connection
    from joulie.cluster.kubernetes import read_page

    async def work(connection: Connection) -> list[str]:
        query = {"limit": str(MOST)}
        async with asyncio.timeout(MOMENT_S):
            page = read_page(await connection.transport.call("GET", resource.path(), query=query))
        bodies: list[dict[str, Any]] = [msgspec.json.decode(item) for item in page.items]
        return sorted(_name(body["metadata"]) for body in bodies)

    return on_connection(kubeconfig, context, work, timeout_s=MOMENT_S)


def _name(metadata: dict[str, Any]) -> str:
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])

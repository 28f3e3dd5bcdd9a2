"""Names of nodes and pods for tab completion, if the cluster answers quickly; otherwise none."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    import click

    from joulie.cluster.port import Resource

TIMEOUT_S = 2.0  # people who press Tab do not wait longer
MAX_NAMES = 500


def complete_node(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from joulie.cluster.port import NODES

    return _complete(ctx, NODES, incomplete)


def complete_pod(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from joulie.cluster.port import PODS

    return _complete(ctx, PODS, incomplete)


def complete_budget(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from joulie.cluster.port import POWER_BUDGETS

    return _complete(ctx, POWER_BUDGETS, incomplete)


def complete_group(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Budgets, and after a slash the groups that the operator reported."""
    if "/" not in incomplete:
        return complete_budget(ctx, param, incomplete)
    with contextlib.suppress(Exception):
        kubeconfig, context = ctx.params.get("kubeconfig") or "", ctx.params.get("context") or ""
        return [CompletionItem(name) for name in _groups(kubeconfig, context) if name.startswith(incomplete)]
    return []


def complete_what_if(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(f"{item.value}:watts=") for item in complete_group(ctx, param, incomplete)]


def _complete(ctx: click.Context, resource: Resource, incomplete: str) -> list[CompletionItem]:
    """Suppresses every error: the shell must not be disturbed."""
    if ctx.params.get("filenames"):
        return []
    with contextlib.suppress(Exception):
        names = _names(ctx.params.get("kubeconfig") or "", ctx.params.get("context") or "", resource)
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return []


def _names(kubeconfig: str, context: str, resource: Resource) -> list[str]:
    import asyncio

    import msgspec

    from joulie.cli.connection import ClusterConnection, on_connection
    from joulie.cluster.api.cluster import read_page

    async def work(connection: ClusterConnection) -> list[str]:
        query = {"limit": str(MAX_NAMES)}
        async with asyncio.timeout(TIMEOUT_S):
            page = read_page(await connection.transport.call("GET", resource.path(), query=query))
        bodies: list[dict[str, Any]] = [msgspec.json.decode(item) for item in page.items]
        return sorted(_name(body["metadata"]) for body in bodies)

    return on_connection(kubeconfig, context, work, timeout_s=TIMEOUT_S)


def _groups(kubeconfig: str, context: str) -> list[str]:
    import msgspec

    from joulie.cli.connection import ClusterConnection, on_connection
    from joulie.cluster.port import POWER_BUDGETS

    async def work(connection: ClusterConnection) -> list[str]:
        bodies = [msgspec.json.decode(body) for body in await connection.list_all(POWER_BUDGETS)]
        return sorted(
            f"{body['metadata']['name']}/{group['value']}"
            for body in bodies
            for group in (body.get("status") or {}).get("groups") or ()
            if group["value"]
        )

    return on_connection(kubeconfig, context, work, timeout_s=TIMEOUT_S)


def _name(metadata: dict[str, Any]) -> str:
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])

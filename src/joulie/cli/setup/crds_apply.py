"""`joulie crds apply`: install or update the definitions in a cluster, if what is stored there is still understood."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from joulie import __version__
from joulie.cli.options import duration_option, reads_cluster
from joulie.errors import JoulieError

if TYPE_CHECKING:
    from joulie.cli.connection import ClusterConnection
    from joulie.cli.options import ObjectSource

APPLY = "application/apply-patch+yaml"
POLL_S = 0.2


@click.command("apply")
@click.option("--dry-run", is_flag=True, help="Let the API server check them, and change nothing.")
@duration_option(
    "--timeout", "timeout_s", default="1m", show_default=True, help="How long to wait until they are served."
)
@reads_cluster
def command(source: ObjectSource, dry_run: bool, timeout_s: float) -> None:
    """Install or update the definitions in a cluster.

    Helm installs definitions once and never updates them, so run this before an upgrade, or set crds.upgrade in the
    chart. Objects stay as they are. A cluster that stores objects in a version that this joulie does not know is left
    alone, with exit code 1.
    """
    from joulie.cli.connection import on_connection

    for line in on_connection(source.kubeconfig, source.context, lambda one: _apply(one, dry_run, timeout_s)):
        click.echo(line)


async def _apply(connection: ClusterConnection, dry_run: bool, timeout_s: float) -> list[str]:
    from joulie.cluster.crds.definitions import crds

    ours = {crd["metadata"]["name"]: crd for crd in crds()}
    before = {name: await _definition(connection, name) for name in ours}
    for name, crd in ours.items():
        _refuse_unknown_versions(name, crd, before[name])
    lines = []
    for name, crd in ours.items():
        generation = before[name].get("metadata", {}).get("generation")
        after = await _patch(connection, name, crd, dry_run)
        word = "created" if not before[name] else "unchanged"
        if generation is not None and after["metadata"]["generation"] != generation:
            word = "updated"
        lines.append(f"{name} {word}{' (dry run)' if dry_run else ''}")
    if not dry_run:
        await _established(connection, list(ours), timeout_s)
    return lines


def _refuse_unknown_versions(name: str, crd: dict[str, Any], there: dict[str, Any]) -> None:
    stored = there.get("status", {}).get("storedVersions") or []
    unknown = set(stored) - {version["name"] for version in crd["spec"]["versions"]}
    if unknown:
        raise JoulieError(
            f"{name}: the cluster stores objects as {', '.join(sorted(unknown))}, which joulie {__version__} does not "
            "know: use the joulie that was installed last, or a newer one"
        )


async def _definition(connection: ClusterConnection, name: str) -> dict[str, Any]:
    import msgspec

    from joulie.cli.installation.workloads import DEFINITIONS
    from joulie.cluster.port import NotFoundError

    try:
        found: dict[str, Any] = msgspec.json.decode(await connection.cluster.get(DEFINITIONS, name))
    except NotFoundError:
        return {}
    return found


async def _patch(connection: ClusterConnection, name: str, crd: dict[str, Any], dry_run: bool) -> dict[str, Any]:
    import msgspec

    from joulie.cli.installation.workloads import DEFINITIONS
    from joulie.model.names import CLI_MANAGER

    # Take over fields that Helm or kubectl own.
    query = {"fieldManager": CLI_MANAGER, "force": "true"} | ({"dryRun": "All"} if dry_run else {})
    path = f"{DEFINITIONS.path()}/{name}"
    answer = await connection.transport.call(
        "PATCH", path, query=query, body=msgspec.json.encode(crd), content_type=APPLY
    )
    patched: dict[str, Any] = msgspec.json.decode(answer)
    return patched


async def _established(connection: ClusterConnection, names: list[str], timeout_s: float) -> None:
    """Until the API server serves them: only then do objects of these kinds find their place."""
    waiting = list(names)
    try:
        async with asyncio.timeout(timeout_s):
            while waiting := [name for name in waiting if not _is_served(await _definition(connection, name))]:
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise JoulieError(f"not served after {timeout_s:.0f} s: {', '.join(waiting)}") from None


def _is_served(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

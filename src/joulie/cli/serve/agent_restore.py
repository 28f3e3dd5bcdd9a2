"""`joulie agent restore`: restore every device to its original state, using only the journal and the devices."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from joulie.agent.budget.order_file import OrderFile
    from joulie.agent.restore.journal import Journal
    from joulie.devices.http.client import HttpClient
    from joulie.devices.interface import Capper
    from joulie.settings import AgentSettings

_EPILOG = """\b
By hand on a node whose agent is stopped, or, where no power budgets are used, in a container's preStop
hook. Needs no API server. It lifts the caps of power budgets, too, and says so. What cannot be restored
is reported and stays in the journal, and the exit code is 1.

\b
Settings are environment variables: STATE_DIR, HOST_SYS_PATH
"""


@click.command("restore", epilog=_EPILOG)
def command() -> None:
    """Restore every device to its state before the first cap."""
    import asyncio

    from joulie.settings import AgentSettings, load

    settings = load(AgentSettings, os.environ)
    if settings.simulate_only:
        click.echo("SIMULATE_ONLY: nothing is written, so nothing is restored")
        return
    raise click.exceptions.Exit(asyncio.run(_restore(settings)))


async def _restore(settings: AgentSettings) -> int:
    """Returns the exit code: 1 if something could not be restored."""
    from joulie.agent.budget.order_file import NotKeptError

    lines, incomplete = 0, set[str]()
    state_dir = Path(settings.state_dir)
    for journal in _journals(state_dir):
        report = [notice.message for notice in journal.notices]
        if journal.lost:
            incomplete.add(journal.node)
            report = report or [journal.lost]
        elif journal.entries:
            done, results = await _restore_one(journal, settings)
            report += results
            if not done:
                incomplete.add(journal.node)
        lines += len(report)
        for line in report:
            click.echo(line)
    for file in _orders(state_dir):
        lines += 1
        if file.node in incomplete:
            click.echo(f"{file.node}: the order of a power budget stays until everything is restored")
            continue
        held = file.unusable or _held(file)
        try:
            file.keep(None)
            click.echo(f"{file.node}: {held}: its caps are lifted; a budget that still holds this node caps it again")
        except NotKeptError as error:
            incomplete.add(file.node)
            click.echo(f"{file.node}: {held}: this order is not forgotten: {error}")
    if not lines:
        click.echo("nothing to restore")
    if incomplete:
        click.echo("next: fix the problems above and run this again; the journal keeps what is left", err=True)
    return 1 if incomplete else 0


def _orders(state_dir: Path) -> list[OrderFile]:
    """What agents with this STATE_DIR have been ordered by power budgets."""
    from joulie.agent.budget.order_file import OrderFile, order_path

    own = order_path(state_dir)
    pool = sorted(order_path(state_dir, "x").parent.glob("*.json"))
    return [OrderFile.open(path, None) for path in (*([own] if own.exists() else []), *pool)]


def _held(file: OrderFile) -> str:
    if file.kept is None:
        return "a power budget held it"
    cpu_w, gpu_w = file.kept.order.caps
    boards = f" and {gpu_w:g} W for each GPU" if gpu_w else ""
    return f"a power budget held it to {cpu_w:g} W for each CPU package{boards} (order {file.kept.order.number})"


async def _restore_one(journal: Journal, settings: AgentSettings) -> tuple[bool, list[str]]:
    from joulie.agent.routing.restore_entries import restore_entries

    cappers, close = _devices(journal, settings)
    try:
        results = await restore_entries(journal, cappers)
    finally:
        await close()
    lines = [f"{journal.node}: {item.knob.device} {item.knob.attribute} {item.message}" for item in results]
    return all(item.done for item in results), lines


def _journals(state_dir: Path) -> list[Journal]:
    """The machine's own journal, and those of a pool's nodes."""
    from joulie.agent.restore.journal import POOL_BOOT_ID, POOL_FOLDER, Journal, journal_path, read_boot_id

    journals = []
    if (own := journal_path(state_dir)).exists():
        journals.append(Journal.open(own, node=None, boot_id=read_boot_id()))
    pool = sorted((state_dir / POOL_FOLDER).glob("*.json"))
    return journals + [Journal.open(path, node=None, boot_id=POOL_BOOT_ID) for path in pool]


def _devices(journal: Journal, settings: AgentSettings) -> tuple[list[Capper], Callable[[], Awaitable[None]]]:
    """Only the backends that the journal names: each may load a library."""
    from joulie.devices.backends import open_host
    from joulie.devices.host import Host
    from joulie.devices.sysfs import SysFs

    named = {entry.backend.split(":")[1] if entry.backend else "" for entry in journal.entries}
    host = Host(SysFs(settings.host_sys_path), settings.dvfs, found=journal.found)
    cappers = [capper for capper in open_host(host) if named & {capper.name, ""}]
    return _with_http(journal, settings, cappers) if "http" in named else (cappers, _close_all(cappers))


def _with_http(
    journal: Journal, settings: AgentSettings, cappers: list[Capper]
) -> tuple[list[Capper], Callable[[], Awaitable[None]]]:
    """Adds devices behind HTTP, at the addresses in the journal."""
    from joulie.agent.routing.restore_entries import http_cappers
    from joulie.devices.http.client import HttpClient

    client = HttpClient()
    cappers += http_cappers(client, journal.node, journal.entries, settings.telemetry_http_timeout_s)
    return cappers, _close_all([*cappers, client])


def _close_all(opened: Iterable[Capper | HttpClient]) -> Callable[[], Awaitable[None]]:
    async def close() -> None:
        for each in opened:
            await each.close()

    return close

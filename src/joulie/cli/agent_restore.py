"""`joulie agent restore`: put every device back as it was found, with the journal and the devices alone."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from joulie.agent.journal import Journal
    from joulie.devices.http_client import HttpClient
    from joulie.devices.interface import Capper
    from joulie.settings import AgentSettings

_EPILOG = """\b
For a container's preStop hook, or by hand on a node. It asks no API server. What cannot be put back now stays in the
journal and is said; then the exit code is 1.

\b
Settings are environment variables: STATE_DIR, HOST_SYS_PATH
"""


@click.command("restore", epilog=_EPILOG)
def command() -> None:
    """Put every device back as it was found before the first cap."""
    import asyncio

    from joulie.settings import AgentSettings, load

    settings = load(AgentSettings, os.environ)
    if settings.simulate_only:
        click.echo("SIMULATE_ONLY: nothing is written, so nothing is restored")
        return
    raise click.exceptions.Exit(asyncio.run(_restore(settings)))


async def _restore(settings: AgentSettings) -> int:
    """The exit code: 1 where something is left."""
    lines, complete = 0, True
    for journal in _journals(Path(settings.state_dir)):
        told = [notice.message for notice in journal.notices]
        if journal.lost:
            complete = False
            told = told or [journal.lost]
        elif journal.entries:
            done, results = await _restore_one(journal, settings)
            complete = complete and done
            told += results
        lines += len(told)
        for line in told:
            click.echo(line)
    if not lines:
        click.echo("nothing to restore")
    return 0 if complete else 1


async def _restore_one(journal: Journal, settings: AgentSettings) -> tuple[bool, list[str]]:
    from joulie.agent.restoring import restore_entries

    cappers, close = _devices(journal, settings)
    try:
        results = await restore_entries(journal, cappers)
    finally:
        await close()
    lines = [f"{journal.node}: {item.knob.device} {item.knob.attribute} {item.message}" for item in results]
    return all(item.done for item in results), lines


def _journals(state_dir: Path) -> list[Journal]:
    """The machine's own journal, and those of the nodes of a pool."""
    from joulie.agent.journal import POOL_BOOT_ID, POOL_FOLDER, Journal, journal_path, read_boot_id

    journals = []
    if (own := journal_path(state_dir)).exists():
        journals.append(Journal.open(own, node=None, boot_id=read_boot_id()))
    pool = sorted((state_dir / POOL_FOLDER).glob("*.json"))
    return journals + [Journal.open(path, node=None, boot_id=POOL_BOOT_ID) for path in pool]


def _devices(journal: Journal, settings: AgentSettings) -> tuple[list[Capper], Callable[[], Awaitable[None]]]:
    """The backends that the journal names, and no other: each of them may load a library."""
    from joulie.devices.sysfs import SysFs

    sysfs = SysFs(settings.host_sys_path)
    named = {entry.backend.split(":")[1] if entry.backend else "" for entry in journal.entries}
    cappers: list[Capper] = []
    if named & {"rapl", ""}:
        from joulie.devices.rapl import Rapl

        cappers.append(Rapl(sysfs, time.monotonic, found=journal.found))
    if named & {"hsmp", ""}:
        from joulie.devices.hsmp import Hsmp
        from joulie.devices.hsmp_sockets import open_mailbox

        cappers.append(Hsmp(sysfs, found=journal.found, mailbox=open_mailbox()))
    if named & {"dvfs", ""}:
        from joulie.devices.cpufreq import Cpufreq

        cappers.append(Cpufreq(sysfs, settings.dvfs))
    if named & {"nvidia", ""}:
        from joulie.devices.nvidia import nvidia_gpus

        cappers.append(nvidia_gpus())
    if named & {"amd", ""}:
        from joulie.devices.amd_gpus import amd_gpus

        cappers.append(amd_gpus(sysfs))
    return _with_http(journal, settings, cappers) if "http" in named else (cappers, _close_all(cappers))


def _with_http(
    journal: Journal, settings: AgentSettings, cappers: list[Capper]
) -> tuple[list[Capper], Callable[[], Awaitable[None]]]:
    """Devices behind HTTP: their names in the journal are the addresses that control them."""
    from joulie.agent.routing import beside
    from joulie.devices.http import HttpGpus, HttpThrottle, HttpWatts
    from joulie.devices.http_client import HttpClient, HttpNode

    client = HttpClient()
    for url in dict.fromkeys(entry.device for entry in journal.entries if ":http:" in entry.backend):
        at = HttpNode(client, url, telemetry_url=beside(url, "telemetry"), timeout_s=settings.telemetry_http_timeout_s)
        by_attribute = {capper.attribute: capper for capper in (HttpWatts, HttpThrottle, HttpGpus)}
        wanted = [entry.attribute for entry in journal.entries if entry.device == url]
        cappers += [by_attribute[name](at, journal.node) for name in wanted if name in by_attribute]
    return cappers, _close_all([*cappers, client])


def _close_all(opened: Iterable[Capper | HttpClient]) -> Callable[[], Awaitable[None]]:
    async def close() -> None:
        for each in opened:
            await each.close()

    return close

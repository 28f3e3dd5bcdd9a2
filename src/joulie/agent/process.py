"""The agent as a process: watches, ticks, reports and HTTP together, and a shutdown that leaves no cap behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from joulie.agent.budget.contact import BudgetContact
from joulie.agent.budget.sessions import FILE_NAME as SESSION_FILE
from joulie.agent.budget.sessions import Sessions
from joulie.agent.cluster_view import AgentScope, AgentView, keep_up_to_date
from joulie.agent.gpu_pods import GpuPods
from joulie.agent.metrics import AgentMetrics, render
from joulie.agent.node import AgentContext
from joulie.agent.pool import Pool
from joulie.agent.reporting.reporter import Reporter
from joulie.agent.restore.cap_lease import REFRESHES_FILE, Refreshes
from joulie.agent.restore.journal import read_boot_id
from joulie.agent.routing.wiring import HostDevices, Wiring
from joulie.agent.shards import shard_of
from joulie.catalogue.lookup import Catalogue
from joulie.cluster.port import NODE_TWINS, Cluster, ClusterError, Resource
from joulie.cluster.watch.log import ContactLog
from joulie.devices.http.client import HttpClient
from joulie.errors import InputError, SettingError
from joulie.lifetime import first_to_end, stop_on_signals
from joulie.logs import Log
from joulie.serving import HttpServer, serve
from joulie.settings import AgentSettings

PUT_BACK_S = 20.0  # of the 30 that Kubernetes gives a pod to end
PUT_BACK_S_PER_NODE = 0.01  # a large pool takes longer, and should be given the time
LAST_WORDS_S = 5.0
PROBES_A_LEASE = 4  # how often to probe a server that is silent
MISSED_TURNS = 5
RESERVED_DESCRIPTORS = 16  # for files, journal and connections at shutdown, however many clients took all others
SERVER_END_S = 2.0
MAX_NAMED = 20  # nodes that the last lines name one by one


async def run(  # noqa: PLR0913 - each is a part of the world that tests or the demo replace
    cluster: Cluster,
    contact: ContactLog,
    settings: AgentSettings,
    catalogue: Catalogue,
    *,
    reporter_name: str,
    stop: asyncio.Event | None = None,
    host: HostDevices | None = None,
    put_back_s: float = PUT_BACK_S,
    wall: Callable[[], float] = time.time,
    look_s: float | None = None,
) -> int:
    """Until SIGTERM, SIGINT or `stop`; then everything is put back as found. Exit code 1 where something is left.

    `wall` is the time that its reports carry. Where it runs faster than real seconds, `look_s` says how often to
    look for what is due.
    """
    log = Log("agent")
    stop = stop or stop_on_signals()
    shard = shard_of(settings)
    pool_mode = settings.mode == "pool"
    if not pool_mode and not settings.node_name:
        raise SettingError("NODE_NAME", "", "the name of the node that this agent runs on (spec.nodeName)")
    http = HttpClient()
    view = AgentView(AgentScope(settings, shard), _on_undecodable(log))
    reporter = Reporter(cluster, view, reporter_name, wall)
    if not pool_mode and host is None:
        host = HostDevices(settings, catalogue)
    around = AgentContext(
        settings,
        catalogue,
        view,
        Wiring(None if pool_mode else host, http),
        reporter,
        contact.clock,
        boot_id="" if pool_mode else read_boot_id(),
        refreshes=_refreshes(settings, shard.number),
        budget=BudgetContact(settings.budget_lease_s, lambda: contact.clock.watch_age_s(NODE_TWINS)),
        sessions=Sessions(_own_file(settings, shard.number, SESSION_FILE), writes=not settings.simulate_only),
        wall=wall,
    )
    pool = Pool(around, render)
    holders = GpuPods(settings.node_name, "" if pool_mode else settings.podresources_socket)
    metrics = AgentMetrics(pool, reporter, contact.clock, around.budget, holders)
    contact.on_relist, contact.on_error = metrics.count_relist, metrics.count_watch_error
    server = await serve(
        settings.metrics_addr,
        metrics.pieces,
        lambda: _sick(pool, settings),
        lambda: None if view.synced else "not all objects are known yet",
        connections=settings.max_connections,
    )
    reserve = [os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(RESERVED_DESCRIPTORS)]
    log.info("agent started", mode=settings.mode, **_who(settings, shard.number))
    tasks = [
        asyncio.create_task(keep_up_to_date(cluster, view)),
        asyncio.create_task(reporter.run() if look_s is None else _report_every(reporter, look_s)),
        asyncio.create_task(_keep_contact(cluster, contact, settings)),
        asyncio.create_task(around.budget.follow(cluster, settings.pod_namespace, pool.budget_contact_changed)),
        asyncio.create_task(holders.run(settings.reconcile_interval_s)),
    ]
    left: list[str] = []
    try:
        await first_to_end(asyncio.create_task(pool.run(stop)), *tasks)
    finally:
        _stop_serving(server, reserve)
        left = await _end(pool, reporter, tasks, log, put_back_s)
        await http.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SERVER_END_S):
                await server.cleanup()
    return 1 if left else 0


def _refreshes(settings: AgentSettings, shard: int) -> Refreshes:
    try:
        boot_id = read_boot_id()
    except InputError:
        boot_id = ""
    path = _own_file(settings, shard, REFRESHES_FILE)
    return Refreshes(path, boot_id, settings.cap_lease_s, time.monotonic())


def _own_file(settings: AgentSettings, shard: int, name: str) -> Path:
    """In STATE_DIR, which the shards of a pool may share."""
    prefix = f"{shard}-of-{settings.pool_shards}-" if settings.mode == "pool" else ""
    return Path(settings.state_dir) / f"{prefix}{name}"


def _stop_serving(server: HttpServer, reserve: list[int]) -> None:
    """First of all: waiting clients would take every descriptor that becomes free, and the devices need some."""
    server.stop_listening()
    while reserve:
        os.close(reserve.pop())


async def _end(
    pool: Pool, reporter: Reporter, tasks: list[asyncio.Task[None]], log: Log, put_back_s: float
) -> list[str]:
    """Devices first, then the last reports to the API server, each within its time."""
    began_s = time.monotonic()
    within_s = max(put_back_s, len(pool.nodes) * PUT_BACK_S_PER_NODE)
    left = await pool.put_back("the agent was stopped", within_s)
    await pool.close()
    for task in tasks[1:]:
        task.cancel()
    await asyncio.gather(*tasks[1:], return_exceptions=True)
    try:
        async with asyncio.timeout(LAST_WORDS_S):
            await reporter.flush(hurried=True)
    except TimeoutError:
        log.warning("not all last reports were written in time")
    tasks[0].cancel()
    await asyncio.gather(tasks[0], return_exceptions=True)
    took_s = round(time.monotonic() - began_s, 1)
    if left:
        for name in left[:MAX_NAMED]:
            for what in pool.nodes[name].still_capped():
                log.warning("still capped", node=name, what=what)
        log.warning(
            "agent stopped, but not everything could be put back: start it again with the same STATE_DIR, or run"
            " `joulie agent restore` there, once the devices answer",
            nodes=len(left),
            first=left[:5],
            seconds=took_s,
        )
    elif held := pool.held_by_budgets():
        log.info(
            "agent stopped, power budgets still hold these nodes: only an order of theirs or `joulie agent restore`"
            " lifts their caps",
            nodes=len(held),
            first=held[:5],
            seconds=took_s,
        )
    else:
        log.info("agent stopped, every device is as it was found", seconds=took_s)
    return left


async def _keep_contact(cluster: Cluster, contact: ContactLog, settings: AgentSettings) -> None:
    """Bookmarks come once a minute; for leases shorter than a few of these the server is asked before they end."""
    patience_s = settings.cap_lease_s / PROBES_A_LEASE
    while True:
        age_s = contact.clock.age_s()
        if age_s is not None and age_s >= patience_s:
            try:
                await cluster.get(NODE_TWINS, settings.node_name or "any")
            except ClusterError:  # not found is an answer, too; otherwise the watches say what is wrong
                age_s = None
        await asyncio.sleep(max(0.2, patience_s - (age_s or 0.0)) if age_s is not None else max(0.2, patience_s / 2))


async def _report_every(reporter: Reporter, every_s: float) -> None:
    while True:
        await reporter.flush()
        await asyncio.sleep(every_s)


def _who(settings: AgentSettings, shard: int) -> dict[str, object]:
    if settings.mode == "pool":
        return {"shard": shard, "shards": settings.pool_shards, "selector": settings.pool_node_selector.text}
    return {"node": settings.node_name}


def _on_undecodable(log: Log) -> Callable[[Resource, str, str], None]:
    def say(resource: Resource, key: str, reason: str) -> None:
        log.warning("object cannot be read; treated as absent", kind=resource.kind, object=key, reason=reason)

    return say


def _sick(pool: Pool, settings: AgentSettings) -> str | None:
    silent_s = time.monotonic() - pool.last_turn_s
    limit_s = MISSED_TURNS * max(settings.reconcile_interval_s, 10.0)
    return f"no node has been looked at for {silent_s:.0f} s" if silent_s > limit_s else None

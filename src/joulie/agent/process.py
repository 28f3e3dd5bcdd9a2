"""The agent as a process: watches, ticks, reports and HTTP together, and an end that leaves no cap behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from joulie.agent.journal import read_boot_id
from joulie.agent.metrics import AgentMetrics, render
from joulie.agent.node import Surroundings
from joulie.agent.pool import Pool
from joulie.agent.prometheus_power import prometheus_reader
from joulie.agent.reporting import Reporter
from joulie.agent.shards import shard_of
from joulie.agent.watching import Scope, View, keep_up_to_date
from joulie.agent.wiring import HostDevices, Wiring
from joulie.catalogue.lookup import Catalogue
from joulie.cluster.port import NODE_TWINS, Cluster, ClusterError, Resource
from joulie.cluster.watch_log import ContactLog
from joulie.devices.http_client import HttpClient
from joulie.errors import SettingError
from joulie.lifetime import first_to_end, stop_on_signals
from joulie.logs import Log
from joulie.serving import serve
from joulie.settings import AgentSettings

PUT_BACK_S = 20.0  # of the 30 that Kubernetes gives a pod to end
PUT_BACK_S_PER_NODE = 0.01  # a large pool takes longer, and should be given the time
LAST_WORDS_S = 5.0
PROBES_A_LEASE = 4  # so often the server is asked for a sign of life, where it gives none by itself
MISSED_TURNS = 5


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

    `wall` is the time that its reports carry. Where that runs faster than seconds do, `look_s` says how often to look
    what is due.
    """
    log = Log("agent")
    stop = stop or stop_on_signals()
    shard = shard_of(settings)
    pool_mode = settings.mode == "pool"
    if not pool_mode and not settings.node_name:
        raise SettingError("NODE_NAME", "", "the name of the node that this agent runs on (spec.nodeName)")
    http = HttpClient()
    view = View(Scope(settings, shard), _on_broken(log))
    reporter = Reporter(cluster, view, reporter_name, wall)
    if not pool_mode and host is None:
        host = HostDevices(settings, catalogue)
    around = Surroundings(
        settings,
        catalogue,
        view,
        Wiring(None if pool_mode else host, http, prometheus_reader(http)),
        reporter,
        contact.clock,
        boot_id="" if pool_mode else read_boot_id(),
        wall=wall,
    )
    pool = Pool(around, render)
    metrics = AgentMetrics(pool, reporter, contact.clock)
    contact.on_relist, contact.on_error = metrics.count_relist, metrics.count_watch_error
    server = await serve(
        settings.metrics_addr,
        metrics.page,
        lambda: _sick(pool, settings),
        lambda: None if view.synced else "not all objects are known yet",
    )
    log.info("agent started", mode=settings.mode, **_who(settings, shard.number))
    tasks = [
        asyncio.create_task(keep_up_to_date(cluster, view)),
        asyncio.create_task(reporter.run() if look_s is None else _report_every(reporter, look_s)),
        asyncio.create_task(_keep_contact(cluster, contact, settings)),
    ]
    left: list[str] = []
    try:
        await first_to_end(asyncio.create_task(pool.run(stop)), *tasks)
    finally:
        left = await _end(pool, reporter, tasks, log, put_back_s)
        await server.cleanup()
        await http.close()
    return 1 if left else 0


async def _end(
    pool: Pool, reporter: Reporter, tasks: list[asyncio.Task[None]], log: Log, put_back_s: float
) -> list[str]:
    """Devices first, then the last words to the API server, each within its time."""
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
        log.warning(
            "agent stopped, but not everything could be put back", nodes=len(left), first=left[:5], seconds=took_s
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
            except ClusterError:  # that it is not there is an answer, too; else the watches say what is wrong
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


def _on_broken(log: Log) -> Callable[[Resource, str, str], None]:
    def say(resource: Resource, key: str, reason: str) -> None:
        log.warning("object cannot be read, it counts as absent", kind=resource.kind, object=key, reason=reason)

    return say


def _sick(pool: Pool, settings: AgentSettings) -> str | None:
    silent_s = time.monotonic() - pool.last_turn_s
    limit_s = MISSED_TURNS * max(settings.reconcile_interval_s, 10.0)
    return f"no look at the nodes for {silent_s:.0f} s" if silent_s > limit_s else None

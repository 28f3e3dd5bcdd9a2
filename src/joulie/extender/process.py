"""The extender as a process: watches on one side, HTTP on the other, and an end that finishes what it has begun."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Sequence

from aiohttp import web

from joulie.catalogue.lookup import Catalogue
from joulie.cluster.port import PODS, Cluster, Resource
from joulie.cluster.slim import DECODERS
from joulie.cluster.watch_log import ContactLog
from joulie.control.board import ScoreBoard
from joulie.errors import InputError
from joulie.extender.allocator import keep_memory
from joulie.extender.answers import Answers
from joulie.extender.expected import ExpectedPods
from joulie.extender.metrics import ExtenderMetrics
from joulie.extender.server import Service
from joulie.extender.state import WATCHED, ExtenderState
from joulie.extender.tls import Certificate, certificate
from joulie.lifetime import first_to_end, stop_on_signals
from joulie.logs import Log
from joulie.serving import listen
from joulie.settings import ExtenderSettings

FINISH_S = 5.0  # how long a request that has begun may take when the process is told to end
SEND_S = 2.0  # and its answer to be sent, after that
# News of pods come by the hundred a second while a scheduler waits for every answer; together they cost little. The
# first is taken at once, those that follow at most so much later: what is on its way meanwhile is expected
# (`ExpectedPods`). Of a node's class nothing may be known late, and many twins at once would hold up a request for
# longer than one.
TOGETHER_S = {PODS: 0.1}
# The objects of a cluster live long and hold no cycles: looking through them for garbage would stall requests.
_GC_THRESHOLDS = (50_000, 20, 100)


class Extender:
    """Everything that a request needs, without a process around it."""

    def __init__(
        self, settings: ExtenderSettings, catalogue: Catalogue, now_s: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._log = Log("extender")
        board = ScoreBoard(settings.score, settings.marginal, settings.hardware, catalogue)
        board.on_freed = self._forget
        self.metrics = ExtenderMetrics(board, now_s)
        self.answers = Answers(board, settings.score.score_max)
        self.expected = ExpectedPods(board)
        self.state = ExtenderState(board, self._on_broken)
        self.state.on_settled = self.expected.settle
        self.service = Service(self.state, self.answers, self.expected, self.metrics, settings, now_s)

    async def watch(self, cluster: Cluster) -> None:
        """Follow the cluster for ever."""
        async with asyncio.TaskGroup() as watches:
            for resource in WATCHED:
                watches.create_task(self._watch(cluster, resource))

    async def after_sync(self) -> None:
        """Once everything is known, what is known is taken out of the search for garbage."""
        while not self.state.synced:
            await asyncio.sleep(0.05)
        gc.collect()
        gc.freeze()
        self._log.info("all objects are known", nodes=len(self.state.board.index), pods=len(self.state.pods))

    async def _watch(self, cluster: Cluster, resource: Resource) -> None:
        async for changes in cluster.watch(resource, DECODERS[resource]):
            self.state.take(resource, changes)
            if self.state.synced and resource in TOGETHER_S:
                await asyncio.sleep(TOGETHER_S[resource])

    def _forget(self, _name: str, row: int) -> None:
        self.expected.forget_rows()
        self.metrics.forget(row)

    def _on_broken(self, resource: Resource, key: str, reason: str) -> None:
        self.metrics.broken.labels(resource.kind).inc()
        self._log.warning("object cannot be read, it counts as absent", kind=resource.kind, object=key, reason=reason)


async def run(
    extender: Extender,
    settings: ExtenderSettings,
    cluster: Cluster | None,
    watch_log: ContactLog,
    *,
    stop: asyncio.Event | None = None,
) -> int:
    """Until SIGTERM, SIGINT or `stop`; exit code 0. Without a cluster it serves what it was given."""
    stop = stop or stop_on_signals()
    gc.set_threshold(*_GC_THRESHOLDS)
    metrics = extender.metrics
    watch_log.on_relist = lambda kind: metrics.relists.labels(kind).inc()
    watch_log.on_error = lambda kind: metrics.watch_errors.labels(kind).inc()
    metrics.contact_age.set_function(lambda: watch_log.clock.age_s() or 0.0)
    tuned = keep_memory()
    metrics.allocator_tuned.set(tuned)
    if not tuned:
        Log("extender").warning("the C library's allocator cannot be tuned: requests with whole nodes take longer")
    secret = certificate(settings)
    runners = await _listen(extender, settings, secret)
    background = [asyncio.create_task(extender.after_sync())]
    if cluster is not None:
        background.append(asyncio.create_task(extender.watch(cluster)))
    if secret is not None:
        background.append(asyncio.create_task(secret.follow()))
    try:
        await first_to_end(asyncio.create_task(_wait(stop)), *background[1:])
    finally:
        await _part(extender, runners)
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
    return 0


async def _part(extender: Extender, runners: Sequence[web.ServerRunner]) -> None:
    """Nobody new is let in, what has begun is answered, and then the connections end."""
    await asyncio.gather(*(site.stop() for runner in runners for site in runner.sites))
    servers = [runner.server for runner in runners if runner.server is not None]
    await extender.service.finish(lambda: any(server.connections for server in servers), FINISH_S)
    await asyncio.gather(*(runner.cleanup() for runner in runners))


async def _wait(stop: asyncio.Event) -> None:
    await stop.wait()


async def _listen(extender: Extender, settings: ExtenderSettings, secret: Certificate | None) -> list[web.ServerRunner]:
    """Where the scheduler calls, and where Prometheus and probes do; both know all paths."""
    runners: list[web.ServerRunner] = []
    places = [(settings.addr, "EXTENDER_ADDR", secret.context if secret else None)]
    if settings.metrics_addr != settings.addr:
        places.append((settings.metrics_addr, "METRICS_ADDR", None))
    try:
        for address, variable, context in places:
            runner = web.ServerRunner(extender.service.server(), shutdown_timeout=SEND_S)
            runners.append(runner)
            await runner.setup()
            await listen(runner, address, variable, context)
    except InputError:
        await asyncio.gather(*(runner.cleanup() for runner in runners))
        raise
    return runners

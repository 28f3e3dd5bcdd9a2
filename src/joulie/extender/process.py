"""The extender as a process: watches on one side, HTTP on the other, and a shutdown that finishes what has begun."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import time
from collections.abc import Callable, Sequence

from joulie.catalogue.lookup import Catalogue
from joulie.cluster.decoding.decoders import DECODERS
from joulie.cluster.port import PODS, Cluster, Resource
from joulie.cluster.watch.log import ContactLog
from joulie.control.placement.board import ScoreBoard
from joulie.errors import InputError
from joulie.extender.answers import Answers
from joulie.extender.metrics import ExtenderMetrics
from joulie.extender.pending_pods import PendingPods
from joulie.extender.server import Service
from joulie.extender.state import WATCHED, ExtenderState
from joulie.extender.tls import Certificate, certificate
from joulie.lifetime import first_to_end, stop_on_signals
from joulie.logs import Log
from joulie.serving import HttpServer
from joulie.settings import ExtenderSettings

FINISH_S = 5.0  # how long requests in progress may take at shutdown
# Hundreds of pod events a second arrive while a scheduler waits for every response; in batches they cost little. The
# first is processed at once, later ones after at most this time: until then `PendingPods` counts the pods, and a
# request about a pod that the watch has not shown yet ends the wait. Twins are not batched: a node's class must be
# current, and many twins at once would delay a request longer than one does.
TOGETHER_S, HURRIED_S = {PODS: 0.1}, 0.01
# A cluster's objects live long and have no reference cycles: garbage collection would only stall requests.
_GC_THRESHOLDS = (50_000, 20, 100)


class Extender:
    """State, scores and service together, without a process."""

    def __init__(
        self, settings: ExtenderSettings, catalogue: Catalogue, now_s: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._log = Log("extender")
        board = ScoreBoard(settings.score, settings.marginal, settings.hardware, catalogue)
        board.on_freed = self._forget
        self.metrics = ExtenderMetrics(board, now_s)
        self.answers = Answers(board, settings.score.score_max)
        self.state = ExtenderState(board, self._on_undecodable, now_s)
        self.metrics.clock_ahead.set_function(lambda: self.state.clock_ahead_s)
        self.pending_pods = PendingPods(board, self.state.waiting)
        self.state.on_settled, self.state.on_waiting = self.pending_pods.settle, self.pending_pods.confirm
        self._hurry = asyncio.Event()
        self.pending_pods.on_unconfirmed = self._hurry.set
        self.service = Service(self.state, self.answers, self.pending_pods, self.metrics, settings, now_s)

    async def watch(self, cluster: Cluster) -> None:
        """Watches the cluster until cancelled."""
        async with asyncio.TaskGroup() as watches:
            for resource in WATCHED:
                watches.create_task(self._watch(cluster, resource))

    async def after_sync(self) -> None:
        """After the first sync, exempts all objects from garbage collection."""
        while not self.state.synced:
            await asyncio.sleep(0.05)
        gc.collect()
        gc.freeze()
        self._log.info("all objects are known", nodes=len(self.state.board.index), pods=len(self.state.pods))

    async def _watch(self, cluster: Cluster, resource: Resource) -> None:
        async for changes in cluster.watch(resource, DECODERS[resource]):
            self.state.take(resource, changes)
            if self.state.synced and resource in TOGETHER_S:
                await asyncio.sleep(HURRIED_S)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._hurry.wait(), TOGETHER_S[resource])
                self._hurry.clear()

    def _forget(self, _name: str, row: int) -> None:
        self.pending_pods.forget_rows()
        self.metrics.forget(row)

    def _on_undecodable(self, resource: Resource, key: str, reason: str) -> None:
        self.metrics.undecodable.labels(resource.kind).inc()
        self._log.warning("object cannot be read; treated as absent", kind=resource.kind, object=key, reason=reason)


async def run(
    extender: Extender,
    settings: ExtenderSettings,
    cluster: Cluster | None,
    watch_log: ContactLog,
    *,
    stop: asyncio.Event | None = None,
) -> int:
    """Runs until SIGTERM, SIGINT or `stop`; exit code 0. Without a cluster it serves the objects it was given."""
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
    servers = await _listen(extender, settings, secret)
    background = [asyncio.create_task(extender.after_sync())]
    if cluster is not None:
        background.append(asyncio.create_task(extender.watch(cluster)))
    if secret is not None:
        background.append(asyncio.create_task(secret.follow()))
    try:
        await first_to_end(asyncio.create_task(_wait(stop)), *background[1:])
    finally:
        await _shut_down(extender, servers)
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
    return 0


async def _shut_down(extender: Extender, servers: Sequence[HttpServer]) -> None:
    """Stops listening, answers requests in progress, then closes the connections."""
    for server in servers:
        server.stop_listening()
    await extender.service.finish(lambda: any(server.connections for server in servers), FINISH_S)
    await asyncio.gather(*(server.cleanup() for server in servers))


async def _wait(stop: asyncio.Event) -> None:
    await stop.wait()


async def _listen(extender: Extender, settings: ExtenderSettings, secret: Certificate | None) -> list[HttpServer]:
    """One server for the scheduler, one for Prometheus and probes; both serve all paths."""
    servers: list[HttpServer] = []
    places = [(settings.addr, "EXTENDER_ADDR", secret.context if secret else None)]
    if settings.metrics_addr != settings.addr:
        places.append((settings.metrics_addr, "METRICS_ADDR", None))
    try:
        for address, variable, context in places:
            server = extender.service.server()
            await server.start(address, variable, context)
            servers.append(server)
    except InputError:
        await asyncio.gather(*(server.cleanup() for server in servers))
        raise
    return servers


# <malloc.h>
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
_KEEP_BYTES = 1 << 30
_TOP_PAD_BYTES = 64 << 20


def keep_memory() -> bool:
    """Makes glibc keep freed memory; False if the C library cannot (slower, but correct).

    A request with whole nodes is some 15 MB. By default glibc maps and unmaps such a block for each one, and the page
    faults cost more than the response (measured: 9,500 per request, with this none).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    wanted = ((_M_MMAP_THRESHOLD, _KEEP_BYTES), (_M_TRIM_THRESHOLD, _KEEP_BYTES), (_M_TOP_PAD, _TOP_PAD_BYTES))
    taken = [mallopt(option, value) == 1 for option, value in wanted]
    return all(taken)

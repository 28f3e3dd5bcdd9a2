"""Plays kube-scheduler: takes pending pods, filters what fits, asks the extender over HTTP, and binds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

import aiohttp
import msgspec

from joulie.cluster.decoding import decoders
from joulie.cluster.port import PODS, Cluster, ClusterError, Deleted, Upserted
from joulie.demo.live.extender_client import ExtenderClient
from joulie.demo.scenario.jobs import NAMESPACE, DemoJob
from joulie.demo.scenario.placement import FreeRoom
from joulie.logs import Log
from joulie.model.rfc3339 import format_time
from joulie.model.snapshot import Pod

TIMEOUT_S = 5.0  # kube-scheduler's own
AGAIN_S = 1.0  # pods that found no node are retried after this, if nothing happens before


class ScheduledPod(NamedTuple):
    """A pod, and its JSON as the extender is to get it."""

    pod: Pod
    raw: bytes


class DemoScheduler:
    """`jobs` says what each pod is; `on_bound` is told where it went."""

    def __init__(
        self,
        cluster: Cluster,
        extender_url: str,
        room: FreeRoom,
        jobs: Callable[[str], DemoJob | None],
        now_s: Callable[[], float],
        on_bound: Callable[[DemoJob, str], None],
    ) -> None:
        self.bound = self.unanswered = 0
        self.waiting: dict[str, ScheduledPod] = {}  # in the order of arrival
        self._cluster, self._url, self._room = cluster, extender_url, room
        self._jobs, self._now_s, self._on_bound = jobs, now_s, on_bound
        self._placed: dict[str, tuple[str, DemoJob]] = {}  # what was taken, until the pod is done
        self._news = asyncio.Event()
        self._log = Log("demo-scheduler")

    async def run(self) -> None:
        """Until it is cancelled."""
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        async with aiohttp.ClientSession(timeout=timeout) as session, asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch())
            tasks.create_task(self._place_for_ever(ExtenderClient(session, self._url)))

    async def _watch(self) -> None:
        def decode(data: bytes) -> ScheduledPod:
            return ScheduledPod(decoders.decode_pod(data), bytes(data))

        async for changes in self._cluster.watch(PODS, decode):
            for change in changes:
                match change:
                    case Upserted(key, seen, _) if not seen.pod.node and not seen.pod.finished:
                        if key not in self._placed:  # else our own bind is on its way
                            self.waiting[key] = seen
                    case Upserted(key, seen, _):
                        self.waiting.pop(key, None)
                        if seen.pod.finished:
                            self._give_back(key)
                    case Deleted(key):
                        self.waiting.pop(key, None)
                        self._give_back(key)
                    case _:
                        pass
            self._news.set()

    async def _place_for_ever(self, extender: ExtenderClient) -> None:
        while True:
            self._news.clear()
            for key, seen in list(self.waiting.items()):
                if key in self.waiting:
                    await self._place(extender, key, seen)
            try:
                async with asyncio.timeout(AGAIN_S):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def _place(self, extender: ExtenderClient, key: str, seen: ScheduledPod) -> None:
        job = self._jobs(key)
        fitting = self._room.fitting(job) if job is not None else []
        if job is None or not fitting:
            return
        try:
            left = await extender.filter(seen.raw, fitting)
            scores = await extender.prioritize(seen.raw, left) if left else {}
        except (aiohttp.ClientError, TimeoutError, msgspec.MsgspecError) as error:
            self.unanswered += 1
            self._log.warning("the extender did not answer; the pod waits", pod=key, error=repr(error))
            return
        node = self._room.best(job, left, scores)
        if node is not None:
            await self._bind(key, job, node)

    async def _bind(self, key: str, job: DemoJob, node: str) -> None:
        self._room.take(node, job)
        self._placed[key] = (node, job)
        self.waiting.pop(key, None)
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(self._now_s())}
        status = {"phase": "Running", "conditions": [scheduled]}
        try:
            await self._cluster.patch(PODS, job.name, {"spec": {"nodeName": node}}, namespace=NAMESPACE)
            await self._cluster.patch(PODS, job.name, {"status": status}, namespace=NAMESPACE, status=True)
        except ClusterError as error:
            self._give_back(key)
            self._log.warning("a pod was not bound", pod=key, error=str(error))
            return
        self.bound += 1
        self._on_bound(job, node)

    def _give_back(self, key: str) -> None:
        if (placed := self._placed.pop(key, None)) is not None:
            self._room.give_back(*placed)

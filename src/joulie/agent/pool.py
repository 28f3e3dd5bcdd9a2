"""All nodes of one agent, one or thousands: each is looked at once an interval, and at once when its target changes.

Each node has its own moment within the interval, so that a thousand nodes are a steady trickle and not a wave.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from joulie.agent.journal import journal_path
from joulie.agent.node import NodeAgent, Surroundings
from joulie.agent.shards import share_of
from joulie.errors import JoulieError
from joulie.logs import Log

AT_ONCE = 256  # nodes that hang take a place each until they time out
FINISH_S = 3.0  # what is under way when told to stop
LEAST_WAIT_S = 0.05
SYNC_S = 20.0  # without an answer by then the nodes of the journal are looked after all the same
LEAVE_TRIES = 5
SUMMARY_S = 10.0


Render = Callable[[NodeAgent], tuple[str, ...]]  # what a node's metrics look like after a tick


class _Kept(Struct):
    node: str


class Pool:
    """The nodes that this agent looks after now."""

    def __init__(self, around: Surroundings, render: Render) -> None:
        self.nodes: dict[str, NodeAgent] = {}
        self.last_turn_s = around.clock()
        self._around = around
        self._render = render
        self._interval_s = around.settings.reconcile_interval_s
        self._due: list[tuple[float, str]] = []
        self._running: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._leaving: set[str] = set()
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._log = Log("agent")
        self._members_version = -1
        self._summary_at_s = 0.0
        self._summary: dict[str, int] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Until told to stop; what is under way then is finished."""
        view = self._around.view
        stopped = asyncio.create_task(stop.wait())
        stopped.add_done_callback(lambda _: view.change.set())
        try:
            await self._first_look(stop)
            while not stop.is_set():
                self._turn()
                try:
                    async with asyncio.timeout(self._wait_s()):
                        await view.change.wait()
                except TimeoutError:
                    continue
            if self._running:
                await asyncio.wait(self._running.values(), timeout=FINISH_S)
        finally:
            stopped.cancel()
            for task in self._running.values():
                task.cancel()
            await asyncio.gather(stopped, *self._running.values(), return_exceptions=True)

    async def put_back(self, why: str, within_s: float) -> list[str]:
        """Everything as it was found, in as many tries as the time allows; the nodes where something is left."""
        left = dict.fromkeys(self.nodes)

        async def leave(name: str) -> None:
            if await self._leave(name, why):
                del left[name]

        try:
            async with asyncio.timeout(within_s):
                while left:
                    await asyncio.gather(*map(leave, list(left)))
                    await asyncio.sleep(0.5 if left else 0.0)
        except TimeoutError:
            return list(left)
        return []

    async def close(self) -> None:
        await asyncio.gather(*(node.close() for node in self.nodes.values()), return_exceptions=True)

    # Within

    async def _first_look(self, stop: asyncio.Event) -> None:
        """Wait until the cluster is known; where it stays silent, begin with what an earlier life left behind."""
        view = self._around.view
        for name in self._kept_from_before():
            self._join(name)
        try:
            async with asyncio.timeout(min(SYNC_S, self._interval_s)):
                while not view.synced and not stop.is_set():
                    await asyncio.sleep(0.02)
        except TimeoutError:
            self._log.warning("the API server has not answered yet; what was capped before is looked after meanwhile")

    def _kept_from_before(self) -> list[str]:
        """Nodes with a journal: something of theirs may still be capped. A pool's shard takes its own alone."""
        settings, scope = self._around.settings, self._around.view.scope
        if scope.single:
            return [scope.single]
        folder = journal_path(Path(settings.state_dir), "x").parent
        return [name for name in _nodes_with_journal(folder) if scope.owns(name)]

    def _turn(self) -> None:
        """Whoever is due or was woken gets a tick; whoever left is put back."""
        view = self._around.view
        self.last_turn_s = self._around.clock()
        self._say_how_it_goes()
        woken = view.take_woken(self.nodes)
        if view.members_version != self._members_version:
            self._members_version = view.members_version
            self._join_and_leave()
        while self._due and self._due[0][0] <= self.last_turn_s:
            _, name = heapq.heappop(self._due)
            if name in self.nodes:
                heapq.heappush(self._due, (self._next_moment_s(name), name))
                woken.add(name)
        for name in woken:
            self._start(name)

    def _join_and_leave(self) -> None:
        wanted = self._wanted()
        for name in sorted(wanted - self.nodes.keys()):
            self._join(name)
        for name in self.nodes.keys() - wanted - self._leaving:
            self._leaving.add(name)
            self._start(name)
        self._leaving &= self.nodes.keys() - wanted

    def _wanted(self) -> set[str]:
        """The names in scope; before the cluster is known, those that were looked after before."""
        view = self._around.view
        if view.scope.single:
            return {view.scope.single}
        return set(view.nodes) if view.synced else set(view.nodes) | self.nodes.keys()

    def _join(self, name: str) -> None:
        self.nodes[name] = NodeAgent(name, self._around)
        heapq.heappush(self._due, (self._around.clock(), name))

    def _next_moment_s(self, name: str) -> float:
        """The node's own moment in the interval to come."""
        phase_s = share_of(name) * self._interval_s
        now_s = self._around.clock()
        return now_s + self._interval_s - (now_s - phase_s) % self._interval_s

    def _wait_s(self) -> float:
        next_s = self._due[0][0] if self._due else self._around.clock() + self._interval_s
        return max(LEAST_WAIT_S, min(next_s - self._around.clock(), self._interval_s))

    def _start(self, name: str) -> None:
        """One piece of work a node at a time; what comes meanwhile is done after it."""
        if name in self._running:
            self._again.add(name)
        elif name in self.nodes:
            self._running[name] = asyncio.create_task(self._work(name))

    async def _work(self, name: str) -> None:
        try:
            if name in self._leaving:
                await self._part(name)
            else:
                async with self._slots:
                    await self._tick(self.nodes[name])
        finally:
            del self._running[name]
        if name in self._again:
            self._again.discard(name)
            self._start(name)

    async def _tick(self, node: NodeAgent) -> None:
        try:
            await node.tick()
        except Exception as error:  # noqa: BLE001 - one node's trouble, or a bug of ours, is not the others'
            node.errors += 1
            self._log.error(
                "tick failed", node=node.name, error=str(error), exc_info=not isinstance(error, JoulieError)
            )
        node.series = self._render(node)

    async def _part(self, name: str) -> None:
        """The node left scope: its devices end as they were found. What cannot be put back stays in the journal."""
        why = "the node left scope"
        for _ in range(LEAVE_TRIES):
            if await self._leave(name, why):
                break
            await asyncio.sleep(min(self._interval_s, 5.0))
            if name not in self._leaving:
                return  # it came back
        node = self.nodes.pop(name)
        self._leaving.discard(name)
        self._around.reporter.farewell(name)
        await node.close()
        if node.enforced.left:
            self._log.warning(
                "a node left scope with a cap that could not be taken back", node=name, left=node.enforced.left
            )

    async def _leave(self, name: str, why: str) -> bool:
        async with self._slots:
            try:
                return await self.nodes[name].leave(why)
            except Exception as error:  # noqa: BLE001 - the others are to be put back all the same
                self.nodes[name].errors += 1
                self._log.error("restore failed", node=name, error=str(error), exc_info=True)
                return False

    def _say_how_it_goes(self) -> None:
        """One line when the numbers have changed, not one for each node."""
        if self._around.view.scope.single or self.last_turn_s < self._summary_at_s:
            return
        self._summary_at_s = self.last_turn_s + SUMMARY_S
        counts: Counter[str] = Counter({"nodes": len(self.nodes)})
        for node in self.nodes.values():
            counts[f"cpu_{node.enforced.cpu.result}"] += 1
        summary = dict(sorted(counts.items()))
        if summary != self._summary:
            self._summary = summary
            self._log.info("enforced", **summary)


def _nodes_with_journal(folder: Path) -> list[str]:
    """Whose journals lie here; a file that cannot be read is looked at when its node is."""
    names = []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            names.append(msgspec.json.decode(path.read_bytes(), type=_Kept).node)
        except (OSError, ValueError):
            names.append(path.stem)
    return names

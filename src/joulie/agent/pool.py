"""All nodes of one agent, one or thousands: each is ticked once an interval, and at once when its target changes.

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

from joulie.agent.budget.order_file import order_path
from joulie.agent.node import AgentContext, NodeAgent
from joulie.agent.restore.durable import read_whole
from joulie.agent.restore.journal import journal_path
from joulie.agent.routing.handed_over import HandedOver
from joulie.agent.shards import share_of
from joulie.errors import JoulieError
from joulie.logs import Log

AT_ONCE = 256  # nodes that hang occupy a slot each until they time out
FINISH_S = 3.0  # what is under way when told to stop
MIN_WAIT_S = 0.05
SYNC_S = 20.0  # without an answer by then the nodes of the journal are looked after anyway
SUMMARY_S = 10.0
HANDED_OVER_S = 60.0  # how often to look for devices that no shard holds any more


Render = Callable[[NodeAgent], tuple[str, ...]]  # what a node's metrics look like after a tick


class _Kept(Struct):
    node: str


class Pool:
    """The nodes that this agent looks after now."""

    def __init__(self, around: AgentContext, render: Render) -> None:
        self.nodes: dict[str, NodeAgent] = {}
        self.last_turn_s = around.clock()
        self._around = around
        self._render = render
        self._interval_s = around.settings.reconcile_interval_s
        self._due: list[tuple[float, str]] = []
        self._running: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._leaving: set[str] = set()
        self._looked_for_orphans = False
        state_dir = Path(around.settings.state_dir)
        if not around.view.scope.single:
            around.view.journalled = frozenset(_nodes_on_disk(state_dir))
        self._handed_over = HandedOver(around.settings, around.view, around.wiring)
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
        handed_over = asyncio.create_task(self._watch_handed_over())
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
            for task in (stopped, handed_over, *self._running.values()):
                task.cancel()
            await asyncio.gather(stopped, handed_over, *self._running.values(), return_exceptions=True)

    async def put_back(self, why: str, within_s: float) -> list[str]:
        """Restore everything, in as many tries as the time allows; returns the nodes where something is left."""
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

    def held_by_budgets(self) -> list[str]:
        """Nodes that an order of a power budget holds."""
        return [name for name, node in self.nodes.items() if node.budget.holds]

    def budget_contact_changed(self, alive: bool) -> None:
        """The nodes concerned act on it at once."""
        held = self.held_by_budgets()
        if not held:
            return
        if alive:
            self._log.info("contact with the operator's budget loop restored; its orders apply", nodes=len(held))
        else:
            self._log.warning("no contact with the operator's budget loop; failsafe caps apply", nodes=len(held))
        self._around.view.woken |= set(held)
        self._around.view.change.set()

    async def close(self) -> None:
        await asyncio.gather(*(node.close() for node in self.nodes.values()), return_exceptions=True)

    # Within

    async def _first_look(self, stop: asyncio.Event) -> None:
        """Wait until the cluster is known; while it stays silent, begin with what an earlier process left behind."""
        view = self._around.view
        for name in self._kept_from_before():
            self._join(name)
            if self.nodes[name].budget.holds:
                self._start(name)  # what it may draw must not wait for the API server
        try:
            async with asyncio.timeout(min(SYNC_S, self._interval_s)):
                while not view.synced and not stop.is_set():
                    await asyncio.sleep(0.02)
        except TimeoutError:
            self._log.warning("the API server has not answered yet; nodes capped before are looked after meanwhile")

    def _kept_from_before(self) -> list[str]:
        """Nodes with a journal or an order: they may still be capped. A pool's shard begins with its own."""
        settings, scope = self._around.settings, self._around.view.scope
        if scope.single:
            return [scope.single]
        return [name for name in _nodes_on_disk(Path(settings.state_dir)) if scope.owns(name)]

    def _turn(self) -> None:
        """Nodes that are due or were woken get a tick; nodes that left are restored."""
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

    def _take_orphans(self) -> None:
        """Journals of nodes that no shard looks after any more: the agent that finds them restores the devices.

        One whose node another shard looks after stays as it is: a change of shard never restores, and where shards
        share a STATE_DIR it is that shard's own journal.
        """
        view = self._around.view
        if view.scope.single or not view.synced:
            return
        if not self._looked_for_orphans:
            self._looked_for_orphans = True
            for name in _nodes_on_disk(Path(self._around.settings.state_dir)):
                if name not in self.nodes and name not in view.others:
                    self._join(name)
        for name in self.nodes.keys() & view.others.keys():
            self._leaving.discard(name)
            del self.nodes[name]

    async def _watch_handed_over(self) -> None:
        """For as long as this runs; a failure costs one look."""
        view = self._around.view
        while view.journalled:
            await asyncio.sleep(max(self._interval_s, HANDED_OVER_S))
            try:
                if view.synced and not self._around.settings.simulate_only:
                    await self._handed_over.look()
            except Exception as error:  # noqa: BLE001 - the nodes of this shard must not suffer by it
                self._log.error("journals of other shards' nodes", error=str(error), exc_info=True)

    def _join_and_leave(self) -> None:
        self._take_orphans()
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
        return max(MIN_WAIT_S, min(next_s - self._around.clock(), self._interval_s))

    def _start(self, name: str) -> None:
        """One task a node at a time; what comes meanwhile is done afterwards."""
        if name in self._running:
            self._again.add(name)
        elif name in self.nodes:
            self._running[name] = asyncio.create_task(self._work(name))

    async def _work(self, name: str) -> None:
        try:
            if name in self._leaving:
                await self._part(name)
            elif (node := self.nodes.get(name)) is not None:
                async with self._slots:
                    await self._tick(node)
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
        """The node left scope: its devices are restored, however many tries that takes."""
        node = self.nodes[name]
        done = await self._leave(name, "the node left scope", in_time=True)
        node.series = self._render(node)
        if not done or name not in self._leaving:  # it is tried again at its next moment, or it came back
            return
        del self.nodes[name]
        self._leaving.discard(name)
        self._around.reporter.farewell(name)
        await node.close()

    async def _leave(self, name: str, why: str, *, in_time: bool = False) -> bool:
        node = self.nodes[name]
        async with self._slots:
            try:
                return await (node.leave_in_time(why) if in_time else node.leave(why))
            except Exception as error:  # noqa: BLE001 - the others are to be put back all the same
                node.errors += 1
                node.restore_failures += 1
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


def _nodes_on_disk(state_dir: Path) -> list[str]:
    """The nodes whose journals or orders are here; a file that cannot be read is dealt with when its node is."""
    names: dict[str, None] = {}
    for folder in (journal_path(state_dir, "x").parent, order_path(state_dir, "x").parent):
        for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
            try:
                name = msgspec.json.decode(read_whole(path), type=_Kept).node
            except (OSError, ValueError):
                name = path.stem
            # A name that leads to another file is not one that was written here.
            names[name if path in (journal_path(state_dir, name), order_path(state_dir, name)) else path.stem] = None
    return list(names)

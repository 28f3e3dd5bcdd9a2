"""An operator inside the test's event loop, with a clock that the test sets and every call on record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from msgspec import json

from joulie import plugins
from joulie.catalogue.lookup import Catalogue
from joulie.cluster.decoding.decoders import DECODERS
from joulie.cluster.port import (
    NODE_HARDWARE,
    NODE_POWER_PROFILES,
    NODE_TWINS,
    NODES,
    PODS,
    POWER_BUDGETS,
    TELEMETRY_PROFILES,
    Change,
    Cluster,
    Decode,
    Resource,
)
from joulie.cluster.watch.observer import ClusterObserver
from joulie.operator.apply import WriteOutcome
from joulie.operator.budget.loop import BudgetLoop
from joulie.operator.budget.renewal import BudgetLease
from joulie.operator.loop import DecisionModels, Operator
from joulie.settings import OperatorSettings, load
from joulie.sources.budget_readings import SignalReader
from joulie.sources.collector import TelemetryCollector
from joulie.sources.transport import SourceError
from tests.operator.clusters import AnyCluster, Ground, Person
from tests.support.small_clusters import NOW

T = TypeVar("T")
PATIENCE_S = 20.0
FAST = {"KUBE_CLIENT_QPS": "5000", "KUBE_CLIENT_BURST": "5000"}
May = Callable[[], bool] | None
Hook = Callable[[str], Awaitable[None]]


class Recorded:
    """The port, with every write on record: `create nodetwins a`, `patch nodetwins/status a`, `delete nodetwins a`."""

    def __init__(self, cluster: AnyCluster) -> None:
        self.cluster = cluster
        self.writes: list[str] = []
        self.before: Hook | None = None  # called before each write is sent

    def watch(
        self,
        resource: Resource,
        decode: Decode[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[Sequence[Change[T]]]:
        return self.cluster.watch(
            resource, decode, namespace=namespace, label_selector=label_selector, field_selector=field_selector
        )

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> bytes:
        return await self.cluster.get(resource, name, namespace=namespace)

    async def create(
        self, resource: Resource, body: Mapping[str, Any], *, namespace: str = "", may_send: May = None
    ) -> bytes:
        await self._note(f"create {resource.plural} {body['metadata']['name']}")
        return await self.cluster.create(resource, body, namespace=namespace, may_send=may_send)

    async def replace(self, resource: Resource, body: Mapping[str, Any], *, namespace: str = "") -> bytes:
        await self._note(f"replace {resource.plural} {body['metadata']['name']}")
        return await self.cluster.replace(resource, body, namespace=namespace)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str = "",
        status: bool = False,
        may_send: May = None,
    ) -> bytes:
        await self._note(f"patch {resource.plural}{'/status' * status} {name}")
        return await self.cluster.patch(resource, name, patch, namespace=namespace, status=status, may_send=may_send)

    async def apply_status(
        self, resource: Resource, name: str, status: Mapping[str, Any], *, may_send: May = None
    ) -> bytes:
        await self._note(f"patch {resource.plural}/status {name}")
        return await self.cluster.apply_status(resource, name, status, may_send=may_send)

    async def delete(
        self, resource: Resource, name: str, *, namespace: str = "", uid: str | None = None, may_send: May = None
    ) -> None:
        await self._note(f"delete {resource.plural} {name}")
        await self.cluster.delete(resource, name, namespace=namespace, uid=uid, may_send=may_send)

    async def close(self) -> None:
        await self.cluster.close()

    def take(self) -> list[str]:
        """The writes since the last time."""
        taken, self.writes = self.writes, []
        return taken

    async def _note(self, call: str) -> None:
        self.writes.append(call)
        if self.before is not None:
            await self.before(call)


class Play:
    """One operator. `tick` waits until it knows everything that happened, and lets it decide."""

    def __init__(self, cluster: Cluster, person: Person, env: Mapping[str, str], policy: Any = None) -> None:
        self.person = person
        self.env = {**FAST, **env}
        self.now_s = NOW
        self.lead_s = 10.0
        settings = load(OperatorSettings, self.env)
        decision = settings.decision
        models = DecisionModels(
            policy or plugins.policy(decision.plan.policy_type),
            plugins.cooling(decision.twin.cooling_model, decision.twin),
            Catalogue(),
        )
        self.collector = TelemetryCollector(settings, self.clock)
        self.operator = Operator(
            cluster, settings, models, self.collector, lambda: self.lead_s, "test", clock=self.clock
        )

        self.terms = 1
        self._link, self._settings = cluster, settings

    def clock(self) -> float:
        return self.now_s

    def budget_loop(self, reader: SignalReader | None = None) -> BudgetLoop:
        """Its budget loop, whose turns the test takes; time passes for it as the test says."""

        async def no_config_map(*_: str) -> str:
            raise SourceError("there is none")

        return BudgetLoop(
            self.operator,
            self._link,
            self._settings,
            lambda: self.lead_s,
            lambda: self.terms,
            BudgetLease(self._link, "default", "test", self.clock),
            reader or SignalReader("", no_config_map, self.clock),
            monotonic_s=self.clock,
        )

    async def tick(self, after_s: float = 1.0) -> WriteOutcome | None:
        await self.caught_up()
        self.now_s += after_s
        return await self.operator.reconcile(spread=False)

    async def caught_up(self) -> None:
        """Until the operator's state is what the API server has."""
        async with asyncio.timeout(PATIENCE_S):
            while not (self.operator.state.synced and await self._knows_all()):
                await asyncio.sleep(0.01)

    async def _knows_all(self) -> bool:
        for resource, known in self._known().items():
            there = {key: _read(resource, body) for key, body in (await self.person.all(resource)).items()}
            if known != {key: value for key, value in there.items() if value is not None}:
                return False
            broken = {key for kind, key in self.operator.state.undecodable.reasons if kind == resource.kind}
            if broken != {key for key, value in there.items() if value is None}:
                return False
        return True

    def _known(self) -> dict[Resource, Mapping[str, object]]:
        state = self.operator.state
        return {
            NODES: state.nodes,
            PODS: state.pods,
            NODE_HARDWARE: state.hardware,
            NODE_TWINS: state.twins,
            NODE_POWER_PROFILES: state.pins,
            POWER_BUDGETS: state.budgets,
            TELEMETRY_PROFILES: state.profiles,
        }


@asynccontextmanager
async def playing(
    cluster: Cluster, person: Person, env: Mapping[str, str] | None = None, policy: Any = None
) -> AsyncIterator[Play]:
    """An operator whose watches run; it decides when the test says so."""
    play = Play(cluster, person, env or {}, policy)
    watches = asyncio.create_task(play.operator.watch())
    try:
        async with asyncio.timeout(PATIENCE_S):
            await play.operator.wait_for_sync()
        yield play
    finally:
        watches.cancel()
        await asyncio.gather(watches, return_exceptions=True)
        await play.collector.close()


class Scene:
    """A user who acts, and the recorded connection of the operator."""

    def __init__(self, ground: Ground, observer: ClusterObserver | None = None) -> None:
        self.ground = ground
        self.person = Person(ground.client(manager="a-person"))
        self.link = Recorded(ground.client(observer))

    def operator(self, env: Mapping[str, str] | None = None, policy: Any = None) -> Any:
        return playing(self.link, self.person, env, policy)

    async def close(self) -> None:
        await self.link.close()
        await self.person.cluster.close()


def play_out(
    ground: Ground, scenario: Callable[[Scene], Awaitable[None]], observer: ClusterObserver | None = None
) -> None:
    """A scenario in an event loop of its own, which fails rather than hangs."""

    async def whole() -> None:
        scene = Scene(ground, observer)
        try:
            async with asyncio.timeout(120):
                await scenario(scene)
        finally:
            await scene.close()

    asyncio.run(whole())


def _read(resource: Resource, body: Mapping[str, Any]) -> object | None:
    """As the operator reads it; None is an object that counts as absent."""
    try:
        value: Any = DECODERS[resource](json.encode(body))
    except ValueError:
        return None
    if resource is NODE_TWINS and value.node != body["metadata"]["name"]:
        return None
    found: object = value
    return found

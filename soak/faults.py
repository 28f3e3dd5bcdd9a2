"""Every kind of fault that the soak plays: what is done, and what ends it.

A fault is a context manager: entering begins it and says in words what was done, leaving ends it. What a person changes
on purpose (a route, the number of shards, a clock) stays as it is until another fault changes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from random import Random
from typing import NamedTuple

from soak import objects
from soak.component import Component
from soak.scene import CAP_LEASE_S, HOSTS, SCOPES, WRONG_ROUTE, Scene

Play = Callable[[Scene, Random], AbstractContextManager[str]]
CLOCKS_S = (0.0, 20.0, -20.0, 3600.0, -3600.0, 86_400.0, -86_400.0)


class NotNow(Exception):  # noqa: N818 - nothing is wrong
    """This fault cannot be played at this moment."""


class Fault(NamedTuple):
    """One kind."""

    name: str
    play: Play
    stops_api: bool = False  # played last and ended first: the others need the API server
    alone: bool = False  # it has to be judged while it lasts, and a dead agent lets go of nothing


def _processes(scene: Scene, prefix: str) -> list[Component]:
    return [one for name, one in scene.components.items() if name.startswith(prefix) and one.wanted]


def _to_process(prefix: str, act: Callable[[Component], str]) -> Play:
    """`act` does it to a process and says what was done; then it runs again."""

    @contextmanager
    def play(scene: Scene, rng: Random) -> Iterator[str]:
        victim = rng.choice(_processes(scene, prefix))
        yield f"{victim.name} {act(victim)}"
        victim.start()

    return play


def _killed(victim: Component) -> str:
    victim.kill()
    return "killed"


def _stopped(victim: Component) -> str:
    return f"stopped with exit code {victim.stop()}"


def _frozen(victim: Component) -> str:
    victim.freeze()
    return "frozen"


def _cut(mode: str) -> Play:
    @contextmanager
    def play(scene: Scene, rng: Random) -> Iterator[str]:
        victim = rng.choice(list(scene.components.values()))
        scene.relays.switch(victim.relay, mode)  # type: ignore[arg-type]
        yield f"{victim.name}: connection to the API server {mode}"
        scene.relays.switch(victim.relay, "pass")

    return play


@contextmanager
def _long_silence(scene: Scene, _rng: Random) -> Iterator[str]:
    """Longer than the cap lease: agents let go of every cap, and take them up again afterwards."""
    operators = _processes(scene, "operator")
    for one in operators:
        one.freeze()
    deadline_s = time.monotonic() + 4 * CAP_LEASE_S
    while time.monotonic() < deadline_s and not _nothing_capped(scene):
        time.sleep(1)
    let_go = _nothing_capped(scene)
    for one in operators:
        one.start()
    if not let_go:
        raise AssertionError(f"operators silent for {4 * CAP_LEASE_S} s, and caps are still in force")
    yield "both operators frozen for longer than the cap lease: every cap let go"


def _nothing_capped(scene: Scene) -> bool:
    try:
        held = [each for machines in scene.machines.values() for each in machines.limits().items()]
    except OSError:
        return False
    as_found = [(name, all(limit.held_w is None for limit in limits.values())) for name, limits in held]
    as_found += [(name, host.is_as_found) for name, host in scene.hosts.items()]
    # A pin is a person's wish, and outlives the operator.
    return all(found for name, found in as_found if scene.pins.get(name) != "eco")


@contextmanager
def _api_server_killed(scene: Scene, _rng: Random) -> Iterator[str]:
    scene.plane.kill_apiserver()
    yield "API server killed"
    scene.plane.start_apiserver()


@contextmanager
def _api_server_restarted(scene: Scene, _rng: Random) -> Iterator[str]:
    scene.plane.stop_apiserver()
    scene.plane.compact_etcd()
    yield "API server restarted, history compacted"
    scene.plane.start_apiserver()


@contextmanager
def _api_server_frozen(scene: Scene, _rng: Random) -> Iterator[str]:
    with scene.plane.frozen_apiserver():
        yield "API server frozen"


@contextmanager
def _scheduler_killed(scene: Scene, _rng: Random) -> Iterator[str]:
    scene.scheduler.process.kill()
    yield "kube-scheduler killed"
    scene.heal()


@contextmanager
def _simulator_killed(scene: Scene, rng: Random) -> Iterator[str]:
    """All of its machines lose their limits, as after a power cut."""
    name = rng.choice(sorted(scene.machines))
    if any(not scene.may_disturb(node["metadata"]["name"]) for node in scene.pool):
        raise NotNow
    scene.components[name].kill()
    yield f"{name} killed: its machines boot anew"
    scene.components[name].start()


def _machine(kind: str, **how: object) -> Play:
    @contextmanager
    def play(scene: Scene, rng: Random) -> Iterator[str]:
        node = rng.choice(scene.pool)["metadata"]["name"]
        machines = rng.choice(list(scene.machines.values()))
        if kind == "reboot" and not scene.may_disturb(node):
            raise NotNow
        try:
            machines.fault(node, fault=kind, **how)
        except OSError:
            raise NotNow from None
        yield f"{node}: {kind} {' '.join(map(str, how.values()))}".strip()
        try:
            machines.fault(node, fault="none")
        except OSError:  # the simulator was killed meanwhile and knows of no fault any more
            return

    return play


@contextmanager
def _clock(scene: Scene, rng: Random) -> Iterator[str]:
    victim = rng.choice(list(scene.components.values()))
    offset_s = rng.choice(CLOCKS_S)
    victim.set_clock(offset_s)
    yield f"{victim.name}: clock {offset_s:+.0f} s"


@contextmanager
def _state_full(scene: Scene, rng: Random) -> Iterator[str]:
    name = _agent_with_state(scene, rng)
    scene.states.fill(name)
    yield f"{name}: state folder full"
    scene.states.empty(name)


@contextmanager
def _state_read_only(scene: Scene, rng: Random) -> Iterator[str]:
    name = _agent_with_state(scene, rng)
    scene.states.make_read_only(name)
    yield f"{name}: state folder read-only"
    scene.states.make_writable(name)


def _agent_with_state(scene: Scene, rng: Random) -> str:
    """Only a folder that is a mount of its own can be full or read-only."""
    if not scene.states.mounted:
        raise NotNow
    return rng.choice(_processes(scene, "agent")).name


@contextmanager
def _route(scene: Scene, rng: Random) -> Iterator[str]:
    before = scene.route
    scene.route = rng.choice([name for name in ("sim-a", "sim-b", WRONG_ROUTE, None) if name != before])
    scene.send_route()
    yield f"route of caps: {before} → {scene.route}"


@contextmanager
def _route_while_away(scene: Scene, rng: Random) -> Iterator[str]:
    """The devices that were capped cannot be reached when caps are sent elsewhere."""
    if scene.route not in scene.machines:
        raise NotNow
    before = scene.components[scene.route]
    before.freeze()
    scene.route = "sim-b" if scene.route == "sim-a" else "sim-a"
    scene.send_route()
    time.sleep(rng.uniform(1, 6))
    yield f"route of caps → {scene.route} while {before.name} did not answer"
    before.start()


@contextmanager
def sharded(scene: Scene, shards: int, *, graceful: bool) -> Iterator[str]:
    """So many pool agents from now on."""
    agents = [scene.components[name] for name in ("agent-0", "agent-1")]
    for agent in agents:
        agent.stop() if graceful else agent.kill()
    scene.shards = shards
    agents[1].wanted = shards == 2
    yield f"pool agents {'stopped' if graceful else 'killed'}, shards now {shards}"
    for agent in agents:
        if agent.wanted:
            agent.start()


def _reshard(scene: Scene, rng: Random) -> AbstractContextManager[str]:
    return sharded(scene, 3 - scene.shards, graceful=rng.random() < 0.5)


@contextmanager
def _crd_deleted(scene: Scene, rng: Random) -> Iterator[str]:
    plural = rng.choice(["nodetwins", "nodehardwares", "nodepowerprofiles", "telemetryprofiles"])
    scene.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.joulie.io")
    yield f"CRD {plural} deleted"
    scene.persistently(scene.plane.install_crds)
    scene.send_wishes()


@contextmanager
def _selector(scene: Scene, _rng: Random) -> Iterator[str]:
    scene.selector = SCOPES[1 - SCOPES.index(scene.selector)]
    operators = _processes(scene, "operator")
    for one in operators:
        one.stop()
    yield f"operators restarted with NODE_SELECTOR={scene.selector}"
    for one in operators:
        one.start()


@contextmanager
def _policy(scene: Scene, rng: Random) -> Iterator[str]:
    scene.performance = rng.choice([0.25, 0.5, 0.75])
    operators = _processes(scene, "operator")
    for one in operators:
        one.kill()
    yield f"operators killed and restarted with STATIC_HP_FRAC={scene.performance}"
    for one in operators:
        one.start()


@contextmanager
def _unlabelled(scene: Scene, rng: Random) -> Iterator[str]:
    node = rng.choice([*HOSTS, *(node["metadata"]["name"] for node in scene.pool)])
    scene.label(node, objects.MANAGED, None)
    yield f"{node}: no longer managed"
    scene.label(node, objects.MANAGED, "true")


@contextmanager
def _node_deleted(scene: Scene, rng: Random) -> Iterator[str]:
    node = rng.choice(scene.pool)
    name = node["metadata"]["name"]
    scene.delete(f"/api/v1/nodes/{name}")
    for pod in scene.get(f"/api/v1/pods?fieldSelector=spec.nodeName={name}"):
        scene.delete(f"/api/v1/namespaces/{objects.NAMESPACE}/pods/{pod['metadata']['name']}")
    yield f"{name}: node deleted"
    scene.apply(node)


@contextmanager
def _pin(scene: Scene, rng: Random) -> Iterator[str]:
    node = rng.choice([*HOSTS, *(node["metadata"]["name"] for node in scene.pool)])
    if node in scene.pins:
        del scene.pins[node]
        scene.delete(f"{objects.JOULIE}/nodepowerprofiles/soak-{node}")
        yield f"{node}: pin removed"
        return
    scene.pins[node] = rng.choice(["eco", "performance"])
    scene.wish(objects.pin(node, scene.pins[node]))
    yield f"{node}: pinned to {scene.pins[node]}"


@contextmanager
def _stranger_writes(scene: Scene, rng: Random) -> Iterator[str]:
    """Another tool sets a limit: drift that the agent puts right."""
    name = rng.choice(HOSTS)
    host = scene.hosts[name]
    if host.is_as_found or not scene.may_disturb(name):
        raise NotNow
    package = rng.choice(host.packages)
    host.long_term(package).write_text("140000000\n")
    yield f"{name}: another tool wrote a limit of 140 W"


@contextmanager
def _twins_deleted(scene: Scene, _rng: Random) -> Iterator[str]:
    scene.persistently(lambda: scene.plane.api.delete(f"{objects.JOULIE}/nodetwins"))
    yield "all twins deleted"


@contextmanager
def _pods(scene: Scene, rng: Random) -> Iterator[str]:
    scene.new_pods(rng.choices(["performance", "standard"], k=6), cores=rng.randint(1, 4))
    yield "6 pods created"


FAULTS: tuple[Fault, ...] = (
    *(Fault(f"kill {what}", _to_process(what, _killed)) for what in ("operator", "extender", "agent-host", "agent")),
    *(Fault(f"stop {what}", _to_process(what, _stopped)) for what in ("operator", "extender", "agent-host", "agent")),
    *(Fault(f"freeze {what}", _to_process(what, _frozen)) for what in ("operator", "extender", "agent", "sim")),
    *(Fault(f"API server {mode} for one process", _cut(mode)) for mode in ("refuse", "silent", "slow")),
    Fault("operators silent beyond the lease", _long_silence, alone=True),
    Fault("API server killed", _api_server_killed, stops_api=True),
    Fault("API server restarted, compacted", _api_server_restarted, stops_api=True),
    Fault("API server frozen", _api_server_frozen, stops_api=True),
    Fault("kube-scheduler killed", _scheduler_killed),
    Fault("simulator killed", _simulator_killed),
    Fault("machine reboots", _machine("reboot")),
    *(Fault(f"machine control {how}", _machine("blocked", how=how)) for how in ("blocked", "error", "silent")),
    *(Fault(f"sensor lies: {how}", _machine("lying", how=how)) for how in ("factor", "nan", "negative", "frozen")),
    Fault("machine slow", _machine("slow", delaySeconds=3)),
    *(Fault(f"machine gone: {how}", _machine("gone", how=how)) for how in ("closed", "503")),
    Fault("clock jumps", _clock),
    Fault("state folder full", _state_full),
    Fault("state folder read-only", _state_read_only),
    Fault("route changed", _route),
    Fault("route changed while away", _route_while_away),
    Fault("pool re-sharded", _reshard),
    Fault("CRD deleted", _crd_deleted),
    Fault("selector changed", _selector),
    Fault("policy changed", _policy),
    Fault("node loses its label", _unlabelled),
    Fault("node deleted", _node_deleted),
    Fault("pin set or removed", _pin),
    Fault("another tool writes a limit", _stranger_writes),
    Fault("all twins deleted", _twins_deleted),
    Fault("pods created", _pods),
)

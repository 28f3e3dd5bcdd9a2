"""Rounds of faults: play a few at once, end them, wait until all is well again, and keep count."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random

from soak import faults, invariants, objects
from soak.faults import FAULTS, Fault, NotNow
from soak.scene import Scene
from soak.watching import Watch

SETTLE_S = 180.0  # a lease that runs out, a restore that waits its turn, back-off, on a busy machine
CALM_S = 2.0  # longer than any interval here: what a fault set off has shown by then
MAX_PODS = 40
Say = Callable[[str], None]


@dataclass
class Result:
    """What was played and what was seen."""

    seed: int
    played: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    worst_settle_s: dict[str, float] = field(default_factory=dict)
    settle_s: list[float] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    violated_by: Counter[str] = field(default_factory=Counter)
    known: set[str] = field(default_factory=set)  # told once, and not waited for again
    looks: int = 0
    capped: int = 0  # devices that held a cap, over all looks

    @property
    def faults(self) -> int:
        return self.played.total()


def deck(rng: Random, kinds: Sequence[Fault]) -> Iterator[Fault]:
    """All kinds in random order, again and again, so that each is played as often as the others."""
    while True:
        yield from rng.sample(kinds, len(kinds))


def soak(
    scene: Scene, seed: int, *, until_s: float, at_least: int, say: Say, kinds: Sequence[Fault] = FAULTS
) -> Result:
    """Rounds until the time is up and so many faults were played; then the clean end."""
    rng, result = Random(seed), Result(seed)
    watch = Watch(scene)
    try:
        settle(scene, result, [], "first contact", say)
        dealt = deck(rng, kinds)
        while time.monotonic() < until_s or result.faults < at_least:
            chosen = sorted((next(dealt) for _ in range(rng.randint(2, 5))), key=lambda fault: fault.stops_api)
            for fault in chosen:
                if fault.alone:
                    _round(scene, rng, result, [fault], say)
            _round(scene, rng, result, [fault for fault in chosen if not fault.alone], say)
    finally:
        watch.close()
    result.looks, result.capped = watch.looks, watch.capped
    result.violations += sorted(watch.violations)
    result.violations += invariants.grown(scene)
    _end(scene, result, say)
    return result


def _round(scene: Scene, rng: Random, result: Result, chosen: list[Fault], say: Say) -> None:
    played: list[str] = []
    said: list[str] = []
    with ExitStack() as ends:
        for fault in chosen:
            try:
                said.append(ends.enter_context(fault.play(scene, rng)))
            except NotNow:
                result.skipped[fault.name] += 1
                continue
            except AssertionError as error:
                _violated(result, [fault.name], str(error), say)
            played.append(fault.name)
        result.played.update(played)
        say(f"{result.faults} faults: {'; '.join(said)}")
        time.sleep(rng.uniform(0.5, 4.0))
    scene.heal()
    _retire_pods(scene)
    settle(scene, result, played, "; ".join(said), say)
    for component in scene.components.values():
        component.weigh()


def settle(scene: Scene, result: Result, played: list[str], after: str, say: Say) -> None:
    began_s = time.monotonic()
    well_since_s = began_s
    while True:
        problems = [one for one in invariants.unsettled(scene) if one not in result.known]
        now_s = time.monotonic()
        if problems:
            well_since_s = now_s
        if now_s - well_since_s > CALM_S or now_s - began_s > SETTLE_S:
            break
        time.sleep(0.4)
    took_s = well_since_s - began_s
    result.settle_s.append(took_s)
    for name in played:
        result.worst_settle_s[name] = max(took_s, result.worst_settle_s.get(name, 0.0))
    result.known.update(problems)
    for problem in problems:
        _violated(result, played, f"{problem}  [after {after}]", say)


def _violated(result: Result, played: list[str], problem: str, say: Say) -> None:
    result.violations.append(problem)
    result.violated_by.update(played)
    say(f"VIOLATED {problem}")


def _retire_pods(scene: Scene) -> None:
    """The oldest finish, so that there is room for new ones."""
    pods = scene.get(f"/api/v1/namespaces/{objects.NAMESPACE}/pods")
    by_age = sorted(pods, key=lambda pod: int(pod["metadata"]["name"].rpartition("-")[2]))
    for pod in by_age[: max(0, len(by_age) - MAX_PODS)]:
        scene.delete(f"/api/v1/namespaces/{objects.NAMESPACE}/pods/{pod['metadata']['name']}")


def _end(scene: Scene, result: Result, say: Say) -> None:
    """Every process is asked to stop: agents first, so that they have to put everything back by themselves.

    A shard that was taken away leaves its journal to the next agent of its number, so all shards come back first.
    """
    say("clean end")
    with faults.sharded(scene, 2, graceful=True):
        pass
    settle(scene, result, [], "all shards are back", say)
    agents = scene.agents
    for component in [*agents, *(one for one in scene.components.values() if one not in agents)]:
        if component.name.startswith("sim"):
            continue
        code = component.stop()
        if code != 0:
            _violated(result, [], f"end: {component.name} ended with exit code {code}\n{component.log_tail()}", say)
        if component is agents[-1]:
            for problem in invariants.left_behind(scene):
                _violated(result, [], problem, say)

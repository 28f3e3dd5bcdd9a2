"""The scenes in their order, each with what was seen; printed as a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.budget_hold.machines import Excess
from bench.budget_hold.scene import Scene, Size, node_name
from testbed.control_plane import ControlPlane

CUT = 0.70
INTERVAL_S = 5.0
SCENES = (
    "first_contact",
    "churn",
    "cut",
    "operator_killed",
    "lies",
    "silence",
    "agents_killed",
    "api_server_away",
    "rollout",
    "reboots",
    "back",
)


class Seen(NamedTuple):
    """One scene: whether the limits held, by how much, whether it was quick enough, and what else was measured."""

    scene: str
    held: bool
    margin: str
    detail: str
    in_time: bool = True


class Bench:
    """Plays everything on one cluster."""

    def __init__(self, scene: Scene, say: Callable[[str], None]) -> None:
        self.scene, self.say = scene, say
        self.seen: list[Seen] = []

    def play(self, scenes: Sequence[str]) -> list[Seen]:
        for name in scenes:
            self.say(name.replace("_", " "))
            getattr(self, name)()
        return self.seen

    def first_contact(self) -> None:
        scene = self.scene
        scene.wait(lambda: len(scene.machines.simulation.index) == scene.size.nodes, "machines")
        scene.fill()
        limits = scene.apply_budgets()
        before = scene.writes()
        took_s = scene.wait(scene.is_settled, "first contact")
        scene.machines.limits = limits
        scene.machines.read()
        self._note("first contact", f"{took_s:.0f} s, {scene.writes() - before} writes to twins")

    def churn(self) -> None:
        self._during("pods come and go", lambda: self._for(self.scene.size.churn_s, busy=True))

    def cut(self) -> None:
        """Both an order and a confirmation are written for each node: that sets how fast a cut can be."""
        scene, machines = self.scene, self.scene.machines
        before, began_s = scene.writes(), time.monotonic()
        caps_w = machines.allowed_by_node_w()
        cut_after_s = np.zeros(len(caps_w))
        limits = scene.apply_budgets(CUT)

        def in_force() -> bool:
            nonlocal caps_w
            now_w = machines.allowed_by_node_w()
            cut_after_s[now_w < caps_w] = time.monotonic() - began_s
            caps_w = now_w
            return machines.fit(limits)

        scene.wait(in_force, "the cut")
        took_s = time.monotonic() - began_s
        machines.limits = limits
        writes, allowed_s = scene.writes() - before, max(10.0, 2 * scene.writing_s(2 * scene.size.nodes))
        p50_s, p90_s, p99_s = np.percentile(cut_after_s[cut_after_s > 0], (50, 90, 99))
        detail = (
            f"in force after {took_s:.1f} s (at most {allowed_s:.1f} s at {scene.writes_per_s:.0f} writes/s); nodes cut"
            f" after {p50_s:.1f} s (p50), {p90_s:.1f} s (p90), {p99_s:.1f} s (p99); {writes} writes"
        )
        self._note("a cut of 30 %", detail, in_time=took_s <= allowed_s)
        self._during("the cut stays", lambda: self._for(10, busy=True))

    def operator_killed(self) -> None:
        scene = self.scene

        def act() -> None:
            leader = scene.leader()
            leader._process.kill()
            scene.operators.remove(leader)
            scene.start_operator()
            self._for(40, busy=True)

        self._during("leader killed", act)

    def lies(self) -> None:
        scene = self.scene
        names = [node_name(number) for number in range(0, scene.size.nodes, 10)]

        def act() -> None:
            for position, name in enumerate(names):
                scene.machines.lie(name, ("factor", "nan", "negative", "frozen")[position % 4])
            self._for(30, busy=True)
            for name in names:
                scene.machines.mend(name)

        self._during("a tenth of the sensors lie", act)

    def silence(self) -> None:
        scene = self.scene
        names = [node_name(number) for number in range(5, scene.size.nodes, 10)]

        def act() -> None:
            for name in names:
                scene.machines.disconnect(name)
            self._for(30, busy=True)
            for name in names:
                scene.machines.mend(name)

        self._during("a tenth of the machines do not answer", act)

    def agents_killed(self) -> None:
        scene = self.scene

        def act() -> None:
            scene.agents[0]._process.kill()
            self._for(30, busy=True)
            scene.start_agent(0)
            self._for(10, busy=True)

        self._during("a tenth of the agents killed and restarted", act)

    def api_server_away(self) -> None:
        scene = self.scene

        def act() -> None:
            scene.plane.stop_apiserver()
            self._for(scene.size.outage_s, busy=False)
            scene.plane.start_apiserver()
            self._for(30, busy=False)

        self._during(f"API server away for {scene.size.outage_s:.0f} s", act)

    def rollout(self) -> None:
        scene = self.scene

        def act() -> None:
            for shard, agent in enumerate(list(scene.agents)):
                agent.end(60)
                scene.start_agent(shard)
            self._for(20, busy=False)

        self._during("all agents rolled out", act)

    def reboots(self) -> None:
        """Caps are lost before any agent can act: printed by how much and for how long the reserve did not cover it."""
        scene = self.scene
        scene.wait(scene.is_settled, "settled before reboots")
        for together in (1, 3):
            numbers = scene.random.sample(range(scene.size.nodes), max(together, scene.size.nodes // 10))
            scene.machines.read()
            for start in range(0, len(numbers), together):
                for number in numbers[start : start + together]:
                    scene.reboot(number)
                self._for(3, busy=False)
            self._for(10, busy=False)
            meter = scene.machines.read()
            detail = f"{len(numbers)} reboots: {_said(meter.excess)}"
            margin = f"{meter.worst[0]:+.1%} {meter.worst[1]}"
            self.seen.append(Seen(f"reboots, {together} at once", True, margin, detail))

    def back(self) -> None:
        scene = self.scene
        scene.wait(scene.is_settled, "settled before the raise")
        before, began_s = scene.writes(), time.monotonic()
        low = sum(scene.machines.allowed_w().values())
        limits = scene.apply_budgets()
        scene.machines.limits = limits
        scene.wait(lambda: sum(scene.machines.allowed_w().values()) > 1.1 * low and scene.is_settled(), "the raise")
        took_s = time.monotonic() - began_s
        writes, allowed_s = scene.writes() - before, max(3 * INTERVAL_S, 2 * scene.writing_s(2 * scene.size.nodes))
        detail = (
            f"shared out after {took_s:.1f} s, {took_s / INTERVAL_S:.1f} intervals (at most {allowed_s:.1f} s at"
            f" {scene.writes_per_s:.0f} writes/s); {writes} writes"
        )
        self._note("limits raised again", detail, in_time=took_s <= allowed_s)

    def _during(self, what: str, act: Callable[[], None]) -> None:
        self.scene.machines.read()
        act()
        self._note(what)

    def _note(self, what: str, detail: str = "", *, in_time: bool = True) -> None:
        meter = self.scene.machines.read()
        if meter.excess.seconds:
            detail = f"{detail} {_said(meter.excess)}".strip()
        margin = f"{meter.worst[0]:+.1%} {meter.worst[1]}" if meter.samples else "–"
        held = meter.excess.seconds == 0.0
        self.seen.append(Seen(what, held, margin, f"{detail} ({meter.samples} samples)".strip(), in_time))

    def _for(self, seconds: float, *, busy: bool) -> None:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            if busy:
                self.scene.churn(max(1, self.scene.size.nodes // 100))
            time.sleep(0.5)


def _said(excess: Excess) -> str:
    where = f", at most {excess.watts:.0f} W in {excess.group}" if excess.seconds else ""
    return f"above a limit for {excess.seconds:.1f} s{where}"


def hold(size: Size, say: Callable[[str], None]) -> list[Seen]:
    with ControlPlane() as plane:
        return hold_on(plane, size, say)


def hold_on(plane: ControlPlane, size: Size, say: Callable[[str], None], scenes: Sequence[str] = SCENES) -> list[Seen]:
    with ExitStack() as ends:
        say("nodes and processes")
        return Bench(Scene(plane, size, ends), say).play(scenes)


def print_seen(console: Console, seen: list[Seen]) -> bool:
    table = Table("scene", "held", "worst margin", "seen", title="Budgets under faults; power sampled every 100 ms")
    for each in seen:
        held = "[bold red]no[/]" if not each.held else "yes" if each.in_time else "[bold red]late[/]"
        table.add_row(each.scene, held, each.margin, each.detail)
    console.print(table)
    return all(each.held and each.in_time for each in seen)

"""Rankings in Python: any object with a method `rank(view)` that gives each node a number, the highest wins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from joulie.control.scoring import headroom_before
from joulie.errors import InputError, PluginError
from joulie.lab.kernels.world import WATT, World
from joulie.lab.simulation.user_code import given

Numbers = NDArray[np.float64]
BUILT_IN = ("least", "most", "random", "joulie")


@dataclass(frozen=True)
class RankView:
    """A pod and all nodes; nodes on which it does not fit are left out later, whatever they are given."""

    now_s: float
    cores: float
    gpus: int
    performance: bool
    node_cores: Numbers
    node_gpus: Numbers
    free_cores: Numbers
    free_gpus: Numbers
    capped_w: Numbers  # what the caps allow, as the twin has it
    measured_w: Numbers
    headroom: Numbers  # percent of that which is free before the pod


class Ranks(Protocol):
    """The whole interface."""

    def rank(self, view: RankView) -> Numbers: ...


def ranker(name: str) -> Ranker:
    """`module:object`; a class is called without arguments."""
    if ":" not in name:
        raise InputError(f"scheduler: {name!r} is none of {', '.join(BUILT_IN)}, nor a `module:object`")
    return Ranker(name, given("scheduler", name, "rank"))


class Ranker:
    """Asks the object, and checks what it says."""

    def __init__(self, name: str, ranks: Ranks) -> None:
        self._name, self._ranks = name, ranks

    def give(self, world: World, shape: int, now_s: float) -> None:
        nodes, asked = world.nodes, world.shapes[shape]
        view = RankView(
            now_s,
            float(asked["mcores"]) / 1000.0,
            int(asked["gpus"]),
            bool(asked["performance"]),
            nodes["mcores"] / 1000.0,
            nodes["gpus"].astype(np.float64),
            nodes["free_mcores"] / 1000.0,
            nodes["free_gpus"].astype(np.float64),
            nodes["capped_w"].copy(),
            nodes["measured_w"].copy(),
            headroom_before(
                nodes["capped_w"], nodes["measured_w"], nodes["recent"] / WATT, np.zeros(len(nodes)), nodes["budget_w"]
            ),
        )
        try:
            ranks = np.asarray(self._ranks.rank(view), dtype=np.float64)
        except Exception as error:
            reason = " ".join(str(error).split())
            raise PluginError(f"scheduler {self._name} failed: {type(error).__name__}: {reason}") from error
        if ranks.shape not in ((), (len(nodes),)):
            raise PluginError(f"scheduler {self._name} gave ranks of shape {ranks.shape} for {len(nodes)} nodes")
        world.given[shape] = ranks
        if not np.isfinite(world.given[shape]).all():
            raise PluginError(f"scheduler {self._name} gave a node a rank that is not a finite number")
        world.shapes["given_at"][shape] = world.run["moves"]

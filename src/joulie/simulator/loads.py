"""How busy each node is, from the pods bound to it: what they ask for, their class, and a character of their own.

Everything follows from names and the seed, so that two runs, or a run after a restart, see the same load.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from msgspec import Struct

from joulie.model.names import PERFORMANCE
from joulie.model.snapshot import Pod

# From … to: how much of what a pod asked for it uses, by its class.
_CPU_USE = {True: (0.85, 1.0), False: (0.45, 0.85)}
_GPU_USE = {True: (0.85, 1.0), False: (0.55, 0.95)}
_MEMORY, _IO, _FEED = (0.05, 0.6), (0.0, 0.3), (0.1, 0.5)


class NodeLoad(Struct, frozen=True):
    """What one node works on; all from 0 to 1, GPUs by board, what is not named is idle."""

    cpu: float = 0.0
    gpus: tuple[float, ...] = ()
    memory_intensity: float = 0.0
    io_intensity: float = 0.0
    feed_intensity: float = 0.0


IDLE = NodeLoad()


def chances(seed: int, name: str) -> tuple[float, float, float, float]:
    """Four numbers from 0 to 1 that a name always gets."""
    digest = blake2b(f"{seed}/{name}".encode(), digest_size=16).digest()
    parts = (int.from_bytes(digest[first : first + 4], "little") for first in (0, 4, 8, 12))
    one, two, three, four = (part / 2**32 for part in parts)
    return one, two, three, four


def load_of(pods: Sequence[Pod], cores: float, boards: int, seed: int) -> NodeLoad:
    """The load that these pods make together; boards are handed out in the order of the pods' names."""
    used = memory = io = fed = 0.0
    gpus: list[float] = []
    for pod in sorted(pods, key=lambda pod: (pod.namespace, pod.name)):
        if pod.finished:
            continue
        use, memory_chance, io_chance, feed_chance = chances(seed, f"{pod.namespace}/{pod.name}")
        demanding = pod.workload_class == PERFORMANCE
        busy_cores = pod.cpu_cores * _between(_CPU_USE[demanding], use)
        used += busy_cores
        memory += busy_cores * _between(_MEMORY, memory_chance)
        io += busy_cores * _between(_IO, io_chance)
        asked = min(int(pod.gpus), boards - len(gpus))
        gpus += [_between(_GPU_USE[demanding], use)] * asked
        fed += asked * _between(_FEED, feed_chance)
    return NodeLoad(
        cpu=min(1.0, used / cores) if cores > 0 else 0.0,
        gpus=tuple(gpus),
        memory_intensity=memory / used if used else 0.0,
        io_intensity=io / used if used else 0.0,
        feed_intensity=fed / len(gpus) if gpus else 0.0,
    )


def _between(ends: tuple[float, float], share: float) -> float:
    return ends[0] + (ends[1] - ends[0]) * share

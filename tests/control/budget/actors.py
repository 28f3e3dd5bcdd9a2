"""Who takes part in the miniature cluster, and what each of them knows."""

from __future__ import annotations

from dataclasses import dataclass, field

from joulie.control.budget import holding
from joulie.control.budget.counting import Confirmation, Order
from joulie.control.budget.envelopes import Envelope, Pair
from joulie.control.budget.memory import BudgetMemory, GroupLimit

LEASE_S = 15.0  # of leadership
WRITE_S = 10.0  # a write is dead after this, wherever it is
SILENCE_S = 60.0

MACHINES = (
    Envelope(floor=Pair(60, 0), top=Pair(200, 0), devices=Pair(2, 0), rest_w=40.0),
    Envelope(floor=Pair(50, 100), top=Pair(150, 400), devices=Pair(1, 4), rest_w=300.0),
)


@dataclass(frozen=True)
class Node:
    name: str
    groups: tuple[str, ...]
    boot_id: str


@dataclass(frozen=True)
class Twin:
    uid: str
    version: int
    created_at: str
    order: Order | None = None
    confirmation: Confirmation | None = None


@dataclass
class Request:
    """An order on its way to the API server."""

    operator: int
    node: str
    version: int  # 0: to be created
    order: Order
    dies_at_s: float


@dataclass
class Views:
    """Objects as one watcher knows them, and what is still on its way to it."""

    nodes: dict[str, Node] = field(default_factory=dict)
    twins: dict[str, Twin] = field(default_factory=dict)
    limits: dict[str, GroupLimit] = field(default_factory=dict)
    coming: dict[str, list[tuple[str, object]]] = field(
        default_factory=lambda: {"nodes": [], "twins": [], "limits": []}
    )

    def take(self, kind: str) -> None:
        name, value = self.coming[kind].pop(0)
        objects: dict[str, object] = getattr(self, kind)
        known = objects.get(name)
        if isinstance(value, Twin) and isinstance(known, Twin) and known.version > value.version:
            return  # the answer to a write told more already
        if value is None:
            objects.pop(name, None)
        else:
            objects[name] = value


@dataclass
class Operator:
    number: int
    view: Views = field(default_factory=Views)
    memory: BudgetMemory = field(default_factory=BudgetMemory)
    leads_until_s: float = -1.0
    leads_since_s: float = 0.0
    listed_at_s: float = -1.0
    in_flight: dict[str, tuple[Pair, float]] = field(default_factory=dict)


@dataclass
class Agent:
    """The agent of one node with its devices; `kept`, `session` and `sequence` lie on disk."""

    node: str
    machine: Envelope
    device: Pair
    boot_id: str
    kept: holding.Kept | None = None
    session: int = 1
    sequence: int = 0
    runs: bool = True
    blocked: bool = False
    lost: Pair | None = None  # what it may have held before its devices lost their caps
    heard_at_s: float = 0.0
    view: Views = field(default_factory=Views)

"""The newest budget order that a node's agent has followed, kept where neither a crash nor a reboot can reach it.

A file that cannot be used may have held any order. So what the devices hold then is kept, and nothing is raised until
an order is seen in the twin, or a person runs `joulie agent restore`.

The rules: docs/reference/behaviour.md, 'Power budgets'.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
from msgspec import Struct

from joulie.agent.restore.durable import read_whole, remove_durably, write_durably
from joulie.agent.restore.journal import MAX_FILE_NAME_LENGTH
from joulie.control.budget.holding import Kept
from joulie.control.budget.messages import order_in, order_to_write
from joulie.errors import JoulieError
from joulie.model.api.orders import BudgetCaps, BudgetOrder
from joulie.model.api.twin import NodeTwin, NodeTwinSpec
from joulie.model.kubernetes import ObjectMeta

VERSION = 1
FILE_NAME = "budget.json"
POOL_FOLDER = "budget"


class NotKeptError(JoulieError):
    """The order cannot be written to disk, so it must not be confirmed."""


class _Contents(Struct, rename="camel", omit_defaults=True):
    version: int
    node: str
    twin_uid: str
    created_at: str
    order: BudgetOrder
    failsafe: BudgetCaps | None = None


def order_path(state_dir: Path, node: str | None = None) -> Path:
    """Of the machine's own node, or (pool mode) of one of many."""
    if node is None:
        return state_dir / FILE_NAME
    name = node if len(node) <= MAX_FILE_NAME_LENGTH else hashlib.sha256(node.encode()).hexdigest()
    return state_dir / POOL_FOLDER / f"{name}.json"


class OrderFile:
    """What the disk holds. Everything here is synchronous; the file is small and local."""

    def __init__(self, path: Path, node: str) -> None:
        self.path = path
        self.node = node
        self.kept: Kept | None = None
        self.unusable = ""  # why the order that was kept is not known; empty: it is, or there was none

    @classmethod
    def open(cls, path: Path, node: str | None) -> OrderFile:
        """Never raises for a bad file. Without a node it is the file's."""
        file = cls(path, node or "")
        try:
            data = read_whole(path)
        except FileNotFoundError:
            return file
        except OSError as error:
            file.unusable = f"{path} cannot be read: {error.strerror}"
            return file
        try:
            file._take(data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            file.node = file.node or path.stem
            file.unusable = f"{path} cannot be used: {error}"
        return file

    def keep(self, kept: Kept | None) -> None:
        """On disk when this returns."""
        try:
            if kept is None:
                remove_durably(self.path)
            else:
                order, failsafe = order_to_write(kept.order, "")
                contents = _Contents(VERSION, self.node, kept.order.uid, kept.created_at, order, failsafe)
                write_durably(self.path, msgspec.json.format(msgspec.json.encode(contents)))
        except OSError as error:
            raise NotKeptError(f"{self.path} cannot be written: {error.strerror}") from error
        self.kept, self.unusable = kept, ""

    def is_missing(self) -> bool:
        """Whether an order was kept and its file is gone."""
        return self.kept is not None and not self.path.exists()

    def _take(self, data: bytes) -> None:
        told = msgspec.json.decode(data, type=_Contents)
        if told.version != VERSION:
            raise ValueError(f"version {told.version} is not known")
        if self.node and told.node != self.node:
            raise ValueError(f"it was written for node {told.node}")
        self.node = told.node
        metadata = ObjectMeta(name=told.node, uid=told.twin_uid)
        order = order_in(NodeTwin(metadata, NodeTwinSpec(budget=told.order, failsafe=told.failsafe)))
        if order is None or order.released:
            raise ValueError("an order that was released is never kept")
        self.kept = Kept(order, told.created_at)

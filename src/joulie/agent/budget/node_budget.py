"""One node under power budgets: the order it follows, what it may be raised to, and what is confirmed of it."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from joulie.agent.budget.limiting import UNLIMITED
from joulie.agent.budget.order_file import NotKeptError, OrderFile
from joulie.agent.budget.sessions import Sessions
from joulie.agent.outcome import Notice
from joulie.control.budget.counting import Confirmation, Order, Pair
from joulie.control.budget.holding import Kept, caps_to_hold, followed
from joulie.control.budget.messages import confirmation_in, confirmation_to_write, order_in
from joulie.model.api.orders import BudgetConfirmation
from joulie.model.api.twin import NodeTwin


class _Content(NamedTuple):
    """A confirmation without its numbers: the same one need not be said again."""

    uid: str
    number: int
    boot_id: str
    held: Pair | None


class NodeBudget:
    """Orders are on disk before devices are changed; an older one than one that was followed changes nothing.

    In a dry run nothing is kept: what an earlier agent kept stays for the next one.
    """

    def __init__(self, file: OrderFile, sessions: Sessions, *, writes: bool = True, offload: bool = False) -> None:
        self.kept: Kept | None = file.kept
        self.notices: list[Notice] = []
        self._file = file
        self._sessions = sessions
        self._session = sessions.number
        self._sequence = 0
        self._writes = writes
        self._offload = offload
        self._told: tuple[str, int] | None = None  # uid and order of the twin, as last followed; None: no twin
        self._not_kept: Order | None = None  # to be followed, but not on disk
        self._content: _Content | None = None
        self._said: BudgetConfirmation | None = None
        if file.unusable:
            message = (
                f"{file.unusable}. A power budget may hold this node, so nothing is raised until its next order is"
                " seen, or `joulie agent restore` is run after the agent was stopped"
            )
            self.notices.append(Notice("BudgetOrderLost", message, "warning", event=True))

    @property
    def holds(self) -> bool:
        """Whether nothing but an order, or a person, may raise this node's caps."""
        return self.kept is not None or self._not_kept is not None or bool(self._file.unusable)

    @property
    def order(self) -> int | None:
        """The number of the order that is followed."""
        return None if self.kept is None else self.kept.order.number

    async def follow(self, twin: NodeTwin | None) -> None:
        """Take up what the twin orders, unless something newer was followed already."""
        told = None if twin is None else order_in(twin)
        self._told = None if twin is None else (twin.metadata.uid or "", told.number if told is not None else 0)
        created_at = (twin.metadata.creation_timestamp if twin is not None else None) or ""
        after = followed(self.kept, told, created_at)
        is_same = after == self.kept and not (self._file.unusable and told is not None)
        if is_same and not (self._writes and self._file.is_missing()):
            self._not_kept = None
            return
        try:
            await self._keep(after)
        except NotKeptError as error:
            if self._not_kept is None:
                message = (
                    f"an order of a power budget is not on disk, so it raises nothing and is not confirmed: {error}"
                )
                self.notices.append(Notice("BudgetOrderNotKept", message, "warning", event=True))
            self._not_kept = None if after is None else after.order
        else:
            self.kept, self._not_kept = after, None

    def ceiling(self, *, in_contact: bool) -> Pair | None:
        """What no cap may exceed; None: no budget holds the node."""
        if self._not_kept is not None:  # what would be forgotten may lower caps, but not raise them
            lower = self._not_kept.caps
            return lower if self.kept is None else lower.at_most(caps_to_hold(self.kept, in_contact=in_contact))
        if self.kept is None:
            return UNLIMITED if self._file.unusable else None
        return caps_to_hold(self.kept, in_contact=in_contact)

    @property
    def is_known(self) -> bool:
        """Whether the order that may hold this node is known."""
        return not self._file.unusable

    def confirmed(self, twin: NodeTwin | None, boot_id: str, held: Pair | None) -> BudgetConfirmation | None:
        """What to say of the devices; the same as before unless something changed. None: there is no twin."""
        if self._told is None:
            return None
        shown = None if twin is None else confirmation_in(twin)
        if shown is not None and (shown.session, shown.sequence) > (self._session, self._sequence):
            self._session, self._sequence, self._content = shown.session + 1, 0, None  # another agent spoke since
            self._sessions.at_least(self._session)
        content = self._contents(boot_id, held)
        if content != self._content or self._said is None:
            self._sequence += 1
            self._content = content
            uid, number, boot_id, held = content
            self._said = confirmation_to_write(Confirmation(uid, number, boot_id, self._session, self._sequence, held))
        return self._said

    def _contents(self, boot_id: str, held: Pair | None) -> _Content:
        assert self._told is not None
        if self.kept is not None:
            return _Content(self.kept.order.uid, self.kept.order.number, boot_id, held)
        uid, number = self._told
        return _Content(uid, 0 if self.holds else number, boot_id, None)

    async def _keep(self, kept: Kept | None) -> None:
        if not self._writes:
            return
        if not self._offload:
            self._file.keep(kept)
            return
        writing = asyncio.ensure_future(asyncio.to_thread(self._file.keep, kept))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:  # the file has one writer at a time, even now
            await asyncio.wait([writing])
            raise

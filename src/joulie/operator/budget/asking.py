"""Asking a source that may hang, without making a cut wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")

PATIENCE_S = 1.0  # of a turn; what takes longer is taken up by a later one


class Question(Generic[T]):
    """One question at a time; its answer may come in a later turn than the one that asked."""

    def __init__(self) -> None:
        self._task: asyncio.Task[T] | None = None

    async def ask(self, question: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """The answer, also to a question of an earlier turn that is still open; None: not yet."""
        if self._task is None:
            self._task = asyncio.create_task(question())
        await asyncio.wait({self._task}, timeout=PATIENCE_S)
        if not self._task.done():
            return None
        answered, self._task = self._task, None
        return answered.result()

    def drop(self) -> None:
        """The answer is not wanted any more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

"""Calls that may hang, kept from hanging the process: into drivers' libraries, and into files that drivers serve."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

from joulie.devices.interface import DeviceFaultError

Answer = TypeVar("Answer")
CALL_LIMIT_S = 15.0  # without persistence mode the first call wakes every board, which takes seconds


class BoundedCalls:
    """One call at a time, each in a thread of its own and with a time limit.

    A call that hangs cannot be ended. It keeps its one thread, and until it returns every further call fails at once.
    The threads are daemons: a hung one does not keep the process from ending, as a thread of an executor would.
    """

    def __init__(self, what: str, limit_s: float = CALL_LIMIT_S) -> None:
        self._what = what
        self._limit_s = limit_s
        self._turn = asyncio.Lock()
        self._latest: Future[Any] | None = None
        self._hangs = False

    async def __call__(self, work: Callable[[], Answer]) -> Answer:
        """What `work` returns or raises; DeviceFaultError when it does neither in time."""
        async with self._turn:
            await self._earlier_call()
            answer: Future[Answer] = Future()
            answer.set_running_or_notify_cancel()  # from here on it cannot be cancelled
            self._latest = answer
            Thread(target=_run, args=(work, answer), name=f"calls {self._what}", daemon=True).start()
            if not await self._returned(answer):
                self._hangs = True
                raise DeviceFaultError(
                    f"{self._what}: a call did not return within {self._limit_s:g} s; the driver may be stuck"
                )
            return answer.result()

    async def _earlier_call(self) -> None:
        """Wait for one whose caller was cancelled; do not wait for one that is known to hang."""
        earlier = self._latest
        if earlier is not None and not earlier.done() and (self._hangs or not await self._returned(earlier)):
            self._hangs = True
            raise DeviceFaultError(f"{self._what}: an earlier call still hangs; if that goes on, restart the node")
        self._hangs = False

    async def _returned(self, answer: Future[Any]) -> bool:
        done = asyncio.Event()
        loop = asyncio.get_running_loop()

        def tell(_: Future[Any]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(done.set)

        answer.add_done_callback(tell)
        try:
            await asyncio.wait_for(done.wait(), self._limit_s)
        except TimeoutError:
            return answer.done()
        return True


def _run(work: Callable[[], Answer], answer: Future[Answer]) -> None:
    try:
        answer.set_result(work())
    except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the caller
        answer.set_exception(error)

"""Runs in processes of their own, as many as there are cores; each has a pipe to this one.

They share no lock and no semaphore: whoever is killed while it holds one would make all others wait for ever, and one
that outlives this process would be complained about. Children import nothing of the command line.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from types import ModuleType
from typing import TYPE_CHECKING, Any

from joulie.lab.refusals import LabError
from joulie.lab.working import StoppedError, Task, Worked, work

if TYPE_CHECKING:
    from joulie.lab.sweep import Watch

LOOK_S = 0.2  # how often progress is looked at
GRACE_S = 3.0  # for a child to end in order


class Children:
    """As many processes as asked for; each run in one of them."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or os.cpu_count() or 1

    def __call__(self, tasks: Sequence[Task], watch: Watch) -> Generator[Worked, None, None]:
        if not tasks:
            return
        shares = get_context("spawn").RawArray("d", len(tasks) + 1)  # the last says that all is to end
        left, crew = deque(enumerate(tasks)), list[_Child]()
        try:
            while left or any(child.task for child in crew):
                # The first goes ahead alone until it is under way: what it compiles, the others find compiled.
                while left and (len(left) == len(tasks) or shares[0] > 0) and (child := self._idle(crew, shares)):
                    child.give(*left.popleft())
                busy = {child.pipe: child for child in crew if child.task}
                done = wait(list(busy), LOOK_S)
                for slot, task in enumerate(tasks):
                    if 0 < shares[slot] < 1:
                        watch.share(task.place, shares[slot])
                for pipe in done:
                    yield busy[pipe].take()  # type: ignore[index]
        finally:
            shares[-1] = 1.0
            for child in crew:
                child.end()

    def _idle(self, crew: list[_Child], shares: Any) -> _Child | None:
        for child in crew:
            if not child.task:
                return child
        if len(crew) == self.count:
            return None
        resource_tracker.ensure_running()  # which would let Ctrl-C through to the first child
        with uninterrupted(), _without_main():
            crew.append(_Child(shares))
        return crew[-1]


class _Child:
    """One process, and the run that it has been given."""

    def __init__(self, shares: Any) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.task: Task | None = None
        self._process = context.Process(target=_work_on, args=(theirs, shares))
        self._process.start()
        theirs.close()

    def give(self, slot: int, task: Task) -> None:
        self.task = task
        with suppress(BrokenPipeError, ConnectionResetError):  # whoever takes the result says so
            self.pipe.send((slot, task))

    def take(self) -> Worked:
        """What it sent; LabError where the process is gone."""
        assert self.task is not None
        place, self.task = self.task.place, None
        try:
            sent = self.pipe.recv()
        except (EOFError, OSError):
            raise LabError(
                f"a worker process ended by itself at {place} ({self._end()}), perhaps for lack of memory: "
                "try fewer with --workers; finished runs are kept, and the same command goes on with the rest"
            ) from None
        if isinstance(sent, Worked):
            return sent
        raise sent

    def end(self) -> None:
        """It has been told to; it is not waited for much longer than it may take."""
        self.pipe.close()
        self._process.join(GRACE_S + 2.0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _end(self) -> str:
        self._process.join(GRACE_S)
        code = self._process.exitcode or 0
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


@contextmanager
def uninterrupted() -> Generator[None, None, None]:
    """Ctrl-C counts when all is done: a child that has got half of what it needs would die with a traceback.

    Children that begin here hear nothing of it either, before they can say that they want to.
    """
    if threading.current_thread() is not threading.main_thread():  # Ctrl-C never comes here
        yield
        return
    told: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: told.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, before)
        if told:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def _without_main() -> Generator[None, None, None]:
    """Children that begin here do not run the program's main module again: not the command line, nor a script of
    somebody who forgot to guard it.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _work_on(pipe: Connection, shares: Any) -> None:
    """What a child does: one run after the other, until there is nobody who would give it one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which stops its children in order
    threading.Thread(target=_end_in_time, args=(shares,), daemon=True).start()
    with suppress(EOFError, OSError, StoppedError):
        while True:
            slot, task = pipe.recv()
            pipe.send(_one(slot, task, shares))


def _one(slot: int, task: Task, shares: Any) -> Worked | AssertionError:
    def progress(share: float) -> None:
        shares[slot] = share
        if shares[-1]:
            raise StoppedError

    try:
        return work(task, progress)
    except AssertionError as error:
        return error
    finally:
        shares[slot] = 1.0


def _end_in_time(shares: Any) -> None:
    """No child outlives its parent, nor a stop for long: one that is compiling would not look up for a minute."""
    parent = parent_process()
    while not shares[-1]:
        if parent is not None:
            parent.join(LOOK_S)
            if not parent.is_alive():
                os._exit(1)
    time.sleep(GRACE_S)
    os._exit(1)

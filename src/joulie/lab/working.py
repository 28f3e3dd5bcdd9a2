"""Who performs runs: this process, as many children as there are cores, or the workers of a Dask cluster.

Each run is computed by the same function from the same arguments, so it does not matter where. Children and workers
import nothing of the command line.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from joulie.errors import JoulieError
from joulie.lab.digests import code_digest
from joulie.lab.experiment import Case
from joulie.lab.performing import files_of, perform, place_of
from joulie.lab.refusals import LabError
from joulie.lab.store import Planned

if TYPE_CHECKING:
    from joulie.lab.sweep import Watch

LOOK_S = 0.2  # how often progress is looked at
GRACE_S = 3.0  # for a child to end in order
PROGRESS_S = 0.5  # how often a Dask worker tells
TOPIC = "joulie-lab-progress"


class Task(Struct, frozen=True):
    """One run to be performed."""

    planned: Planned
    case: Case
    git_commit: str = ""

    @property
    def place(self) -> str:
        return place_of(self.planned.facet, self.planned.variant, self.planned.seed)


class Worked(Struct, frozen=True):
    """Its files, or why there are none."""

    task: Task
    files: dict[str, bytes] | None
    failure: str = ""


class StoppedError(Exception):
    """The sweep ends before this run did."""


def work(task: Task, progress: Callable[[float], None]) -> Worked:
    """One run. What goes wrong is told, not raised, but for a result that cannot be: that stops everything."""
    try:
        return Worked(task, files_of(perform(task.case, task.planned.seed, progress, task.git_commit)))
    except (AssertionError, StoppedError):
        raise
    except JoulieError as error:
        return Worked(task, None, str(error))
    except Exception as error:  # noqa: BLE001 - a fault of a policy or scheduler from outside must not stop the others
        return Worked(task, None, f"{type(error).__name__}: {error}")


def here(tasks: Sequence[Task], watch: Watch) -> Generator[Worked, None, None]:
    """One after the other, in this process."""
    for task in tasks:
        yield work(task, lambda share, task=task: watch.share(task.place, share))  # type: ignore[misc]


class Children:
    """As many processes as asked for; each run in one of them."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or os.cpu_count() or 1

    def __call__(self, tasks: Sequence[Task], watch: Watch) -> Generator[Worked, None, None]:
        from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import get_context

        if not tasks:
            return
        context = get_context("spawn")
        shares, stop = context.Array("d", len(tasks), lock=False), context.Event()
        pool = ProcessPoolExecutor(min(self.count, len(tasks)), context, _begin_child, (shares, stop))
        # The first goes ahead alone until it is under way: what it compiles, the others find compiled.
        left = list(enumerate(tasks))
        running: set[Future[Worked]] = set()
        try:
            while left or running:
                if left and (not running or shares[0] > 0):
                    begin, left = (left, []) if len(left) < len(tasks) else (left[:1], left[1:])
                    with uninterrupted(), _without_main():
                        running |= {pool.submit(_in_child, slot, task) for slot, task in begin}
                done, running = wait(running, LOOK_S, FIRST_COMPLETED)
                for slot, task in enumerate(tasks):
                    if 0 < shares[slot] < 1:
                        watch.share(task.place, shares[slot])
                for future in done:
                    yield future.result()
        except BrokenProcessPool:
            raise LabError(
                "a worker process ended by itself, perhaps for lack of memory: fewer with --workers"
            ) from None
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


class Dask:
    """The workers of a Dask cluster, by the address of its scheduler."""

    def __init__(self, address: str, patience_s: float = 10.0) -> None:
        self.address, self.patience_s = address, patience_s

    def __call__(self, tasks: Sequence[Task], watch: Watch) -> Generator[Worked, None, None]:
        if not tasks:
            return
        distributed: Any = import_module("distributed")  # which has types for some of its functions only
        try:
            client = distributed.Client(self.address, timeout=self.patience_s, set_as_default=False)
        except (OSError, ValueError) as error:
            raise LabError(f"--dask {self.address}: no Dask scheduler answers there: {error}") from None
        with client:
            client.subscribe_topic(TOPIC, lambda event: watch.share(*event[1]))
            futures = client.map(_on_dask, tasks, [code_digest()] * len(tasks), pure=False, retries=0)
            try:
                for _, worked in distributed.as_completed(futures, loop=client.loop, with_results=True):
                    yield worked
            except distributed.KilledWorker as error:
                raise LabError(
                    f"--dask {self.address}: a worker ended by itself, perhaps for lack of memory: {error}"
                ) from None
            finally:
                client.cancel(futures, force=True)


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


_child: dict[str, Any] = {}


def _begin_child(shares: Any, stop: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which stops its children in order
    _child.update(shares=shares, stop=stop)
    threading.Thread(target=_end_in_time, args=(stop,), daemon=True).start()


def _end_in_time(stop: Any) -> None:
    """No child outlives its parent, nor a stop for long: one that is compiling would not look up for a minute."""
    from multiprocessing import parent_process

    parent = parent_process()
    while not stop.wait(1.0):
        if parent is not None and not parent.is_alive():
            os._exit(1)
    time.sleep(GRACE_S)
    os._exit(1)


def _in_child(slot: int, task: Task) -> Worked:
    def progress(share: float) -> None:
        _child["shares"][slot] = share
        if _child["stop"].is_set():
            raise StoppedError

    try:
        return work(task, progress)
    finally:
        _child["shares"][slot] = 1.0


def _on_dask(task: Task, code: str) -> Worked:
    from distributed import get_worker

    if code_digest() != code:
        return Worked(task, None, "the Dask worker runs another version of Joulie than this command")
    worker, told_s = get_worker(), 0.0

    def progress(share: float) -> None:
        nonlocal told_s
        if time.monotonic() - told_s > PROGRESS_S:
            told_s = time.monotonic()
            worker.log_event(TOPIC, (task.place, share))

    return work(task, progress)

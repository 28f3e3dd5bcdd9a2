"""Where runs are performed: this process, child processes on this machine, or the workers of a Dask cluster.

Each run is computed by the same function from the same arguments, so it does not matter where. Workers import nothing
of the command line.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Generator, Sequence
from functools import partial
from importlib import import_module
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from joulie.errors import JoulieError
from joulie.lab.experiment.definition import Case
from joulie.lab.experiment.digests import computed_by
from joulie.lab.model.refusals import LabError
from joulie.lab.runs.perform import files_of, perform, place_of
from joulie.lab.runs.processes import Child, EndedError, Progress
from joulie.lab.runs.store import Planned

if TYPE_CHECKING:
    from joulie.lab.runs.sweep import Watch

POLL_S = 0.1  # how often results are looked for
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


def work(task: Task, progress: Progress) -> Worked:
    """One run. What goes wrong is told, not raised; a process that is gone or a result that cannot be stops all."""
    try:
        _refuse_others(task, task.case.key(task.planned.seed))
        finished = perform(task.case, task.planned.seed, progress, task.git_commit)
        _refuse_others(task, finished.provenance.key)
        return Worked(task, files_of(finished))
    except AssertionError:
        raise
    except EndedError as error:
        raise _gone(task, error) from None
    except JoulieError as error:
        return Worked(task, None, str(error).removeprefix(f"{task.place}: "))
    except Exception as error:  # noqa: BLE001 - a fault of a policy or scheduler from outside must not stop the others
        return Worked(task, None, f"{type(error).__name__}: {error}")


def _refuse_others(task: Task, key: str) -> None:
    """A result is kept under the key of what was planned, so nothing else may have been run."""
    if key != task.planned.key:
        raise LabError("a file that it reads was changed since the sweep began, or is another one there: sweep again")


def here(tasks: Sequence[Task], watch: Watch) -> Generator[Worked, None, None]:
    """One after the other, in this process."""
    for task in tasks:
        yield work(task, lambda share, task=task: watch.share(task.place, share))  # type: ignore[misc]


class Children:
    """As many processes as asked for, one for each core by default; each run in one of them."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or os.cpu_count() or 1

    def __call__(self, tasks: Sequence[Task], watch: Watch) -> Generator[Worked, None, None]:
        left, idle, busy = deque(tasks), list[Child](), dict[Child, Task]()
        alone = True  # the first, until it is under way: what it compiles, the others find compiled

        def told(child: Child, share: float) -> None:
            nonlocal alone
            alone = False
            watch.share(busy[child].place, share)

        try:
            while left or busy:
                while left and len(busy) < (1 if alone else self.count):
                    child = idle.pop() if idle else Child()
                    busy[child] = left.popleft()
                    child.call(work, busy[child])
                ready = wait([child.pipe for child in busy])
                for child in [child for child in busy if child.pipe in ready]:
                    try:
                        worked = child.take(partial(told, child))
                    except EndedError as error:
                        raise _gone(busy[child], error) from None
                    if worked:
                        alone = False
                        del busy[child]
                        idle.append(child)
                    yield from worked
        finally:
            for child in [*idle, *busy]:
                child.end()


def _gone(task: Task, error: EndedError) -> LabError:
    return LabError(
        f"a worker process ended by itself at {task.place} ({error.how}), perhaps for lack of memory: "
        "try fewer with --workers; finished runs are kept, and the same command goes on with the rest"
    )


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
            futures = client.map(_on_dask, tasks, [computed_by()] * len(tasks), pure=False, retries=0)
            try:
                yield from self._results(client, distributed.as_completed(futures, client.loop, with_results=True))
            except distributed.KilledWorker as error:
                raise LabError(
                    f"--dask {self.address}: a worker ended by itself, perhaps for lack of memory: {error}"
                ) from None
            finally:
                client.cancel(futures, force=True)

    def _results(self, client: Any, done: Any) -> Generator[Worked, None, None]:
        """As they come; LabError where no worker is left to send one."""
        since_s = time.monotonic()  # when a worker was last there
        while not done.is_empty():
            if done.has_ready():
                _, worked = next(done)
                if not isinstance(worked, Worked):  # it was cancelled
                    raise LabError(f"--dask {self.address}: the Dask scheduler has given up the runs: {worked}")
                yield worked
            else:
                time.sleep(POLL_S)
            if time.monotonic() - since_s > self.patience_s / 2:
                if client.nthreads():
                    since_s = time.monotonic()
                elif time.monotonic() - since_s > self.patience_s:
                    raise LabError(f"--dask {self.address}: there is no Dask worker; finished runs are kept")


def _on_dask(task: Task, asked: dict[str, str]) -> Worked:
    from distributed import get_worker

    here = computed_by()
    if other := [name for name in asked if here.get(name) != asked[name]]:
        what = {"code": "other sources of Joulie"}.get(other[0], f"another version of {other[0]}")
        return Worked(task, None, f"the Dask worker has {what} than this command")
    worker, told_s = get_worker(), 0.0

    def progress(share: float) -> None:
        nonlocal told_s
        if time.monotonic() - told_s > PROGRESS_S:
            told_s = time.monotonic()
            worker.log_event(TOPIC, (task.place, share))

    return work(task, progress)

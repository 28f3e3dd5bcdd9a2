"""Who performs runs: this process, or the workers of a Dask cluster; `children` has processes on this machine.

Each run is computed by the same function from the same arguments, so it does not matter where. Workers import nothing
of the command line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from joulie.errors import JoulieError
from joulie.lab.digests import computed_by
from joulie.lab.experiment import Case
from joulie.lab.performing import files_of, perform, place_of
from joulie.lab.refusals import LabError
from joulie.lab.store import Planned

if TYPE_CHECKING:
    from joulie.lab.sweep import Watch

LOOK_S = 0.1  # how often results are looked for
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
        _refuse_others(task, task.case.key(task.planned.seed))
        finished = perform(task.case, task.planned.seed, progress, task.git_commit)
        _refuse_others(task, finished.provenance.key)
        return Worked(task, files_of(finished))
    except (AssertionError, StoppedError):
        raise
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
        """As they come; LabError where nobody is left who could send one."""
        since_s = time.monotonic()  # when somebody was there
        while not done.is_empty():
            if done.has_ready():
                _, worked = next(done)
                if not isinstance(worked, Worked):  # it was cancelled
                    raise LabError(f"--dask {self.address}: the Dask scheduler has given up the runs: {worked}")
                yield worked
            else:
                time.sleep(LOOK_S)
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

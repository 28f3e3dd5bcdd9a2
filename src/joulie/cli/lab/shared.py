"""What the lab's commands share: extra packages, the results folder, and progress bars."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click

from joulie.errors import JoulieError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from joulie.lab.experiment.definition import Experiment

EXTRA = ("numba", "pyarrow", "scipy")
MAX_BARS = 8

results_option = click.option(
    "-r",
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="The results folder.  [default: results/NAME]",
)
short_option = click.option(
    "--short",
    is_flag=True,
    help="Use the experiment's short form: quick, but without claims; results are stored separately.",
)
experiment_argument = click.argument(
    "file", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE"
)


def need_extra(*more: str) -> None:
    """Reports missing packages before anything starts."""
    missing = [name for name in (*EXTRA, *more) if find_spec(name) is None]
    if missing:
        raise JoulieError(f"joulie lab needs {', '.join(missing)}: pip install 'joulie[lab]'")


def facet_of(experiment: Experiment, file: Path, given: str | None) -> str:
    """The requested facet, or the first."""
    from joulie.errors import InputError

    facet = experiment.facets[0] if given is None else given
    if facet not in experiment.facets:
        available = ", ".join(filter(None, experiment.facets)) or "none"
        raise InputError(f"{file}: no facet {facet!r}; available: {available}")
    return facet


def results_folder(experiment: Experiment, given: Path | None) -> Path:
    """`results/NAME` in the current folder, by the experiment's name, unless given."""
    readable = "".join(char if char.isalnum() or char in "-_." else "-" for char in experiment.name).strip(".")
    return given or Path("results") / (readable or "experiment")


class ProgressBars:
    """Progress of the sweep and of the current runs, with the time left; on a terminal only."""

    def __init__(self, *, no_color: bool = False) -> None:
        self._no_color = no_color
        self._progress: Progress | None = None
        self._whole: TaskID | None = None
        self._under_way: dict[str, float] = {}
        self._ended: set[str] = set()  # late updates of these are ignored
        self._bars: dict[str, Any] = {}
        self._total = self._done = 0

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._progress = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[count]}", markup=False),
                TextColumn("{task.percentage:>3.0f} %", markup=False),
                TimeRemainingColumn(),
                console=Console(stderr=True, no_color=self._no_color or None),
                transient=True,
            )
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def begin(self, total: int, done: int) -> None:
        self._total, self._done = total, done
        if self._progress is None:
            return
        for bar in (self._whole, *self._bars.values()):
            if bar is not None:
                self._progress.remove_task(bar)
        self._bars, self._under_way, self._ended = {}, {}, set()
        self._whole = self._progress.add_task("all runs", total=total, completed=done, count=f"{done}/{total}")

    def share(self, place: str, share: float) -> None:
        if self._progress is None or self._whole is None or place in self._ended:
            return
        self._under_way[place] = share
        if place not in self._bars and len(self._bars) < MAX_BARS:
            self._bars[place] = self._progress.add_task(f"  {place}", total=1.0, count="")
        if place in self._bars:
            self._progress.update(self._bars[place], completed=share)
        self._show_whole()

    def end(self, place: str, failure: str) -> None:
        self._done += 1
        self._ended.add(place)
        self._under_way.pop(place, None)
        if self._progress is None or self._whole is None:
            return
        if place in self._bars:
            self._progress.remove_task(self._bars.pop(place))
        if failure:
            self._progress.console.print(f"{place}: {failure}", markup=False, highlight=False)
        self._show_whole()

    def _show_whole(self) -> None:
        assert self._progress is not None
        assert self._whole is not None
        completed = self._done + sum(self._under_way.values())
        self._progress.update(self._whole, completed=completed, count=f"{self._done}/{self._total}")

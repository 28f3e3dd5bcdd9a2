"""Functions in processes of their own: code from outside alone in a fresh one, and many runs side by side.

A child is a program of its own, not a fork: forks of a process with threads hang. Children share no lock:
a process that is killed while holding one would make the others wait for ever. Ctrl-C does not reach them, and none
outlives its parent.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from multiprocessing.connection import Connection, Pipe
from subprocess import DEVNULL, Popen
from typing import Any, TypeVar

from joulie.errors import InputError, JoulieError, PluginError
from joulie.lab.model.refusals import LabError
from joulie.lab.simulation.user_code import load_only
from joulie.lab.simulation.user_sources import OwnModules

T = TypeVar("T")
Progress = Callable[[float], None]

PROGRESS_S = 0.2  # how often progress is reported
_SERVE = "import sys; sys.path[:] = sys.argv[3:]; from joulie.lab.runs.processes import serve; serve(*sys.argv[1:3])"
_PASSED_ON = (InputError, PluginError, LabError, JoulieError, AssertionError)
_SHARE, _TEXT, _RESULT, _ERROR = range(4)


class EndedError(LabError):
    """A child process is gone before its result was there."""

    def __init__(self, how: str) -> None:
        super().__init__(f"a worker process ended by itself ({how}), perhaps for lack of memory")
        self.how = how


def isolated(own: OwnModules, function: Callable[..., T], *arguments: Any, progress: Progress | None = None) -> T:
    """What the function returns: called in a fresh process where code from outside has a part in it, otherwise here."""
    if not own:
        return function(*arguments, progress=progress)
    child = Child()
    try:
        child.call(function, *arguments, own=own)
        while not (given := child.take(progress)):
            pass
        result: T = given[0]
        return result
    finally:
        child.end()


class Child:
    """A process that calls functions, one after the other. They and what they take and return can be pickled."""

    def __init__(self) -> None:
        self.pipe, theirs = Pipe()
        lifeline, self._lifeline = os.pipe()  # nothing is ever written: it breaks when this process ends
        handles = theirs.fileno(), lifeline
        command = [sys.executable, "-c", _SERVE, *map(str, handles), *sys.path]
        self._process = Popen(command, stdin=DEVNULL, stdout=DEVNULL, pass_fds=handles, process_group=0)
        theirs.close()
        os.close(lifeline)

    def call(self, function: Callable[..., Any], *arguments: Any, own: OwnModules | None = None) -> None:
        """The function also gets `progress`. A process that has run code from outside runs nothing else afterwards."""
        with suppress(BrokenPipeError, ConnectionResetError):  # `take` says so
            self.pipe.send((function, arguments, own or {}))

    def take(self, progress: Progress | None = None) -> tuple[Any, ...]:
        """Waits for the next message: the result, or nothing yet; EndedError where the process is gone."""
        try:
            kind, content = self.pipe.recv()
        except (EOFError, OSError):
            code = self._process.wait()
            raise EndedError(signal.Signals(-code).name if code < 0 else f"exit code {code}") from None
        if kind == _ERROR:
            known, text = content
            raise known(text)
        if kind == _TEXT:
            sys.stderr.write(content)
        elif kind == _SHARE and progress is not None:
            progress(content)
        return (content,) if kind == _RESULT else ()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self.pipe.close()
        os.close(self._lifeline)


def serve(pipe_handle: str, lifeline: str) -> None:
    """What a child does."""
    threading.Thread(target=_end_with, args=(int(lifeline),), daemon=True).start()
    pipe = Connection(int(pipe_handle))
    with suppress(EOFError, OSError), redirect_stdout(_Sent(pipe)):
        while True:
            function, arguments, own = pipe.recv()
            pipe.send(_answer(pipe, function, arguments, own))


def _answer(pipe: Connection, function: Callable[..., Any], arguments: Any, own: OwnModules) -> tuple[int, Any]:
    told_s = 0.0

    def progress(share: float) -> None:
        nonlocal told_s
        if time.monotonic() - told_s > PROGRESS_S:
            told_s = time.monotonic()
            pipe.send((_SHARE, share))

    try:
        with load_only(own):
            return _RESULT, function(*arguments, progress=progress)
    except SystemExit as error:
        return _ERROR, (PluginError, f"a policy or scheduler ended the program with exit code {error.code}")
    except Exception as error:  # noqa: BLE001 - code from outside may raise anything
        known = next((kind for kind in _PASSED_ON if isinstance(error, kind)), None)
        if known is None:
            traceback.print_exc()
            return _ERROR, (PluginError, f"{type(error).__name__}: {error}")
        return _ERROR, (known, str(error))


class _Sent(io.TextIOBase):
    """What code from outside prints belongs where the parent writes errors, not among results."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def write(self, text: str) -> int:
        self._pipe.send((_TEXT, text))
        return len(text)


def _end_with(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(1)

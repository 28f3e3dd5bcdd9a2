"""Processes that die by SIGKILL at a chosen line of the agent.

Every line of a write sequence is a moment to die. Most lines change nothing outside the process, so a first run that
is not killed looks at every single line whether what would be left behind differs from the line before; then children
are really killed at both ends of each stretch of lines that leave the same behind.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import joulie.agent
import joulie.devices

_AGENT = os.path.dirname(joulie.agent.__file__) + os.sep  # noqa: PTH120
_DEVICES = os.path.dirname(joulie.devices.__file__) + os.sep  # noqa: PTH120
_WRITING = frozenset({"write", "_put", "control"})  # of devices; what only reads leaves nothing behind


def moments(work: Callable[[], None], remains: Callable[[], object]) -> tuple[int, list[int]]:
    """How many lines the work passes, and those at the ends of stretches that would leave the same behind."""
    reading, writing = os.pipe()
    lines: list[int] = []
    last: object = None
    passed = 0

    def look(line: int) -> None:
        nonlocal last, passed
        passed, now = line, remains()
        if not lines or now != last:
            lines.extend([line - 1, line] if lines else [line])
            last = now

    def report() -> None:
        work()
        os.write(writing, json.dumps([passed, lines]).encode())

    assert _in_a_child(report, look) == 0
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        total, found = json.loads(pipe.read())
    return total, sorted({*found, total})


def kill_at(line: int, work: Callable[[], None]) -> None:
    """Run the work in a child that dies before its nth line."""

    def die(passed: int) -> None:
        if passed == line:
            os.kill(os.getpid(), signal.SIGKILL)

    assert _in_a_child(work, die) == -signal.SIGKILL


def _in_a_child(work: Callable[[], None], at_line: Callable[[int], None]) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of threads; the child uses none
        child = os.fork()
    if child == 0:
        _work_and_end(work, at_line)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _work_and_end(work: Callable[[], None], at_line: Callable[[int], None]) -> None:
    passed = 0
    of_interest: dict[CodeType, bool] = {}

    def on_line(_: FrameType, event: str, __: Any) -> Any:
        nonlocal passed
        if event == "line":
            passed += 1
            at_line(passed)
        return on_line

    def on_call(frame: FrameType, _: str, __: Any) -> Any:
        code = frame.f_code
        if code not in of_interest:
            name = code.co_filename
            of_interest[code] = name.startswith(_AGENT) or (name.startswith(_DEVICES) and code.co_name in _WRITING)
        return on_line if of_interest[code] else None

    code = 1
    try:
        sys.settrace(on_call)
        work()
        code = 0
    except BaseException as error:  # noqa: BLE001 - the parent must learn of it, and nothing may run after this
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        sys.settrace(None)
        os._exit(code)

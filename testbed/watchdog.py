"""Ends what its parent started when the parent is gone, however it went; runs as a process of its own.

Standard input is a pipe that only the parent holds open: each line there is `+pid` or `-pid`, and its end means that
the parent has died or is done. Then every process still listed is killed and the folder given as argument removed.
(PR_SET_PDEATHSIG would not do: it fires when the *thread* dies that started the process, and tests have many threads.)
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys

HAS_PIDFD = sys.platform == "linux"


class Listed:
    """A process to be ended. On Linux a handle on the process itself, so that a reused pid is never hit."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.handle = os.pidfd_open(pid) if HAS_PIDFD else -1

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            if HAS_PIDFD:
                signal.pidfd_send_signal(self.handle, signal.SIGKILL)
            else:
                os.kill(self.pid, signal.SIGKILL)

    def forget(self) -> None:
        if HAS_PIDFD:
            os.close(self.handle)


def watch(folder: str) -> None:
    """Keep the list until the parent's end of the pipe closes."""
    listed: dict[int, Listed] = {}
    for line in sys.stdin:
        pid = int(line[1:])
        if line.startswith("+"):
            with contextlib.suppress(ProcessLookupError):
                listed[pid] = Listed(pid)
        elif pid in listed:
            listed.pop(pid).forget()
    for process in listed.values():
        process.kill()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    watch(sys.argv[1])

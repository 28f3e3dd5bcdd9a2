"""Holds the node's namespaces; runs as a process of its own, in a session of its own, outside of them.

Its standard input is the owner's pipe, read by the program within. When the owner closes it, or dies, the keeper kills
process 1 of the namespace, and with it the kernel ends every process, mount and link in there. Left are control groups
and a folder, and the keeper removes both. If the keeper itself is killed, the namespace dies with it, and the next
keeper removes what is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from testbed.cache import cache_folder, locked
from testbed.node import cgroups

FOLDER = "joulie-node-"
LOCK = ".alive"
PR_SET_PDEATHSIG = 1
NAMESPACES = ("--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--mount-proc", "--kill-child")
ROOT = Path(__file__).resolve().parents[2]


def main(options: str) -> int:
    """Run the node until the owner is done; what the program within returned."""
    with _folder() as folder:
        try:
            cgroups.create(folder.name)
            return _run(folder, options)
        finally:
            _remove(folder)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A new folder, locked for as long as this process lives; removes those of keepers that were killed."""
    with locked(cache_folder() / "node", lambda: None):
        for left in Path(tempfile.gettempdir()).glob(f"{FOLDER}*"):
            with contextlib.suppress(OSError), (left / LOCK).open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while its keeper lives
                _remove(left)
        folder = Path(tempfile.mkdtemp(prefix=FOLDER))
        alive = (folder / LOCK).open("w")
        fcntl.flock(alive, fcntl.LOCK_EX)
    with alive:
        yield folder


def _remove(folder: Path) -> None:
    cgroups.remove(folder.name)
    shutil.rmtree(folder, ignore_errors=True)


def _run(folder: Path, options: str) -> int:
    # A socket belongs to the network that it was made in: made here, it is reached from this machine.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        given = {**json.loads(options), "folder": str(folder), "listener": listener.fileno()}
        within = [sys.executable, "-m", "testbed.node.init", json.dumps(given)]
        process = subprocess.Popen(
            ["unshare", *NAMESPACES, "--propagation", "private", *within],
            cwd=ROOT,
            pass_fds=[listener.fileno()],
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - this process has one thread
        )
    try:
        while process.poll() is None:
            if _owner_is_gone(timeout_s=0.2):
                break
    finally:
        _end(process)
    return process.returncode


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill process 1 of the namespace and wait: `unshare` ends once the kernel has ended all others."""
    if process.poll() is None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for pid in children or [str(process.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        process.wait()


def _owner_is_gone(timeout_s: float) -> bool:
    """Whether the other end of standard input is closed; what was written there is left for the program within."""
    waiting = select.poll()
    waiting.register(sys.stdin, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in waiting.poll(timeout_s * 1000))


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

"""Process 1 of the node's namespace: starts the program within, and reaps orphans such as containerd's shims."""

from __future__ import annotations

import os
import subprocess
import sys


def main(options: str) -> int:
    """Until the program within ends; then all others end, too."""
    # With what this process was given: the pipes to the owner, and the socket that the machine reaches.
    program = subprocess.Popen([sys.executable, "-m", "testbed.node.inside", options], close_fds=False)
    while True:
        pid, status = os.wait()
        if pid == program.pid:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

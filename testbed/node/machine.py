"""Whether this machine can run a node, and why not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from testbed.node import cgroups
from testbed.node.keeper import NAMESPACES
from testbed.unavailable import Unavailable


def check_machine() -> None:
    """Unavailable with the reason where it cannot."""
    if reason := _reason():
        raise Unavailable(reason)


def _reason() -> str:
    if sys.platform != "linux":
        return "a node needs Linux"
    if os.geteuid() != 0:
        return "a node needs root"
    if missing := [name for name in ("unshare", "mount", "umount") if not shutil.which(name)]:
        return f"a node needs the programs {', '.join(missing)}"
    tried = subprocess.run(["unshare", *NAMESPACES, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        return f"no namespaces can be made: {tried.stderr.strip()}"
    if lacking := cgroups.missing_controllers():
        return f"control groups lack {', '.join(sorted(lacking))}"
    if not all(os.access(hierarchy, os.W_OK) for hierarchy in cgroups.hierarchies()):
        return "control groups cannot be written"
    if not Path("/proc/sys/net/bridge").is_dir():
        return "the kernel has no bridge netfilter (module br_netfilter)"
    return ""

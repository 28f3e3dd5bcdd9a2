"""Power caps of machines that do not exist, for pods to find in the node's /sys."""

from __future__ import annotations

from pathlib import Path

from tests.devices.sysfs_trees import MACHINES, build

SHORT_NAMES = {"intel-dual": "intel-xeon-6148-dual"}
NAMES = (*SHORT_NAMES, *MACHINES)


def sys_with_power_caps(name: str, folder: Path) -> Path:
    """The /sys of a machine of this kind, as files below `folder`."""
    return build(SHORT_NAMES.get(name, name), folder).sys

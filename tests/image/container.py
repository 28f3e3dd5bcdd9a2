"""An image unpacked from its archive, and programs run in it as a node would: read-only, as the image's user."""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import json

from tools.release.oci import blob, only_manifest

# A mount namespace in which the image's files are read-only but for /tmp, and a folder of the test's stands in that.
ENTER = """
mount --bind "$0" "$0"
mount -o remount,bind,ro "$0"
mount -t tmpfs tmpfs "$0/tmp"
mkdir "$0/tmp/shared"
mount --bind "$1" "$0/tmp/shared"
shift
exec "$@"
"""


class Container:
    """The one image of an OCI archive, unpacked below `folder`."""

    def __init__(self, archive: Path, folder: Path) -> None:
        self.folder = folder
        self._layout = folder / "layout"
        with tarfile.open(archive) as packed:
            packed.extractall(self._layout, filter="data")
        self.digest, manifest = only_manifest(self._layout)
        document = json.decode(blob(self._layout, manifest["config"]["digest"]).read_bytes())
        self.config: dict[str, Any] = document["config"]
        self.created: str = document["created"]
        self.root = folder / "root"
        self.layers = [layer["digest"] for layer in manifest["layers"]]
        self.unpacked_bytes = 0
        for layer in manifest["layers"]:
            with tarfile.open(blob(self._layout, layer["digest"])) as packed:
                self.unpacked_bytes += sum(member.size for member in packed.getmembers())
                packed.extractall(self.root, filter="fully_trusted")

    def run(
        self, *arguments: str, shared: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """The image's entry point with these arguments; `shared` is seen as /tmp/shared."""
        return subprocess.run(
            self.command(*self.config["Entrypoint"], *arguments, shared=shared),
            capture_output=True,
            text=True,
            env=self.environment(environment or {}),
            check=False,
        )

    def command(self, *program: str, shared: Path | None = None) -> list[str]:
        user, group = self.config["User"].split(":")
        become = ["setpriv", "--no-new-privs", "--bounding-set=-all,+sys_chroot,+setuid,+setgid"]
        become += ["chroot", f"--userspec={user}:{group}", "--groups=", str(self.root)]
        empty = self.folder / "empty"
        empty.mkdir(exist_ok=True)
        namespace = ["unshare", "--mount", "--propagation=private", "sh", "-ec", ENTER]
        return [*namespace, str(self.root), str(shared or empty), *become, *program]

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """The image's own; its search path comes first, and the tools that lead into it are found behind it."""
        own: dict[str, str] = dict(entry.split("=", 1) for entry in self.config["Env"])
        return {**own, "PATH": f"{own['PATH']}:/usr/sbin:/usr/bin:/sbin:/bin", **more}

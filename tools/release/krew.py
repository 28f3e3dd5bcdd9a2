"""The manifest by which krew installs the kubectl plug-in."""

from __future__ import annotations

from typing import Any

import yaml

from tools.release.lock import Platform
from tools.release.plugin import NAME

DESCRIPTION = """\
Joulie caps the power of nodes and says why. The plug-in looks at a cluster and acts on it: status, top, plan, explain,
doctor, pin, cleanup. It needs nothing in the cluster to look at one, and Python 3.11 or newer on this machine.
"""


def krew_manifest(version: str, url: str, archives: dict[Platform, tuple[str, str]]) -> str:
    """`archives` has the file name and SHA-256 for each platform; `url` is where files of a release are found."""
    manifest: dict[str, Any] = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "joulie"},
        "spec": {
            "version": f"v{version}",
            "homepage": url,
            "shortDescription": "See and steer the power of nodes",
            "description": DESCRIPTION,
            "platforms": [_platform(platform, url, *file) for platform, file in archives.items()],
        },
    }
    return yaml.safe_dump(manifest, sort_keys=False, width=120)


def _platform(platform: Platform, url: str, name: str, sha256: str) -> dict[str, Any]:
    system, architecture = platform.name.split("-")
    return {
        "selector": {"matchLabels": {"os": system, "arch": architecture}},
        "uri": f"{url}/{name}",
        "sha256": sha256,
        "bin": NAME,
        "files": [{"from": NAME, "to": "."}, {"from": "LICENSE", "to": "."}],
    }

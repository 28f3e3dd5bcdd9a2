"""A stand-in for the Dockerfile's base image, made of Debian's packages: for where no registry can be reached."""

from __future__ import annotations

import tempfile
from pathlib import Path

from testbed.cache import appearing, cache_folder
from testbed.image.debian import unpacked
from tools.release.archives import json_bytes, sha256, tar_folder
from tools.release.oci import Part, write_layout

# What the build stage calls: Python and pip, a shell, and ldd.
PACKAGES = (
    *("python3", "python3-pip", "base-files", "bash", "ca-certificates", "coreutils", "dash", "libc-bin", "libstdc++6"),
)
NAME = "localhost/joulie-base:latest"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"


def base_archive() -> Path:
    """An OCI archive called NAME that has Debian's Python where Python's own image has one."""
    root = unpacked(PACKAGES, complete=True)
    target = cache_folder().parent / "image" / f"base-{root.name}.tar"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        _prepare(root)
        with appearing(target) as unfinished, tempfile.TemporaryDirectory(dir=target.parent) as name:
            _pack(root, Path(name), unfinished)
    return target


def _pack(root: Path, folder: Path, target: Path) -> None:
    layer, config = folder / "layer.tar", folder / "config.json"
    tar_folder(root, layer, 0)
    document = {
        "os": "linux",
        "architecture": _architecture(root),
        "config": {"Env": ["PATH=/usr/local/bin:/usr/sbin:/usr/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(layer)}"]},
    }
    config.write_bytes(json_bytes(document))
    write_layout(folder / "layout", Part(CONFIG, config), [Part(LAYER, layer)], NAME, {})
    tar_folder(folder / "layout", target, 0)


def _architecture(root: Path) -> str:
    """As Debian and images both call it."""
    lines = (root / "var/lib/dpkg/status").read_text().splitlines()
    found = {line.removeprefix("Architecture: ") for line in lines if line.startswith("Architecture: ")}
    (architecture,) = found - {"all"}
    return architecture


def _prepare(root: Path) -> None:
    """What the packages' own scripts would have done, as far as a build needs it."""
    (root / "usr/bin/python").unlink(missing_ok=True)
    (root / "usr/bin/python").symlink_to("python3")
    authorities = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    (root / "etc/ssl/certs/ca-certificates.crt").write_text("".join(file.read_text() for file in authorities))
    for refusal in (root / "usr/lib").glob("python3*/EXTERNALLY-MANAGED"):  # Python's own image lets pip install
        refusal.unlink()

"""The image of the sources as they are, built once and kept in the user's cache by what went into it.

`python -m testbed.image.build` prints where the archive is.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from testbed.cache import appearing, cache_folder, locked
from testbed.image.base import NAME as BASE
from testbed.image.base import base_archive
from testbed.image.debian import as_if_installed, unpacked
from testbed.unavailable import Unavailable
from tools.release.image import ROOT, Builder, BuildError, build_image

PACKAGES = ("buildah", "golang-github-containers-common")
INPUTS = (
    "Dockerfile",
    ".dockerignore",
    "pyproject.toml",
    "requirements.lock",
    "README.md",
    "LICENSE",
    "deploy/image",
    "src",
)
TAG = "test"  # of localhost/joulie
ARGUMENTS = {"PYTHON_IMAGE": BASE}
KEPT = 3


def say(line: str) -> None:
    sys.stderr.write(f"image: {line}\n")
    sys.stderr.flush()


def image_archive(report: Callable[[str], None] = say) -> Path:
    """An OCI archive of `localhost/joulie:test`; Unavailable where it cannot be built on this machine."""
    folder = cache_folder().parent / "image"
    target = folder / f"joulie-{input_digest()}.tar"
    if not target.is_file():
        with locked(folder, lambda: report("another process is building it; waiting")):
            if not target.is_file():
                report("building it from the Dockerfile: a minute or two, then kept")
                with appearing(target) as unfinished:
                    build(unfinished)
                for old in sorted(folder.glob("joulie-*.tar"), key=lambda path: path.stat().st_mtime)[:-KEPT]:
                    old.unlink()
    return target


def build(target: Path) -> str:
    """Build it in any case; its digest."""
    if os.geteuid() != 0:
        raise Unavailable("only root may use file systems of others, and this is not root")
    buildah = unpacked(PACKAGES, complete=False)
    base = base_archive()
    store = Path(tempfile.mkdtemp(prefix="joulie-image-"))
    try:
        builder = Builder(store, (*as_if_installed(buildah), "buildah"))
        return build_image(builder, target, TAG, epoch_s=0, arguments=ARGUMENTS, base=base)
    except BuildError as error:
        raise Unavailable(str(error)) from error
    finally:
        shutil.rmtree(store, ignore_errors=True)


def input_digest() -> str:
    """Of everything that the Dockerfile copies, and of what it starts from."""
    found = hashlib.sha256(base_archive().name.encode())
    for path in _files():
        found.update(f"{path.relative_to(ROOT)} {path.stat().st_mode & 0o777}\n".encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def _files() -> Iterator[Path]:
    for name in INPUTS:
        path = ROOT / name
        below = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (file for file in below if file.is_file() and "__pycache__" not in file.parts)


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{image_archive()}\n")
    except Unavailable as unavailable:
        say(f"UNAVAILABLE: {unavailable.reason}")
        sys.exit(1)

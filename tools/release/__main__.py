"""`make release`: everything that a release consists of, into one folder."""

from __future__ import annotations

import argparse
import os
import platform as this_machine
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from joulie import __version__
from tools.release.archives import json_bytes, sha256
from tools.release.chart import package_chart
from tools.release.image import ROOT, Builder, BuildError, build_image
from tools.release.krew import krew_manifest
from tools.release.lock import PLATFORMS, Platform
from tools.release.oci import blob, only_manifest
from tools.release.plugin import NAME, PYTHONS, archive_for_krew, build_plugin
from tools.release.sbom import sbom

CHECKSUMS = "SHA256SUMS"
OURS = ("joulie-*", f"{NAME}-*", "joulie.krew.yaml", CHECKSUMS)
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def main(argv: Sequence[str]) -> int:
    """Make what is asked for; one line where that cannot be done."""
    options = _options(argv)
    folder: Path = options.into
    folder.mkdir(parents=True, exist_ok=True)
    try:
        epoch_s = int(os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct"))
        revision = _git("rev-parse", "HEAD")
        if _git("status", "--porcelain") and not options.dirty:
            raise BuildError("there are changes that no commit holds; commit them, or pass --dirty for a trial")
        for pattern in OURS:  # of an earlier one
            for old in folder.glob(pattern):
                old.unlink()
        with _said("wheel"):
            wheel = _wheel(folder, epoch_s)
        with _said("chart"):
            package_chart(folder, __version__, options.registry, epoch_s)
        with _said("kubectl plug-in"):
            _plugins(folder, wheel, options, epoch_s)
        with _said("image and SBOM"):
            _image(folder, options, epoch_s, revision)
    except BuildError as error:
        sys.stderr.write(f"release: {error}\n")
        return 1
    made = sorted({path for pattern in OURS for path in folder.glob(pattern)})
    lines = [f"{sha256(path)}  {path.name}\n" for path in made]
    (folder / CHECKSUMS).write_text("".join(lines))
    sys.stderr.write(
        f"release: {len(lines)} files in {folder}; docs/how-to/release.md says how to sign and publish them\n"
    )
    return 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "dist", help="folder for the files (dist)")
    parser.add_argument("--registry", default="localhost", help="where image and chart will be, such as REGISTRY/TEAM")
    parser.add_argument("--url", default="https://example.com/joulie", help="where the files will be, for krew")
    parser.add_argument("--dirty", action="store_true", help="also with changes that no commit holds")
    parser.add_argument("--platforms", nargs="+", choices=PLATFORMS, default=list(PLATFORMS), help="of the plug-in")
    parser.add_argument("--pythons", nargs="+", choices=PYTHONS, default=list(PYTHONS), help="of the plug-in")
    parser.add_argument("--base", type=Path, help="OCI archive of the base image, where no registry can be reached")
    parser.add_argument("--base-name", default="", help="what it is called in there")
    parser.add_argument(
        "--buildah", type=shlex.split, default=["buildah"], metavar="COMMAND", help="how buildah is called"
    )
    return parser.parse_args(argv)


def _wheel(folder: Path, epoch_s: int) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch_s)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"hatchling: {done.stderr.strip()[-1000:]}")
    return folder / f"joulie-{__version__}-py3-none-any.whl"


def _plugins(folder: Path, wheel: Path, options: argparse.Namespace, epoch_s: int) -> None:
    archives: dict[Platform, tuple[str, str]] = {}
    for platform in (PLATFORMS[name] for name in options.platforms):
        packed = folder / f"{NAME}-{platform.name}.tar.gz"
        packed.write_bytes(archive_for_krew(build_plugin(wheel, platform, options.pythons, epoch_s), epoch_s))
        archives[platform] = (packed.name, sha256(packed))
    (folder / "joulie.krew.yaml").write_text(krew_manifest(__version__, options.url, archives))


def _image(folder: Path, options: argparse.Namespace, epoch_s: int, revision: str) -> None:
    architecture = ARCHITECTURES[this_machine.machine()]
    packed = folder / f"joulie-{__version__}-image-linux-{architecture}.oci.tar"
    arguments = {"VERSION": __version__, "REVISION": revision}
    if options.base is not None:
        arguments["PYTHON_IMAGE"] = options.base_name
    with tempfile.TemporaryDirectory() as name:
        builder = Builder(Path(name, "store"), options.buildah)
        build_image(builder, packed, __version__, epoch_s=epoch_s, arguments=arguments, base=options.base)
        layout, root = Path(name, "layout"), Path(name, "root")
        with tarfile.open(packed) as archive:
            archive.extractall(layout, filter="data")
        digest, manifest = only_manifest(layout)
        for layer in manifest["layers"]:
            with tarfile.open(blob(layout, layer["digest"])) as archive:
                archive.extractall(root, filter="tar")
        bill = sbom(root, __version__, digest, f"linux-{architecture}", epoch_s)
    (folder / f"joulie-{__version__}-image-linux-{architecture}.cdx.json").write_bytes(json_bytes(bill))


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


@contextmanager
def _said(what: str) -> Iterator[None]:
    begun_s = time.monotonic()
    yield
    sys.stderr.write(f"release: {what} ({time.monotonic() - begun_s:.0f} s)\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

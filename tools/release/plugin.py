"""The kubectl plug-in as one file: a zip that Python runs, with all that it needs for several versions of Python."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tools.release.archives import gzipped, tar_bytes
from tools.release.image import ROOT, BuildError
from tools.release.lock import Platform, locked

PYTHONS = ("3.11", "3.12", "3.13")
SHEBANG = b"#!/usr/bin/env python3\n"
NAME = "kubectl-joulie"


def build_plugin(wheel: Path, platform: Platform, pythons: Sequence[str], epoch_s: int) -> bytes:
    """The file's content."""
    sites = {f"cp{python.replace('.', '')}": _site(wheel, platform, python) for python in pythons}
    first, *others = sites.values()
    common = {name for name, content in first.items() if all(site.get(name) == content for site in others)}
    files = {f"common/{name}": first[name] for name in common}
    files |= {f"{tag}/{name}": site[name] for tag, site in sites.items() for name in site.keys() - common}
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
    contents = " ".join([digest.hexdigest()[:16], f"{platform.system}-{platform.machine}", *sites])
    files["contents"] = contents.encode()
    files["__main__.py"] = (Path(__file__).parent / "plugin_main.py").read_bytes()
    return SHEBANG + _zip(files, epoch_s)


def archive_for_krew(plugin: bytes, epoch_s: int) -> bytes:
    """krew takes archives alone, and wants the licence beside the program."""
    files = {NAME: plugin, "LICENSE": (ROOT / "LICENSE").read_bytes()}
    return gzipped(tar_bytes(files, epoch_s, executable=[NAME]))


def _site(wheel: Path, platform: Platform, python: str) -> dict[str, bytes]:
    """What pip installs for that Python there, whatever Python and platform this is."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        requirements = folder / "requirements.txt"
        requirements.write_text("".join(one.block for one in locked("joulie", python, platform)))
        only = ["--only-binary=:all:", f"--python-version={python}", "--implementation=cp"]
        only += [f"--platform={tag}" for tag in (*platform.tags, "any")]
        _pip(folder, "--require-hashes", *only, "--requirement", str(requirements))
        _pip(folder, "--no-index", *only, str(wheel))
        site = folder / "site"
        return {
            path.relative_to(site).as_posix(): path.read_bytes()
            for path in sorted(site.rglob("*"))
            if path.is_file()
            and path.suffix != ".pyc"
            and not {"bin", "tests"} & set(path.relative_to(site).parts[:-1])
        }


def _pip(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"]
    command += [
        "--no-deps",
        "--no-compile",
        "--ignore-requires-python",
        "--upgrade",
        "--target",
        str(folder / "site"),
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    if done.returncode != 0:
        raise BuildError(f"pip: {done.stderr.strip()[-1000:]}")


def _zip(files: dict[str, bytes], epoch_s: int) -> bytes:
    when = datetime.fromtimestamp(max(epoch_s, 315532800), UTC).timetuple()[:6]  # zip begins in 1980
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in sorted(files.items()):
            member = zipfile.ZipInfo(name, when)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o644 << 16
            archive.writestr(member, content)
    return packed.getvalue()

"""A Chromium for tests: the one that is installed, else Debian's package with what it needs, in the user's cache.

Nothing is installed: apt says which packages this machine lacks, they are downloaded and unpacked side by side, and the
browser is told where its libraries are.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.support.obtaining import UnavailableError, run_tool

INSTALLED = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DOWNLOAD_WITHIN_S = 600.0
LAUNCHER = """#!/bin/sh
root="{root}"
export LD_LIBRARY_PATH="{libraries}"
export FONTCONFIG_FILE="$root/etc/fonts/fonts.conf"
exec "$root/usr/lib/chromium/chromium" "$@"
"""


def chromium_binary() -> Path:
    """From the search path, from the cache, or from packages that are downloaded once."""
    installed = next(filter(None, map(shutil.which, INSTALLED)), None)
    if installed:
        return Path(installed)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "joulie" / "chromium"
    cached = sorted(cache.glob("*/launch"))
    return cached[-1] if cached else download(cache)


def download(cache: Path, apt_options: Sequence[str] = ()) -> Path:
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise UnavailableError("no chromium on the search path, and no apt-get and dpkg-deb to fetch one")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".download-") as name:
        folder = Path(name)
        for place in ("lists", "archives"):
            (folder / place / "partial").mkdir(parents=True)
        options = ["-o", "Debug::NoLocking=1", "-o", f"Dir::Cache={folder / 'archives'}", *apt_options]
        try:
            needed = _needed(options, folder)
        except UnavailableError:  # the machine has no package lists: then lists of our own
            options += ["-o", f"Dir::State::Lists={folder / 'lists'}"]
            _run(["apt-get", "-q", *options, "update"], folder)
            needed = _needed(options, folder)
        _run(["apt-get", "-q", *options, "download", *needed], folder)
        version = next(folder.glob("chromium_*.deb")).name.split("_")[1]
        for package in folder.glob("*.deb"):
            _run(["dpkg-deb", "-x", str(package), "root"], folder)
            package.unlink()
        return _keep(folder / "root", cache / version)


def _needed(options: Sequence[str], folder: Path) -> list[str]:
    """The packages that an installation would bring to this machine, each with its version."""
    said = _run(["apt-get", "-qq", *options, "--simulate", "--no-install-recommends", "install", "chromium"], folder)
    installs = [line.split() for line in said.splitlines() if line.startswith("Inst ")]
    if not installs:
        raise UnavailableError("apt knows of no package chromium to install")
    return [f"{words[1]}={next(word for word in words[2:] if word.startswith('('))[1:]}" for words in installs]


def _keep(root: Path, target: Path) -> Path:
    if not (root / "usr/lib/chromium/chromium").is_file():
        raise UnavailableError("the package holds no usr/lib/chromium/chromium")
    # Some libraries lie in folders of their own, where only their package's programs look for them.
    folders = sorted({path.parent.relative_to(root) for path in root.rglob("*.so*")})
    libraries = ":".join(str(target / folder) for folder in folders)
    (root / "launch").write_text(LAUNCHER.format(root=target, libraries=libraries))
    (root / "launch").chmod(0o755)
    try:
        root.replace(target)  # atomic: two processes may get here at once
    except OSError:  # the other was first
        if not (target / "launch").exists():
            raise
    return target / "launch"


def _run(command: Sequence[str], folder: Path) -> str:
    return run_tool(command, folder, DOWNLOAD_WITHIN_S)

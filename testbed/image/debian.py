"""Debian packages, downloaded and unpacked side by side in the user's cache: nothing is installed on the machine."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from testbed.cache import appearing, cache_folder, locked
from testbed.unavailable import Unavailable

TOOLS = ("apt-get", "dpkg-deb", "tar")
DOWNLOAD_WITHIN_S = 600.0
MERGED = ("bin", "lib", "lib64", "sbin")  # links into /usr on every Debian of today
# In a mount namespace of its own the unpacked packages stand where an installation would have put them.
AS_IF_INSTALLED = (
    "unshare",
    "--mount",
    "--propagation=private",
    "sh",
    "-ec",
    'mount -t overlay joulie -o lowerdir="$0/usr":/usr /usr; exec "$@"',
)


def unpacked(packages: Sequence[str], *, complete: bool) -> Path:
    """A folder that holds these packages and what they need: all of it, or what this machine lacks."""
    name = f"{packages[0]}-{hashlib.sha256(repr((tuple(packages), complete)).encode()).hexdigest()[:12]}"
    target = cache_folder().parent / "debian" / name
    if not target.is_dir():
        with locked(target.parent, lambda: None):
            if not target.is_dir():
                with appearing(target) as unfinished:
                    _unpack(packages, unfinished, complete=complete)
    return target


def as_if_installed(root: Path) -> tuple[str, ...]:
    """What to put in front of a command so that it finds the packages in `root`; needs root's rights."""
    return (*AS_IF_INSTALLED, str(root))


def _unpack(packages: Sequence[str], root: Path, *, complete: bool) -> None:
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        raise Unavailable(f"no {' and no '.join(missing)} to fetch {packages[0]} with")
    for name in MERGED if complete else ():
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    root.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root.parent) as name:
        for package in _downloaded(packages, Path(name), complete=complete):
            content = package.with_suffix(".tar")
            with content.open("wb") as file:
                subprocess.run(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=file, check=True)
            keep_links = "--keep-directory-symlink"
            run(["tar", "--extract", keep_links, "--directory", str(root), "--file", str(content)], root)
            _record(package, content, root)


def _downloaded(packages: Sequence[str], folder: Path, *, complete: bool) -> list[Path]:
    for place in ("lists", "archives"):
        (folder / place / "partial").mkdir(parents=True)
    options = ["-o", "Debug::NoLocking=1", "-o", f"Dir::Cache={folder / 'archives'}"]
    if complete:
        options += ["-o", "Dir::State::status=/dev/null"]
    try:
        needed = _needed(options, packages, folder)
    except Unavailable:  # the machine has no package lists: then lists of our own
        options += ["-o", f"Dir::State::Lists={folder / 'lists'}"]
        run(["apt-get", "-q", *options, "update"], folder)
        needed = _needed(options, packages, folder)
    run(["apt-get", "-q", *options, "download", *needed], folder)
    return sorted(folder.glob("*.deb"))


def _needed(options: Sequence[str], packages: Sequence[str], folder: Path) -> list[str]:
    """What an installation would bring, each with its version."""
    said = run(["apt-get", "-qq", *options, "--simulate", "--no-install-recommends", "install", *packages], folder)
    installs = [line.split() for line in said.splitlines() if line.startswith("Inst ")]
    return [f"{words[1]}={next(word for word in words[2:] if word.startswith('('))[1:]}" for words in installs]


def _record(package: Path, content: Path, root: Path) -> None:
    """What dpkg would note down of an installed package, for tools that ask which package a file belongs to."""
    database = root / "var/lib/dpkg"
    (database / "info").mkdir(parents=True, exist_ok=True)
    first, rest = run(["dpkg-deb", "-f", str(package)], root).split("\n", 1)
    with (database / "status").open("a") as status:
        status.write(f"{first}\nStatus: install ok installed\n{rest.rstrip()}\n\n")
    with tarfile.open(content) as archive:
        paths = [name.removeprefix(".") for name in archive.getnames()]
    (database / "info" / f"{first.removeprefix('Package: ')}.list").write_text("\n".join(filter(None, paths)) + "\n")


def run(command: Sequence[str], folder: Path, within_s: float = DOWNLOAD_WITHIN_S) -> str:
    """What a program prints; the last line of its complaint as Unavailable."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=within_s, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{' '.join(command[:3])}: {error}") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit {done.returncode}").splitlines()
        raise Unavailable(f"{' '.join(command[:3])}: {said[-1]}")
    return done.stdout
